import type { Failure, RetryPolicy } from '../letter/letter.ts'
import { maxVisibilitySeconds } from '../backends/bounds.ts'
import { linear, retryDelay } from '../policy/backoff.ts'

/** One more minute after each failure, 15 at the most. */
export const usualBackoff = linear({ stepMs: 60_000, maxMs: 900_000 })

export interface NackQuestion {
  backoff: RetryPolicy
  /** Failures of the message, with the one just now: 1 or more. */
  failures: number
  failure: Failure
  random: () => number
}

/**
 * How long a message that failed stays hidden: by the backoff, and not shorter than the other side asked for. Twelve hours is the
 * longest that brokers can do; it stands for never too.
 */
export function nackDelay(asked: NackQuestion): { seconds: number; problem?: string } {
  const { backoff: policy, failures, failure, random } = asked
  const retry = Math.max(0, failures - 1)
  const { delayMs, ...told } = retryDelay({ policy, retry, priority: 'medium', failure, random })
  const seconds = Math.min((delayMs ?? Infinity) / 1000, maxVisibilitySeconds)
  return { seconds, ...told }
}
