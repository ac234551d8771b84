import type { DeadLetter, Priority, Reason, RetryPolicy } from '../letter/letter.ts'
import type { Judged } from '../letter/moves.ts'
import { toMs } from '../letter/time.ts'
import {
  defaultPolicyFor,
  neverAgain,
  parsePolicy,
  retryDelay,
  type Customs,
  type Delay,
} from './backoff.ts'
import { limitAfter, type Limited, type RetryLimits } from './retry-limits.ts'

/** How a letter starts: waiting for its first retry, or parked with the reason why it will not have one by itself. */
export type Keep =
  | { kind: 'keep'; state: 'pending'; policy: RetryPolicy; delayMs: number; problem?: string }
  | { kind: 'keep'; state: 'parked'; policy: RetryPolicy; reason: Reason }

export interface CaptureQuestion {
  judged: Pick<Judged, 'failure' | 'category'>
  priority: Priority
  maxRetries: number
  /** Where retries are limited by time: for how long. */
  retryForMs?: number
  random: () => number
  customs?: Customs
  /** What the caller asked for this very letter. It goes before what the category says. */
  chosen?: RetryPolicy
  /** How the queue likes to wait. It says how long, and leaves it to the category whether at all. */
  preferred?: RetryPolicy
}

/** How a failure at the door is kept. It is always kept: what is not to be retried is parked. */
export function decideCapture(asked: CaptureQuestion): Keep {
  const { judged, priority, maxRetries, random, customs = {}, chosen, preferred } = asked
  const { category, failure } = judged
  const policy = inFull(chosen ?? preferred) ?? defaultPolicyFor(category)
  const hopeless = neverAgain.has(category)
  if (hopeless && (chosen === undefined || chosen.kind === 'never'))
    return { kind: 'keep', state: 'parked', policy, reason: 'permanent' }
  if (maxRetries <= 0) return { kind: 'keep', state: 'parked', policy, reason: 'never' }
  const withinMs = asked.retryForMs ?? Infinity
  const wait = { policy, retry: 0, priority, failure, random, customs, withinMs }
  const { delayMs, ...told } = retryDelay(wait)
  if (delayMs === null) return { kind: 'keep', state: 'parked', policy, reason: 'never' }
  return { kind: 'keep', state: 'pending', policy, delayMs, ...told }
}

/**
 * The move after a failed run. `policy` is given when the letter waits by another one from now on, and `maxRetries` when
 * another limit than that of the letter applied.
 */
export type Next = (
  | { move: 'reschedule'; delayMs: number; policy?: RetryPolicy; problem?: string }
  | { move: 'exhaust' }
  | { move: 'park'; reason: Reason }
) & { maxRetries?: number }

export interface RunQuestion {
  /** As claimed: `retries` counts the run that just failed. */
  letter: Pick<DeadLetter, 'category' | 'policy' | 'priority'> & Limited
  judged: Pick<Judged, 'failure' | 'category'>
  /** How often, or for how long, its queue retries. */
  limits: RetryLimits
  nowMs: number
  random: () => number
  customs?: Customs
  /** Used instead of the letter's policy. */
  policyOverride?: RetryPolicy
}

/** What comes after a failed run. Every failure is classified: a letter that cannot succeed by waiting stops at once. */
export function decideAfterRun(asked: RunQuestion): Next {
  const { letter, limits, nowMs } = asked
  const { category } = asked.judged
  if (neverAgain.has(category)) return { move: 'park', reason: 'permanent' }
  const { maxRetries, leftMs, reached } = limitAfter(letter, category, nowMs, limits)
  const limit = maxRetries === letter.maxRetries ? {} : { maxRetries }
  if (reached === 'give up') return { move: 'exhaust', ...limit }
  if (reached === 'ask') return { move: 'park', reason: 'retries-exhausted', ...limit }
  const { delayMs, ...told } = waitOf(asked, letter.retries, leftMs)
  if (delayMs === null) return { move: 'park', reason: 'never' }
  return { move: 'reschedule', delayMs, ...limit, ...told }
}

/** The longest and the shortest wait of a letter once it was deferred as often as it may be retried. */
const longestDeferMs = 3_600_000
const shortestDeferMs = 1000

