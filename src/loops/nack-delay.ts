import type { Failure, RetryPolicy } from '../letter/letter.ts'
import { maxVisibilitySeconds } from '../backends/bounds.ts'
import { linear, retryDelay } from '../policy/backoff.ts'

/** One more minute after each failure, at most 15. */
export const defaultBackoff = linear({ stepMs: 60_000, maxMs: 900_000 })

export interface NackDelayInput {
  backoff: RetryPolicy
  /** Failures of the message, the current one included: 1 or more. */
  failures: number
  failure: Failure
  random: () => number
}

/**
 * How long a failed message stays hidden: by the backoff, but not shorter than the failure asks
 * for. Twelve hours is the maximum of brokers; it also stands for never.
 */
export function nackDelay(input: NackDelayInput): { seconds: number; problem?: string } {
  const { backoff: policy, failures, failure, random } = input
  const retry = Math.max(0, failures - 1)
  const { delayMs, ...rest } = retryDelay({ policy, retry, priority: 'medium', failure, random })
  const seconds = Math.min((delayMs ?? Infinity) / 1000, maxVisibilitySeconds)
  return { seconds, ...rest }
}
