import type { DeadLetter, Priority, Reason, RetryPolicy } from '../letter/letter.ts'
import type { Judged } from '../letter/moves.ts'
import { reasonIncomplete, whyIncomplete } from '../letter/content.ts'
import { keyIdOf } from '../letter/sealed.ts'
import { toMs } from '../letter/time.ts'
import { defaultPolicyFor, neverAgain, retryDelay, withDefaults, type Customs } from './backoff.ts'

/** State of a new letter: pending with its first delay, or parked with the reason. */
export type Keep =
  | { kind: 'keep'; state: 'pending'; policy: RetryPolicy; delayMs: number; problem?: string }
  | { kind: 'keep'; state: 'parked'; policy: RetryPolicy; reason: Reason }

export interface CaptureQuestion {
  judged: Pick<Judged, 'failure' | 'category'>
  priority: Priority
  maxRetries: number
  /** Time limit of all retries, where there is one. */
  retryForMs?: number | undefined
  random: () => number
  customs?: Customs
  /** Policy that the caller chose for this letter. It overrides the category. */
  chosen?: RetryPolicy | undefined
  /** Policy of the queue. It sets the delay; whether to retry at all is up to the category. */
  preferred?: RetryPolicy | undefined
}

/** Decides how a captured failure is stored. A failure that is not to be retried is parked. */
export function decideCapture(asked: CaptureQuestion): Keep {
  const { judged, priority, maxRetries, random, customs = {}, chosen, preferred } = asked
  const { category, failure } = judged
  const given = chosen ?? preferred
  const policy = given ? withDefaults(given) : defaultPolicyFor(category)
  const isPermanent = neverAgain.has(category)
  if (isPermanent && (chosen === undefined || chosen.kind === 'never'))
    return { kind: 'keep', state: 'parked', policy, reason: 'permanent' }
  if (maxRetries <= 0) return { kind: 'keep', state: 'parked', policy, reason: 'never' }
  const withinMs = asked.retryForMs ?? Infinity
  const wait = { policy, retry: 0, priority, failure, random, customs, withinMs }
  const { delayMs, problem } = retryDelay(wait)
  if (delayMs === null) return { kind: 'keep', state: 'parked', policy, reason: 'never' }
  const keep: Keep = { kind: 'keep', state: 'pending', policy, delayMs }
  if (problem !== undefined) keep.problem = problem
  return keep
}

/** Why a claimed letter must not run, and its retries without the run that the claim counted. */
export interface Unfit {
  reason: Reason
  retries: number
  note: string
}

/** Checks a claimed letter before its run. Undefined: it may run. */
export function checkFitness(
  letter: Pick<DeadLetter, 'retries' | 'maxRetries' | 'corrupt' | 'expiresAt'> &
    Partial<Pick<DeadLetter, 'payload'>>,
  nowMs: number,
): Unfit | undefined {
  // A letter with maxRetries 0 still runs once when a person retries it.
  const limit = Math.max(1, letter.maxRetries)
  const retries = Math.max(0, letter.retries - 1)
  if (letter.corrupt !== undefined) return { reason: 'malformed', retries, note: letter.corrupt }
  const { payload } = letter
  const incomplete = payload && whyIncomplete({ payload })
  if (incomplete !== undefined)
    return { reason: reasonIncomplete({ payload: payload! }), retries, note: incomplete }
  const keyId = payload && keyIdOf(payload)
  if (keyId !== undefined) {
    const note = `encrypted with key ${keyId}, and this worker has no keys: set the option encryption`
    return { reason: 'malformed', retries, note }
  }
  if (letter.retries > limit) {
    const note = `claimed ${limit} times without a result: it may crash its worker`
    return { reason: 'crash-loop', retries: limit, note }
  }
  if (letter.expiresAt !== undefined && toMs(letter.expiresAt) < nowMs)
    return { reason: 'expired', retries, note: `expired at ${letter.expiresAt}` }
  return undefined
}
