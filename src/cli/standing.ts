import type { LetterSummary, State } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import { fromNow, line, type Style } from './print.ts'

export const stateStyle: Record<State, Style> = {
  pending: 'cyan',
  retrying: 'yellow',
  resolved: 'green',
  exhausted: 'red',
  parked: 'red',
  archived: 'dim',
}

type Standing = Omit<LetterSummary, 'payload'>

/** When a letter runs next. Empty for a letter that will not run by itself. */
export function whenOf(letter: Standing, nowMs: number): string {
  const { state, lease, retryAt, deadLetteredAt } = letter
  if (state === 'retrying') return lease && toMs(lease.expiresAt) < nowMs ? 'lapsed' : 'running'
  return state === 'pending' ? fromNow(toMs(retryAt ?? deadLetteredAt), nowMs) : ''
}

/** The failure in one line, without the name of the error, which `show` prints. */
export function failureLine({ corrupt, failure }: Pick<Standing, 'corrupt' | 'failure'>): string {
  if (corrupt !== undefined) return line(`corrupt: ${corrupt}`)
  return line(failure.message) || line(failure.name)
}
