import type { DeadLetter } from '../letter/letter.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'

/** The letter as it is stored. Without its whole payload it cannot run, so a person must act. */
export function redactCaptured(letter: DeadLetter, redaction: Redaction | undefined): DeadLetter {
  if (!redaction) return letter
  const stored = redaction.captured(letter)
  if (!stored.payload.redacted || stored.state !== 'pending') return stored
  const { retryAt: _, history, ...rest } = stored
  const { at } = history[0]!
  return {
    ...rest,
    state: 'parked',
    reason: 'redacted',
    backoffMs: 0,
    review: { neededSince: at },
    settledAt: at,
    history: history.map((entry) => ({ ...entry, to: 'parked' })),
  }
}
