import type { tokenEndpoints } from '../../api/endpoints/tokens.ts'
import { RedriveError } from '../../errors.ts'
import type { Caller } from '../caller.ts'
import { permissionsOf, type TokenInfo } from '../tokens.ts'
import type { Handlers } from './handler.ts'

export const tokenHandlers: Handlers<keyof typeof tokenEndpoints> = {
  listTokens: (_, { tokens }) => tokens.list(),

  createToken(input, { tokens, caller }) {
    checkGrant(input, caller)
    return tokens.create({ ...input, createdBy: caller.name })
  },

  async rotateToken({ id, overlapMs }, { tokens, caller }) {
    checkGrant(await tokens.get(id), caller)
    return tokens.rotate(id, overlapMs)
  },

  revokeToken: ({ id }, { tokens }) => tokens.revoke(id),
}

/** A caller who knows the secret of a token has its permissions. */
function checkGrant(token: Pick<TokenInfo, 'role' | 'permissions'>, caller: Caller): void {
  const missing = permissionsOf(token).filter((one) => !caller.permissions.has(one))
  if (missing.length > 0)
    throw new RedriveError(
      'FORBIDDEN',
      `${caller.name} may not give what it does not have: the token would have ${missing.join(', ')}`,
    )
}
