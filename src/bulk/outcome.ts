import type { DeadLetter, HistoryEntry, LetterSummary } from '../letter/letter.ts'
import { isActive } from '../letter/letter.ts'
import { isMark, type PlannedLetter } from '../letter/bulk-action.ts'

/** The outcome of a retried letter. `waiting`: its run has not ended. */
export type RunOutcome = Pick<PlannedLetter, 'runs' | 'error'> & {
  outcome: 'waiting' | 'succeeded' | 'failed' | 'skipped'
}

/**
 * The outcome of a letter since an action retried it, without reading its history. Undefined: only
 * the history tells.
 */
export function outcomeOf(planned: PlannedLetter, letter: LetterSummary): RunOutcome | undefined {
  const { state, version, retries } = letter
  // The action made one change.
  if (state === 'retrying' || version === planned.version + 1) return { outcome: 'waiting' }
  const runs = retries - (planned.retries ?? 0)
  if (runs !== 1) return undefined
  if (state === 'resolved') return { outcome: 'succeeded', runs }
  if (state === 'exhausted') return { outcome: 'failed', runs, error: errorOf(letter.failure) }
  return undefined
}

/** The outcome of a letter since an action retried it, by its history. */
export function outcomeByHistory(actionId: string, letter: DeadLetter): RunOutcome {
  // Notes of people change nothing.
  const history = letter.history.filter(({ action }) => action !== 'note')
  const retried = history.findLastIndex((entry) => isMark(actionId, entry))
  // A long history loses entries in the middle. Then the state of the letter has to do.
  const later = retried < 0 ? history.slice(-1) : history.slice(retried + 1)
  let runs = 0
  for (const entry of later) {
    if (entry.action === 'claim') runs += 1
    else if (entry.epoch !== undefined && entry.action === 'resolve')
      return { outcome: 'succeeded', runs: runs + 1 }
    else if (entry.failure && entry.action !== 'occur')
      return { outcome: 'failed', runs: runs + 1, error: errorOf(entry.failure) }
    else if (hasEnded(entry)) return outcomeWithoutRun(entry)
  }
  return { outcome: 'waiting' }
}

function hasEnded({ to }: HistoryEntry): boolean {
  return to !== null && !isActive(to)
}

/** The letter was settled, but not by a run: by a person, or because no worker can run it. */
function outcomeWithoutRun({ actor, action, to, note }: HistoryEntry): RunOutcome {
  const why = note === undefined ? '' : `: ${note}`
  return { outcome: to === 'resolved' ? 'skipped' : 'failed', error: `${action} by ${actor}${why}` }
}

function errorOf({ name, message }: { name: string; message: string }): string {
  return `${name}: ${message}`.slice(0, 500)
}
