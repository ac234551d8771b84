import type { CountedAction, State } from './letter.ts'
import type { Change } from './moves.ts'

/** The lifetime totals that a new letter in this state adds to. */
export function countsOfCapture(state: State): readonly CountedAction[] {
  return state === 'parked' ? ['capture', 'park-at-capture'] : ['capture']
}

/** The lifetime total that a decision adds to, besides `review`. */
const countsOfReview: Partial<Record<State, CountedAction>> = {
  pending: 'retry',
  resolved: 'resolve',
  archived: 'archive',
}

/**
 * The lifetime totals that a written change adds to. A replay that published nothing counts as
 * `park`, or not at all if the letter was parked before.
 */
export function countsOf(change: Pick<Change, 'action' | 'set' | 'entry'>): CountedAction[] {
  const { action, entry } = change
  const { from, to, failure, epoch } = entry
  if (action === 'review') return [action, ...[countsOfReview[to!] ?? []].flat()]
  if (action === 'replay' && !isPublished(change)) return from === 'parked' ? [] : ['park']
  // Only `fail()` moves a pending letter with a failure: no claim has counted that run.
  if (from === 'pending' && failure) return ['fail', action]
  // A worker parked a letter that was unfit to run: the claim counted a run that did not happen.
  if (action === 'park' && epoch !== undefined && !failure) return ['release', action]
  return [action]
}

/** Whether a replay published the letter. Otherwise it parked the letter. */
export function isPublished({ set, entry }: Pick<Change, 'set' | 'entry'>): boolean {
  return entry.to !== 'parked' || set.replays !== undefined
}
