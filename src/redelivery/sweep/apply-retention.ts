import { archive } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Retention } from '../../policy/retention.ts'
import { reachedLimit, sweepLimit, sweepMover, writeChanges, type Chore } from './chore.ts'

/** Archives settled letters and removes archived ones after the retention times of their queue. */
export function applyRetention(retentionFor: (queue: string) => Retention | undefined): Chore {
  return async function applyRetention(context) {
    const { store, nowMs } = context
    const by = sweepMover(context, 'past its retention')
    let archived = 0
    let removed = 0
    let hasMore = false
    for (const queue of (await store.tally('queue')).keys()) {
      const { archiveAfterMs } = retentionFor(queue) ?? {}
      if (archiveAfterMs === undefined) continue
      const { items } = await store.find({
        queue,
        state: ['resolved', 'exhausted'],
        settledBefore: toTimestamp(nowMs - archiveAfterMs),
        order: 'settled',
        limit: sweepLimit,
      })
      const changes = items.map((letter) => archive(letter, by))
      const { length } = await writeChanges(context, changes)
      archived += length
      hasMore ||= reachedLimit(items.length, length)
    }
    for (const queue of (await store.tally('queue', { state: 'archived' })).keys()) {
      const { removeAfterMs } = retentionFor(queue) ?? {}
      if (removeAfterMs === undefined) continue
      const settledBefore = toTimestamp(nowMs - removeAfterMs)
      removed += await store.remove({ queue, state: 'archived', settledBefore })
    }
    return { archived, removed, hasMore }
  }
}
