import type { Clock } from '../clock/clock.ts'
import type { DeadLetter } from '../letter/letter.ts'
import * as moves from '../letter/moves.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

/**
 * Archives a letter before its removal, if the letter still has the given version. A store removes
 * letters by filter, and a filter cannot name a version. So the letter is first archived by
 * compare-and-set, and then removed by a filter for archived letters: another change in between
 * would have to restore the letter first. After a crash between the two steps, the letter is
 * archived. Returns false if the letter has another version.
 */
export async function archiveForRemoval(
  { store, clock }: { store: Pick<Store, 'apply'>; clock: Clock },
  letter: DeadLetter,
  actor: string,
): Promise<boolean> {
  if (letter.state === 'archived') return true
  const by = { at: toTimestamp(clock.now()), actor, guard: 'version', note: 'removed' } as const
  const [result] = await store.apply([moves.archive(letter, by)])
  return result === 'written'
}
