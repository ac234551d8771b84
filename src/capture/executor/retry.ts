import type { ErrorCategory, Failure } from '../../letter/letter.ts'
import { ancestorsOf } from '../../policy/ancestors.ts'
import { backoffMs, exponential } from '../../policy/backoff.ts'
import { layersOf } from '../../policy/layers.ts'
import type { RetryOn, ResolvedPolicy } from './resilience.ts'

/** Whether one of the lists names this failure or one of its causes. */
export function isListed(
  { errors, statuses, categories }: RetryOn,
  failure: Failure,
  category: ErrorCategory,
  thrown: unknown,
): boolean {
  if (categories?.includes(category)) return true
  const layers = layersOf(failure)
  if (statuses && layers.some(({ status }) => status !== undefined && statuses.includes(status)))
    return true
  if (!errors) return false
  return (
    layers.some(({ name }) => errors.includes(name)) ||
    causesOf(thrown).some((one) => ancestorsOf(one).some((name) => errors.includes(name)))
  )
}

/**
 * Delay before run `attempt + 1`, never shorter than the service asked for. Undefined if that is
 * longer than the policy allows within a call.
 */
export function waitMs(
  policy: ResolvedPolicy,
  attempt: number,
  failure: Failure,
  random: () => number,
): number | undefined {
  const { initialDelayMs, maxDelayMs, multiplier, jitter } = policy
  const backoff = exponential({
    baseMs: initialDelayMs,
    factor: multiplier,
    maxMs: maxDelayMs,
    jitter,
  })
  const requestedMs = layersOf(failure).find(
    (layer) => layer.retryAfterMs !== undefined,
  )?.retryAfterMs
  if (requestedMs !== undefined && requestedMs > maxDelayMs) return undefined
  return Math.max(backoffMs(backoff, attempt - 1, random) ?? 0, requestedMs ?? 0)
}

const maxCauses = 8

/** The thrown value and its chain of causes, nearest first. */
function causesOf(thrown: unknown): unknown[] {
  const causes: unknown[] = []
  try {
    for (let one = thrown; one instanceof Error && causes.length < maxCauses; one = one.cause)
      causes.push(one)
  } catch {
    // A cause that cannot be read is ignored.
  }
  return causes
}
