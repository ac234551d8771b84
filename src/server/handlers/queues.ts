import type { queueEndpoints } from '../../api/endpoints/queues.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { boundFilter } from '../bounds.ts'
import type { Handlers } from './handler.ts'

export const queueHandlers: Handlers<keyof typeof queueEndpoints> = {
  listQueues: (query, { dlq, caller }) => dlq.queues(boundFilter(withoutUndefined(query), caller)),

  getFlowControl(_, { dlq, caller }) {
    const { queues } = caller.scope
    const all = dlq.flowControl()
    return queues ? all.filter(({ kind, name }) => kind === 'queue' && queues.includes(name)) : all
  },
}
