import type { LetterView, OutputOf } from 'redrive/api'
import { formatAmount, formatCount, formatShare } from './number.ts'
import { formatDuration } from './time.ts'

type QueuePolicy = OutputOf<'getQueue'>['policy']

/** How long a letter waits between its runs. */
export function describeBackoff(policy: LetterView['policy']): string {
  switch (policy.kind) {
    case 'fixed':
      return `every ${formatDuration(policy.delayMs)}`
    case 'linear':
      return `linear, ${formatDuration(policy.stepMs)} more each time, at most ${formatDuration(policy.maxMs)}`
    case 'exponential':
      return `exponential, from ${formatDuration(policy.baseMs)} to ${formatDuration(policy.maxMs)}`
    case 'custom':
      return policy.name
    case 'never':
      return 'no automatic retries'
    case 'immediate':
      return 'immediately'
  }
}

/** When letters of a queue wait because its dependency is down. */
export function describeBreaker(breaker: QueuePolicy['breaker']): string {
  if (!breaker) return 'off'
  const { failures, share, openMs, maxOpenMs } = breaker
  return `opens when ${formatAmount(failures, 'letter')} in a row fail, or ${formatShare(share)} of ${formatCount(2 * failures)}, for ${formatDuration(openMs)} to ${formatDuration(maxOpenMs)}`
}

export function describeBudget({ perSecond, burst }: NonNullable<QueuePolicy['budget']>): string {
  const most = burst === undefined ? '' : `, at most ${formatAmount(burst, 'run')} at once`
  return `${formatAmount(perSecond, 'run')} per second${most}`
}

export function describeConcurrency(concurrency: QueuePolicy['concurrency']): string {
  if (!concurrency) return 'not adapted to failures'
  const { min, max } = concurrency
  const most = max === undefined ? 'no upper limit' : `at most ${formatAmount(max, 'letter')}`
  return `adapted to failures, at least ${formatAmount(min, 'letter')}, ${most}`
}
