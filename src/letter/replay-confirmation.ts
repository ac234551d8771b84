import type { DeadLetter, LetterSummary } from './letter.ts'
import type { Timestamp } from './time.ts'

/**
 * When the replay of a letter is confirmed, if its message does not die again before. Undefined:
 * the letter does not wait for a confirmation.
 */
export function confirmedAt({
  state,
  reason,
  retryAt,
}: Pick<DeadLetter | LetterSummary, 'state' | 'reason' | 'retryAt'>): Timestamp | undefined {
  return state === 'parked' && reason === 'replayed' ? retryAt : undefined
}