/**
 * What comes after a failed run that is not counted, since an outage made it fail: `deferMs` says so, and how long to wait at
 * least. The letter waits by its policy as if the run were counted. From where it would be exhausted on, each wait is twice as long
 * as the one before. Undefined when the run counts after all: the letter is not to be retried, or its time is up.
 */
export function decideDeferral(
  letter: Pick<DeadLetter, 'history' | 'backoffMs'>,
  asked: RunQuestion,
  deferMs: number | undefined,
): (Next & { move: 'reschedule' }) | undefined {
  if (deferMs === undefined) return undefined
  const { judged, limits, nowMs } = asked
  const { maxRetries, leftMs } = limitAfter(asked.letter, judged.category, nowMs, limits)
  const retry = asked.letter.retries + uncountedRuns(letter.history, asked.letter.budgetSince)
  const { delayMs, ...told } = waitOf(asked, retry, leftMs)
  if (delayMs === null || maxRetries === 0 || leftMs <= 0) return undefined
  const doubledMs = Math.min(Math.max(2 * letter.backoffMs, shortestDeferMs), longestDeferMs)
  const longerMs = retry < asked.letter.maxRetries ? 0 : Math.min(doubledMs, leftMs)
  return { move: 'reschedule', delayMs: Math.max(delayMs, longerMs, deferMs), ...told }
}

function uncountedRuns(history: DeadLetter['history'], since = ''): number {
  return history.filter(
    ({ action, failure, at }) => action === 'release' && failure !== undefined && at >= since,
  ).length
}

/** The wait before this retry of the letter, and its policy if that is another one from now on. */
function waitOf(
  asked: RunQuestion,
  retry: number,
  withinMs: number,
): Delay & { policy?: RetryPolicy } {
  const { letter, judged, random, customs = {} } = asked
  const { category, failure } = judged
  const policy = inFull(asked.policyOverride) ?? currentPolicy(letter, category)
  const { priority } = letter
  const delay = retryDelay({ policy, retry, priority, failure, random, customs, withinMs })
  const isChanged = asked.policyOverride === undefined && policy !== letter.policy
  return { ...delay, ...(isChanged ? { policy } : {}) }
}

/** A policy as data may leave out what has a default. A letter keeps the numbers that it waits by. */
function inFull(policy: RetryPolicy | undefined): RetryPolicy | undefined {
  return policy && (parsePolicy(policy) ?? policy)
}

/** A policy that came from the category follows the category; one that somebody chose stays. */
function currentPolicy(
  letter: Pick<DeadLetter, 'category' | 'policy'>,
  category: DeadLetter['category'],
): RetryPolicy {
  const derived = isSame(letter.policy, defaultPolicyFor(letter.category))
  const next = defaultPolicyFor(category)
  return derived && !isSame(letter.policy, next) ? next : letter.policy
}

/** Policies are flat; a store may give their keys back in another order. */
function isSame(one: RetryPolicy, other: RetryPolicy): boolean {
  const values = new Map<string, unknown>(Object.entries(one))
  const others = Object.entries(other)
  return values.size === others.length && others.every(([key, value]) => values.get(key) === value)
}

/** Why a claimed letter must not run. The claim counted a retry that never happens, so it is taken back. */
export interface Parking {
  move: 'park'
  reason: Reason
  retries: number
  note: string
}

/** Whether a claimed letter may run. Asked after every claim and before every run. */
export function decideClaimed(
  letter: Pick<DeadLetter, 'retries' | 'maxRetries' | 'corrupt' | 'expiresAt'>,
  nowMs: number,
): { move: 'run' } | Parking {
  // A letter without retries of its own still runs once when a person asks for it.
  const limit = Math.max(1, letter.maxRetries)
  const unrun = Math.max(0, letter.retries - 1)
  const park = (reason: Reason, note: string, retries = unrun): Parking => ({
    move: 'park',
    reason,
    retries,
    note,
  })
  if (letter.corrupt !== undefined) return park('malformed', letter.corrupt)
  if (letter.retries > limit)
    return park(
      'crash-loop',
      `claimed ${limit} times without a result: it may end its worker`,
      limit,
    )
  if (letter.expiresAt !== undefined && toMs(letter.expiresAt) < nowMs)
    return park('expired', `expired at ${letter.expiresAt}`)
  return { move: 'run' }
}
