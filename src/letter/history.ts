import type { ErrorCategory, Failure, HistoryEntry } from './letter.ts'

/** Maximum number of entries of a history. */
export const maxHistory = 50

/** Appends an entry. Above the maximum, the second entry is dropped and counted as omitted. */
export function appendHistory(
  history: readonly HistoryEntry[],
  omitted: number,
  entry: HistoryEntry,
): { history: HistoryEntry[]; historyOmitted: number } {
  const longer = [...history, entry]
  const excess = Math.max(0, longer.length - maxHistory)
  if (excess > 0) longer.splice(1, excess)
  return { history: longer, historyOmitted: omitted + excess }
}

/** The part of a failure that is stored in the history. */
export function inHistory(judged: {
  failure: Failure
  category: ErrorCategory
}): NonNullable<HistoryEntry['failure']> {
  const { name, message } = judged.failure
  return { name, message: message.slice(0, 500).toWellFormed(), category: judged.category }
}
