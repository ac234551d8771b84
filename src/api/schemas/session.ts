import { z } from 'zod'
import { permissions, roles } from '../permissions.ts'
import { timestamp } from './filter.ts'

/** How a caller has proved who it is. */
const signInMethods = ['token', 'code', 'jwt', 'oidc'] as const
export type SignInMethod = (typeof signInMethods)[number]

export const callerView = z
  .strictObject({
    name: z.string(),
    role: z.enum(roles).exactOptional(),
    permissions: z.array(z.enum(permissions)),
    queues: z.array(z.string()).exactOptional().describe('Only these queues. Absent: all.'),
    tenants: z.array(z.string()).exactOptional().describe('Only these tenants. Absent: all.'),
    fullTextSearch: z
      .literal(true)
      .exactOptional()
      .describe('This server has full-text search: `/api/search` answers.'),
    signedInWith: z.enum(signInMethods).describe('How the caller has proved who it is.'),
    expiresAt: timestamp
      .exactOptional()
      .describe('When the token or the session expires. Sessions in use are extended.'),
  })
  .meta({ id: 'Caller' })
export type CallerView = z.infer<typeof callerView>
