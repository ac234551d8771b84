import type { Clock } from '../clock/clock.ts'
import { states } from '../letter/letter.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import { GroupRecords } from './records.ts'
import { trendDays } from './seen.ts'

const dayMs = 86_400_000
/** Interval of the search: it reads all records, and old groups are no hurry. */
const everyMs = 60 * 60_000

/**
 * A chore of the sweep: once an hour, removes what is known about groups that have no letters and
 * were not seen within the trend. Notes and the status of a group stay.
 */
export function removeOldGroups(): (context: { store: Store; clock: Clock }) => Promise<void> {
  let checkedMs: number | undefined
  return async function removeOldGroups({ store, clock }) {
    // Not at the start: many processes may start at once.
    checkedMs ??= clock.mono()
    if (clock.mono() - checkedMs < everyMs) return
    checkedMs = clock.mono()
    const records = new GroupRecords(store)
    const oldest = toTimestamp(clock.now() - trendDays * dayMs)
    for await (const [fingerprint, { lastAt }] of records.eachSeen()) {
      if (lastAt >= oldest) continue
      const filter = { group: fingerprint, state: [...states] }
      if ((await store.tally('state', filter)).size === 0) await records.removeSeen(fingerprint)
    }
  }
}
