import { z } from 'zod'
import { permissions, roles } from '../permissions.ts'
import { timestamp } from './filter.ts'

const name = z.string().min(1).max(200)
const names = z.array(name).min(1).max(1000)

/** What a token may do, and where. */
export const tokenShape = {
  name: name.describe('The name in the history of letters and groups.'),
  role: z.enum(roles).exactOptional(),
  permissions: z.array(z.enum(permissions)).min(1).exactOptional().describe('Instead of a role.'),
  queues: names.exactOptional().describe('Only these queues. Default: all.'),
  tenants: names.exactOptional().describe('Only letters of these tenants. Default: all.'),
  expiresAt: timestamp.exactOptional().describe('Default: the token does not expire.'),
}

/** A token without its secret. */
export const tokenView = z
  .strictObject({
    id: z.string(),
    ...tokenShape,
    createdAt: timestamp,
    createdBy: z.string(),
    lastUsedAt: timestamp.exactOptional().describe('Accurate to a minute.'),
    rotatedAt: timestamp.exactOptional(),
    oldSecretUntil: timestamp
      .exactOptional()
      .describe('Until when the secret before the last rotation is valid as well.'),
  })
  .meta({ id: 'Token' })
export type TokenView = z.infer<typeof tokenView>

export const newTokenView = z.strictObject({
  token: z.string().describe('The token. It is shown only now.'),
  info: tokenView,
})
