import type { LetterSummary, State } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import { formatRelativeTime, escapeLine, type Style } from './print.ts'

export const stateStyle: Record<State, Style> = {
  pending: 'cyan',
  retrying: 'yellow',
  resolved: 'green',
  exhausted: 'red',
  parked: 'red',
  archived: 'dim',
}

type LetterFields = Omit<LetterSummary, 'payload'>

/** When a letter runs next. Empty for a letter that will not run by itself. */
export function formatDue(letter: LetterFields, nowMs: number): string {
  const { state, lease, retryAt, deadLetteredAt } = letter
  if (state === 'retrying') return lease && toMs(lease.expiresAt) < nowMs ? 'lapsed' : 'running'
  return state === 'pending' ? formatRelativeTime(toMs(retryAt ?? deadLetteredAt), nowMs) : ''
}

/** The failure in one line, without the name of the error, which `show` prints. */
export function formatFailureLine({
  corrupt,
  failure,
}: Pick<LetterFields, 'corrupt' | 'failure'>): string {
  if (corrupt !== undefined) return escapeLine(`corrupt: ${corrupt}`)
  return escapeLine(failure.message) || escapeLine(failure.name)
}
