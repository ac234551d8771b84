import type { queueEndpoints } from '../../api/endpoints/queues.ts'
import type { OutputOf } from '../../api/endpoints.ts'
import { withZeros } from '../../admin/statistics.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { states } from '../../letter/letter.ts'
import { boundFilter } from '../bounds.ts'
import type { Handlers } from './handler.ts'

export const queueHandlers: Handlers<keyof typeof queueEndpoints> = {
  listQueues: (query, { dlq, caller }) => dlq.queues(boundFilter(withoutUndefined(query), caller)),

  async getQueue({ queue }, { dlq, caller, series }) {
    const { items } = await dlq.queues({ queue })
    const summary = items[0] ?? { queue, count: 0, states: withZeros(states, new Map()) }
    const limiter = dlq.flowControl().find(({ kind, name }) => kind === 'queue' && name === queue)
    const { redact: _, ...policy } = dlq.policyOf(queue)
    const redaction = caller.redaction(queue)
    return {
      ...summary,
      // With all defaults, and JSON only.
      policy: {
        ...(policy as unknown as OutputOf<'getQueue'>['policy']),
        ...(redaction
          ? { redact: { atCapture: redaction.atCapture, redactStored: redaction.redactStored } }
          : {}),
      },
      ...(limiter ? { limiter } : {}),
      lastHour: await series.lastHour(queue),
    }
  },

  getFlowControl(_, { dlq, caller }) {
    const { queues } = caller.scope
    const all = dlq.flowControl()
    return queues ? all.filter(({ kind, name }) => kind === 'queue' && queues.includes(name)) : all
  },
}
