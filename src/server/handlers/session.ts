import type { sessionEndpoints } from '../../api/endpoints/session.ts'
import { RedriveError } from '../../errors.ts'
import { viewIdentity } from '../sign-in/identity.ts'
import type { Handlers } from './handler.ts'

export const sessionHandlers: Handlers<keyof typeof sessionEndpoints> = {
  async createSession({ code, token }, { session }) {
    if ((code === undefined) === (token === undefined))
      throw new RedriveError('INVALID_INPUT', 'give exactly one of `code` and `token`')
    const identity =
      code === undefined ? session.signIn({ token: token! }) : session.signIn({ code })
    return viewIdentity(await identity)
  },

  getCaller: (_, { identity }) => viewIdentity(identity),

  getSignInMethods: (_, { session }) => ({ oidc: session.hasProvider }),

  endSession: async (_, { session }) => ({ ended: await session.signOut() }),
}
