import type { workerEndpoints } from '../../api/endpoints/workers.ts'
import type { WorkerView } from '../../api/schemas/worker.ts'
import type { Handlers } from './handler.ts'

export const workerHandlers: Handlers<keyof typeof workerEndpoints> = {
  async listWorkers(_, { dlq, caller }) {
    const { queues } = caller.scope
    const workers = await dlq.workers()
    return queues ? workers.flatMap((worker) => inQueues(worker, queues)) : workers
  },

  listMailboxes: (_, { dlq }) => dlq.mailboxes(),
}

/** The worker without other queues, if it runs any of these. */
function inQueues(worker: WorkerView, allowed: readonly string[]): WorkerView[] {
  const { running: _, slots: __, loops: ___, limiters, ...rest } = worker
  const queues = worker.queues.filter((queue) => allowed.includes(queue))
  if (queues.length === 0) return []
  const paused = worker.paused.filter((queue) => allowed.includes(queue))
  const own = limiters?.filter(({ kind, name }) => kind === 'queue' && allowed.includes(name))
  return [{ ...rest, queues, paused, ...(own ? { limiters: own } : {}) }]
}
