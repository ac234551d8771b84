import type { DeadLetter, Payload, RetryPolicy } from '../letter/letter.ts'
import {
  defer,
  exhaust,
  park,
  reschedule,
  type Change,
  type Judged,
  type Mover,
} from '../letter/moves.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import {
  defaultPolicyFor,
  neverAgain,
  retryDelay,
  withDefaults,
  type Customs,
  type Delay,
} from './backoff.ts'
import { limitAfter, type RetryLimits } from './retry-limits.ts'

export interface FailedRun {
  /** As claimed: `retries` counts the run that failed. */
  letter: DeadLetter
  by: Mover
  judged: Judged
  /** Retry limits of the queue. */
  limits: RetryLimits
  random: () => number
  customs?: Customs
  /** Used in place of the letter's policy. */
  policyOverride?: RetryPolicy | undefined
  /** Input of the next run. Default: the input of this one. */
  payload?: Payload | undefined
  /**
   * Given when an outage caused the failure: the run is not counted, and waits at least so long.
   */
  deferMs?: number | undefined
}

/** The change of the letter, and what was wrong with its backoff, if anything was. */
export interface AfterRun {
  change: Change
  problem?: string
}

/**
 * What a failed run becomes: deferred, rescheduled, exhausted or parked. The only place that
 * decides this, for runs of handlers and for failures that a person reports.
 */
export function changeAfterFailure(run: FailedRun): AfterRun {
  return tryDeferral(run) ?? countRun(run)
}

/** Every failure is classified again: a letter that cannot succeed by waiting stops at once. */
function countRun(run: FailedRun): AfterRun {
  const { letter, by, judged, payload, limits } = run
  const { category } = judged
  const failed = { judged, payload }
  if (neverAgain.has(category))
    return { change: park(letter, by, { ...failed, reason: 'permanent' }) }
  const atMs = toMs(by.at)
  const { maxRetries, leftMs, reached } = limitAfter(letter, category, atMs, limits)
  const limited = maxRetries === letter.maxRetries ? failed : { ...failed, maxRetries }
  if (reached === 'give up') return { change: exhaust(letter, by, limited) }
  if (reached === 'ask')
    return { change: park(letter, by, { ...limited, reason: 'retries-exhausted' }) }
  const { delayMs, problem, policy } = delayBefore(run, letter.retries, leftMs)
  if (delayMs === null) return { change: park(letter, by, { ...failed, reason: 'never' }) }
  const due = { ...limited, retryAt: toTimestamp(atMs + delayMs), backoffMs: delayMs, policy }
  return withProblem(reschedule(letter, by, due), problem)
}

/** The longest and the shortest delay of a letter that was deferred as often as it has retries. */
const longestDeferMs = 3_600_000
const shortestDeferMs = 1000
const outageNote = 'a dependency is down: deferred and not counted'

/**
 * The change after a run that is not counted. The letter waits by its policy as if the run were
 * counted; from where it would be exhausted, each delay is twice the one before. Undefined if the
 * run counts: there was no outage, the letter is not to be retried, or its time is up.
 */
function tryDeferral(run: FailedRun): AfterRun | undefined {
  const { letter, by, judged, payload, limits, deferMs } = run
  if (deferMs === undefined) return undefined
  const atMs = toMs(by.at)
  const { maxRetries, leftMs } = limitAfter(letter, judged.category, atMs, limits)
  const retry = letter.retries + countDeferrals(letter)
  const { delayMs, problem, policy } = delayBefore(run, retry, leftMs)
  if (delayMs === null || maxRetries === 0 || leftMs <= 0) return undefined
  const doubledMs = Math.min(Math.max(2 * letter.backoffMs, shortestDeferMs), longestDeferMs)
  const longerMs = retry < letter.maxRetries ? 0 : Math.min(doubledMs, leftMs)
  const backoffMs = Math.max(delayMs, longerMs, deferMs)
  const due = { judged, payload, retryAt: toTimestamp(atMs + backoffMs), backoffMs, policy }
  return withProblem(defer(letter, { note: outageNote, ...by }, due), problem)
}

/** Deferrals since the letter last got a fresh retry budget. */
function countDeferrals({ history, budgetSince = '' }: DeadLetter): number {
  return history.filter(
    ({ action, failure, at }) => action === 'release' && failure !== undefined && at >= budgetSince,
  ).length
}

/** The delay before this retry, and the letter's policy if it changes from now on. */
function delayBefore(
  run: FailedRun,
  retry: number,
  withinMs: number,
): Delay & { policy?: RetryPolicy } {
  const { letter, judged, random, customs = {}, policyOverride } = run
  const { category, failure } = judged
  const { priority } = letter
  const policy = policyOverride ? withDefaults(policyOverride) : currentPolicy(letter, category)
  const delay = retryDelay({ policy, retry, priority, failure, random, customs, withinMs })
  const isChanged = policyOverride === undefined && policy !== letter.policy
  return { ...delay, ...(isChanged ? { policy } : {}) }
}

/** A policy that was derived from the category follows the category; a chosen one stays. */
export function currentPolicy(
  letter: Pick<DeadLetter, 'category' | 'policy'>,
  category: DeadLetter['category'],
): RetryPolicy {
  if (category === letter.category) return letter.policy
  const isDerived = isSamePolicy(letter.policy, defaultPolicyFor(letter.category))
  const next = defaultPolicyFor(category)
  return isDerived && !isSamePolicy(letter.policy, next) ? next : letter.policy
}

/** Policies are flat objects. A store may return their keys in another order. */
function isSamePolicy(one: RetryPolicy, other: RetryPolicy): boolean {
  if (one.kind !== other.kind) return false
  const values = new Map<string, unknown>(Object.entries(one))
  const others = Object.entries(other)
  return values.size === others.length && others.every(([key, value]) => values.get(key) === value)
}

function withProblem(change: Change, problem: string | undefined): AfterRun {
  return problem === undefined ? { change } : { change, problem }
}
