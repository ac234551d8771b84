import type { sessionEndpoints } from '../../api/endpoints/session.ts'
import type { CallerView } from '../../api/schemas/session.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { viewIdentity, type Identity } from '../sign-in/identity.ts'
import type { Handlers } from './handler.ts'

function viewCaller(identity: Identity, { store }: Pick<DeadLetterQueue, 'store'>): CallerView {
  return { ...viewIdentity(identity), ...(store.search ? { fullTextSearch: true } : {}) }
}

export const sessionHandlers: Handlers<keyof typeof sessionEndpoints> = {
  async createSession({ code, token }, { session, dlq }) {
    if ((code === undefined) === (token === undefined))
      throw new RedriveError('INVALID_INPUT', 'give exactly one of `code` and `token`')
    const identity =
      code === undefined ? session.signIn({ token: token! }) : session.signIn({ code })
    return viewCaller(await identity, dlq)
  },

  getCaller: (_, { identity, dlq }) => viewCaller(identity, dlq),

  getSignInMethods: (_, { session }) => ({ oidc: session.hasProvider }),

  endSession: async (_, { session }) => ({ ended: await session.signOut() }),
}
