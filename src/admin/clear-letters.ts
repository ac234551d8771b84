import { RedriveError } from '../errors.ts'
import type { LetterFilter } from '../letter/query.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'

/** Removes all matching letters if their number is `confirm`. Running letters stay. */
export async function clearLetters(
  { store, hub }: { store: Store; hub: ObserverHub },
  filter: LetterFilter,
  confirm: number,
  by: string,
): Promise<number> {
  const counts = await store.tally('state', filter)
  const count = [...counts].reduce(
    (sum, [state, letters]) => sum + (state === 'retrying' ? 0 : letters),
    0,
  )
  if (confirm !== count)
    throw new RedriveError(
      'INVALID_INPUT',
      `${count} letters match and would be removed permanently: set confirm to ${count}, got ${confirm}`,
    )
  const removed = await store.remove(filter)
  hub.emit({ type: 'removed', count: removed, by })
  return removed
}
