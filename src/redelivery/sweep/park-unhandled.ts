import { toMs } from '../../letter/time.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { parkLetters, sweepLimit, type Chore } from './chore.ts'

/** A letter without a handler is parked once it has been due for this long. */
const unhandledMs = 1000

/**
 * Parks due letters of queues that no live worker has a handler for. Those of paused queues wait:
 * their workers may be stopped until the queue is resumed.
 */
export function parkUnhandled(
  registry: WorkerRegistry,
  pausedQueues: () => Promise<ReadonlySet<string>>,
): Chore {
  return async function parkUnhandled(context) {
    const { store, nowMs } = context
    const handled = registry.handledQueues
    const pending = await store.tally('queue', { state: 'pending' })
    const paused = await pausedQueues()
    const queue = [...pending.keys()].filter((name) => !handled.has(name) && !paused.has(name))
    if (queue.length === 0) return
    const { items } = await store.find({ queue, state: 'pending', order: 'due', limit: sweepLimit })
    const due = items.filter(({ retryAt }) => retryAt && toMs(retryAt) <= nowMs - unhandledMs)
    return parkLetters(context, due, 'no-handler', 'no worker has a handler for this queue')
  }
}
