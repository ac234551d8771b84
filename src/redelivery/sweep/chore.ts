import type { Clock } from '../../clock/clock.ts'
import type { LetterSummary, Reason } from '../../letter/letter.ts'
import { park, type Change, type Mover } from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import type { Store } from '../../store.ts'

/** Maximum number of letters that a chore changes per sweep, so that no chore delays the others. */
export const sweepLimit = 500
/** Letters that are loaded with their payloads at once. */
const payloadPage = 20

export interface ChoreContext {
  store: Store
  clock: Clock
  hub: ObserverHub
  /** Start of the sweep, wall time. */
  nowMs: number
}

/** Numbers of letters that a chore changed. */
export interface ChoreResult {
  archived?: number
  removed?: number
  parked?: number
  /** The chore reached its limit and there is probably more to do. */
  hasMore?: boolean
}

/**
 * One task of a sweep. Every change is guarded by the version that the chore read, so any number of
 * processes may sweep the same store.
 */
export type Chore = (context: ChoreContext) => Promise<ChoreResult | void>

/** The mover of changes that a sweep makes. */
export function sweepMover({ nowMs }: ChoreContext, note: string): Mover {
  return { at: toTimestamp(nowMs), actor: 'sweep', note, guard: 'version' }
}

/** Writes the changes. Returns those that were written; the other letters changed meanwhile. */
export async function writeChanges(
  { store }: ChoreContext,
  changes: readonly Change[],
): Promise<Change[]> {
  if (changes.length === 0) return []
  const results = await store.apply([...changes])
  return changes.filter((_, index) => results[index] === 'written')
}

/** Parks letters and emits an event with the whole letter for each, since a person has to act. */
export async function parkLetters(
  context: ChoreContext,
  letters: readonly LetterSummary[],
  reason: Reason,
  note: string,
): Promise<ChoreResult> {
  const by = sweepMover(context, note)
  let parked = 0
  for (let start = 0; start < letters.length; start += payloadPage) {
    const page = letters.slice(start, start + payloadPage)
    const changes = page.map((letter) => park(letter, by, { reason }))
    const whole = await context.store.get(page.map(({ id }) => id))
    for (const change of await writeChanges(context, changes)) {
      parked++
      // A change that was written was made to the version that was read.
      const letter = whole.find(({ id }) => id === change.id)
      if (letter) context.hub.emitChangeOf(letter, change)
    }
  }
  return { parked, hasMore: reachedLimit(letters.length, parked) }
}

/** Without any write there is no hurry: others were faster, or the search index is behind. */
export function reachedLimit(listed: number, written: number): boolean {
  return listed >= sweepLimit && written > 0
}
