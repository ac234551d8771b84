import { wake } from '../../letter/moves.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { reachedLimit, sweepLimit, sweepMover, writeChanges, type Chore } from './chore.ts'

/** Makes letters due that were parked without a handler, once this process has one. */
export function wakeHandled(registry: WorkerRegistry): Chore {
  return async function wakeHandled(context) {
    const queue = registry.ownQueues
    if (queue.length === 0) return
    const { items } = await context.store.find({
      queue,
      state: 'parked',
      reason: 'no-handler',
      limit: sweepLimit,
    })
    const by = sweepMover(context, 'a worker has a handler for this queue now')
    const changes = items.map((letter) => wake(letter, by))
    const { length } = await writeChanges(context, changes)
    return { hasMore: reachedLimit(items.length, length) }
  }
}
