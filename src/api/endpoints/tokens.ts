import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { newTokenView, tokenShape, tokenView } from '../schemas/token.ts'

/** Tokens decide who may see what in the whole store. */
const aboutTokens = { tag: 'Tokens', permission: 'admin', bounds: 'all' } as const
const id = z.string().min(1).max(200).describe('The id of a token.')

export const tokenEndpoints = {
  listTokens: endpoint({
    ...aboutTokens,
    method: 'GET',
    path: '/api/tokens',
    summary: 'Lists the tokens, without their secrets.',
    input: z.strictObject({}),
    output: z.array(tokenView),
  }),
  createToken: endpoint({
    ...aboutTokens,
    method: 'POST',
    path: '/api/tokens',
    summary: 'Creates a token with a role or with permissions, at most those of the caller.',
    status: 201,
    input: z.strictObject(tokenShape),
    output: newTokenView,
    secret: true,
  }),
  rotateToken: endpoint({
    ...aboutTokens,
    method: 'POST',
    path: '/api/tokens/{id}/rotate',
    summary: 'Gives a token a new secret. The old one stays valid for the overlap.',
    input: z.strictObject({
      id,
      overlapMs: z.int().min(0).max(86_400_000).exactOptional().describe('Default: 0.'),
    }),
    output: newTokenView,
    secret: true,
  }),
  revokeToken: endpoint({
    ...aboutTokens,
    method: 'DELETE',
    path: '/api/tokens/{id}',
    summary: 'Revokes a token. It has no effect from now on.',
    input: z.strictObject({ id }),
    output: tokenView,
  }),
}
