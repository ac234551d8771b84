import type { DeadLetter, ErrorCategory } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'

export type MaxRetriesByCategory = Readonly<Partial<Record<ErrorCategory, number | undefined>>>

/** How often, or for how long, the letters of a queue are retried. */
export interface RetryLimits {
  maxRetries: number
  /** Limits for single categories, in place of `maxRetries`. */
  maxRetriesByCategory?: MaxRetriesByCategory
  /** Retries of a failure that no rule knows, within `maxRetries`. Default: 3. */
  unknownRetries?: number
  /** Retries go on for so long, whatever their number. A limit of 0 retries still holds. */
  retryForMs?: number
}

/** How often a letter of this queue is retried after a failure of this category. */
export function maxRetriesFor(category: ErrorCategory, limits: RetryLimits): number {
  const { maxRetries, maxRetriesByCategory = {}, unknownRetries = 3 } = limits
  const own = maxRetriesByCategory[category]
  if (own !== undefined) return own
  return category === 'unknown' ? Math.min(maxRetries, unknownRetries) : maxRetries
}

/** As much of a letter as its limit depends on. */
export type Limited = Pick<
  DeadLetter,
  'retries' | 'maxRetries' | 'maxRetriesChosen' | 'deadLetteredAt' | 'budgetSince'
>

/** What limits a letter after a failure. */
export interface Limit {
  maxRetries: number
  /** Time until the letter is given up. Infinity where the number of retries decides. */
  leftMs: number
  /** Whether the limit is reached. `ask`: a person decides, since no rule knows the failure. */
  reached: 'no' | 'give up' | 'ask'
}

/**
 * The limit that applies after a failed run. Where time is the limit, the number grows with every run that ended: what stays is
 * how many claims in a row may end without a result.
 */
export function limitAfter(
  letter: Limited,
  category: ErrorCategory,
  nowMs: number,
  limits: RetryLimits,
): Limit {
  const { retries } = letter
  const isFixed = !follows(letter, limits)
  const maxRetries = isFixed ? letter.maxRetries : maxRetriesFor(category, limits)
  const { retryForMs } = limits
  if (retryForMs === undefined || maxRetries === 0) {
    const end = !isFixed && asksPerson(category, limits) ? 'ask' : 'give up'
    return { maxRetries, leftMs: Infinity, reached: retries >= maxRetries ? end : 'no' }
  }
  const leftMs = toMs(letter.budgetSince ?? letter.deadLetteredAt) + retryForMs - nowMs
  if (leftMs <= 0) return { maxRetries: retries, leftMs, reached: 'give up' }
  const crashes = Math.max(1, maxRetriesFor(category, limits))
  return { maxRetries: retries + crashes, leftMs, reached: 'no' }
}

/**
 * Whether the limit of a letter follows the category of each failure: it was not chosen for this letter, and it is one that the
 * options give. One that was captured under other options keeps its limit.
 */
function follows({ maxRetries, maxRetriesChosen }: Limited, limits: RetryLimits): boolean {
  const { maxRetriesByCategory = {} } = limits
  const given = [
    limits.maxRetries,
    maxRetriesFor('unknown', limits),
    ...Object.values(maxRetriesByCategory),
  ]
  return !maxRetriesChosen && given.includes(maxRetries)
}

/** Whether a person is asked at the limit: no rule knows the failure, and other failures have more retries. */
function asksPerson(category: ErrorCategory, limits: RetryLimits): boolean {
  if (category !== 'unknown' || limits.maxRetriesByCategory?.unknown !== undefined) return false
  return maxRetriesFor('unknown', limits) < limits.maxRetries
}
