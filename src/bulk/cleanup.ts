import type { Clock } from '../clock/clock.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import { BulkRecords, type StoredAction } from './records.ts'

/** Interval of the search: old actions are rare. */
const everyMs = 10 * 60_000
const dayMs = 86_400_000
/** How long the results of an action can be read after its end. */
const keepResultsMs = 30 * dayMs
/** How long a plan that nobody ran can be read after it expired. */
const keepPlanMs = dayMs

/**
 * A chore of the sweep: removes actions that ended long ago with their results, plans that nobody
 * ran, and letters of plans that a crash left without an action.
 */
export function removeOldActions(): (context: { store: Store; clock: Clock }) => Promise<void> {
  let checkedMs = -Infinity
  return async function removeOldActions({ store, clock }) {
    if (clock.mono() - checkedMs < everyMs) return
    checkedMs = clock.mono()
    const records = new BulkRecords(store)
    const nowMs = clock.now()
    const ids = new Set<string>()
    for await (const action of records.actions()) {
      if (isOld(action, nowMs)) await records.remove(action.id)
      else ids.add(action.id)
    }
    const before = toTimestamp(nowMs - keepPlanMs)
    for await (const { actionId, updatedAt } of records.chunkOwners())
      if (!ids.has(actionId) && updatedAt < before) await records.remove(actionId)
  }
}

function isOld({ state, expiresAt, endedAt }: StoredAction, nowMs: number): boolean {
  if (state === 'planned') return expiresAt < toTimestamp(nowMs - keepPlanMs)
  return endedAt !== undefined && endedAt < toTimestamp(nowMs - keepResultsMs)
}
