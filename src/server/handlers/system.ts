import type { systemEndpoints } from '../../api/endpoints/system.ts'
import { RedriveError } from '../../errors.ts'
import type { Json } from '../../letter/letter.ts'
import type { Handlers } from './handler.ts'

export const systemHandlers: Handlers<keyof typeof systemEndpoints> = {
  getLiveness: () => ({ ok: true }),

  async getReadiness(_, { dlq, isStopping }) {
    if (isStopping) throw new RedriveError('SERVER_STOPPING', 'the server is stopping')
    const { ok } = await dlq.health()
    if (ok) return { ok }
    throw new RedriveError('STORE_UNAVAILABLE', 'the store is unreachable or cannot write')
  },

  getStatistics: ({ by = [] }, { dlq }) => dlq.stats({ by: [by].flat() }),

  getSettings: (_, { settings }) =>
    settings.map(({ value, ...rest }) => ({ ...rest, value: value as Json })),

  async listPausedQueues(_, { dlq, caller }) {
    const { queues } = caller.scope
    const paused = await dlq.pausedQueues()
    return queues ? paused.filter(({ queue }) => queues.includes(queue)) : paused
  },

  pauseQueue: ({ queue, reason }, { dlq, caller }) => dlq.pauseQueue(queue, caller.name, reason),

  async resumeQueue({ queue }, { dlq, caller }) {
    return { resumed: await dlq.resumeQueue(queue, caller.name) }
  },
}
