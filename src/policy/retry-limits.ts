import type { DeadLetter, ErrorCategory } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'

export type MaxRetriesByCategory = Readonly<Partial<Record<ErrorCategory, number | undefined>>>

/** Retry limits of a queue, by number or by time. */
export interface RetryLimits {
  maxRetries: number
  /** Limits by category, in place of `maxRetries`. */
  maxRetriesByCategory?: MaxRetriesByCategory
  /** Limit for failures of category `unknown`, at most `maxRetries`. Default: 3. */
  unknownRetries?: number
  /** Time limit in place of the number of retries. A limit of 0 retries still applies. */
  retryForMs?: number
}

/** The maximum number of retries after a failure of this category. */
export function maxRetriesFor(category: ErrorCategory, limits: RetryLimits): number {
  const { maxRetries, maxRetriesByCategory = {}, unknownRetries = 3 } = limits
  const own = maxRetriesByCategory[category]
  if (own !== undefined) return own
  return category === 'unknown' ? Math.min(maxRetries, unknownRetries) : maxRetries
}

/** The fields of a letter that its limit depends on. */
export type Limited = Pick<
  DeadLetter,
  'retries' | 'maxRetries' | 'maxRetriesChosen' | 'deadLetteredAt' | 'budgetSince'
>

/** The limit of a letter after a failure. */
export interface Limit {
  maxRetries: number
  /** Time until the letter is exhausted. Infinity: the number of retries decides. */
  leftMs: number
  /** Whether the limit is reached. `ask`: a person decides, because the failure is unknown. */
  reached: 'no' | 'give up' | 'ask'
}

/**
 * The limit after a failed run. With a time limit, `maxRetries` grows with every run that ended, so
 * that it limits only consecutive claims without a result.
 */
export function limitAfter(
  letter: Limited,
  category: ErrorCategory,
  nowMs: number,
  limits: RetryLimits,
): Limit {
  const { retries } = letter
  const isFixed = !followsCategory(letter, limits)
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
 * Whether the limit of a letter follows the category of each failure: it was not chosen for this
 * letter, and it is one of the present options. A letter captured under other options keeps its
 * limit.
 */
function followsCategory({ maxRetries, maxRetriesChosen }: Limited, limits: RetryLimits): boolean {
  if (maxRetriesChosen) return false
  const { maxRetriesByCategory = {} } = limits
  const given = [
    limits.maxRetries,
    maxRetriesFor('unknown', limits),
    ...Object.values(maxRetriesByCategory),
  ]
  return given.includes(maxRetries)
}

/**
 * Whether a person decides at the limit: for unknown failures, if other failures have more retries.
 */
function asksPerson(category: ErrorCategory, limits: RetryLimits): boolean {
  if (category !== 'unknown' || limits.maxRetriesByCategory?.unknown !== undefined) return false
  return maxRetriesFor('unknown', limits) < limits.maxRetries
}
