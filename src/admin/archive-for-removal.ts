import type { Clock } from '../clock/clock.ts'
import type { DeadLetter } from '../letter/letter.ts'
import * as moves from '../letter/moves.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

/**
 * Archives a letter that is removed only if it still has its version. A store removes by filter,
 * which cannot name a version. So the letter is archived by compare-and-set, and removed while it
 * is archived: whoever changes it in between has to restore it first. After a crash in between, the
 * letter is archived. False: it has another version.
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
