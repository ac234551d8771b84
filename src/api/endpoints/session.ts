import { z } from 'zod'
import { endpoint } from '../endpoint.ts'
import { callerView } from '../schemas/session.ts'

const aboutSession = { tag: 'Session', path: '/api/session', bounds: 'none' } as const

export const sessionEndpoints = {
  createSession: endpoint({
    ...aboutSession,
    method: 'POST',
    summary: 'Signs in a browser with a one-time code or a token, and sets a session cookie.',
    permission: 'public',
    status: 201,
    input: z.strictObject({
      code: z.string().min(1).max(200).exactOptional().describe('A code that the server printed.'),
      token: z.string().min(1).max(8192).exactOptional().describe('A token, instead of a code.'),
    }),
    output: callerView,
  }),
  getCaller: endpoint({
    ...aboutSession,
    method: 'GET',
    summary: 'Returns the name, the permissions and the scope of the caller.',
    permission: 'any',
    input: z.strictObject({}),
    output: callerView,
  }),
  getSignInMethods: endpoint({
    method: 'GET',
    path: '/api/session/methods',
    tag: 'Session',
    summary: 'Says how people can sign in besides a code and a token.',
    permission: 'public',
    bounds: 'none',
    input: z.strictObject({}),
    output: z.strictObject({
      oidc: z.boolean().describe('Whether /login/oidc signs in at an identity provider.'),
    }),
  }),
  endSession: endpoint({
    ...aboutSession,
    method: 'DELETE',
    summary: 'Signs out: ends the session and removes its cookie.',
    permission: 'any',
    input: z.strictObject({}),
    output: z.strictObject({ ended: z.boolean().describe('False: the caller has no session.') }),
  }),
}
