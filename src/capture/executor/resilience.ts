import type { ErrorCategory, Failure, Jitter } from '../../letter/letter.ts'

/** Which failures are retried within the call. */
export interface RetryOn {
  /** Names of errors. Subclasses and causes match as well. */
  errors?: readonly string[]
  /** HTTP statuses. */
  statuses?: readonly number[]
  categories?: readonly ErrorCategory[]
}

/** When calls are rejected instead of made. */
export interface BreakerLimits {
  /** Consecutive failed runs, over all calls, before the breaker opens. Default: 5. */
  failures: number
  /** Calls that must succeed while the breaker is half-open before it closes. Default: 2. */
  successes: number
  /** How long the breaker stays open. Default: 30 s. */
  openMs: number
  /**
   * Calls that run while the breaker is half-open; others wait for their result. Default:
   * `successes`.
   */
  halfOpenCalls: number
}

/**
 * How one kind of call is made. Absent keys come from the built-in policy of that name, otherwise
 * from the defaults.
 */
export interface ResiliencePolicy {
  /** Maximum number of runs in one call, including the first. Default: 3. */
  attempts?: number
  /** Delay before the second run. Default: 1 s. */
  initialDelayMs?: number
  /**
   * Maximum delay. If the service asks for a longer one, the call fails and its letter waits.
   * Default: 30 s.
   */
  maxDelayMs?: number
  /** Factor between one delay and the next. Default: 2. */
  multiplier?: number
  /** Random variation of delays, within the maximum: 0.1 is ± 10 %. Default: 0.1. */
  jitter?: Jitter
  /**
   * Failures that are retried: one match in any of the lists is enough, or a function decides.
   * Default: the categories transient, network, timeout, rate-limit and dependency.
   */
  retryOn?: RetryOn | ((error: unknown, failure: Failure) => boolean)
  /** Maximum duration of one run. Default: 30 s. */
  timeoutMs?: number
  /** Maximum duration of all runs and delays together. Default: no limit. */
  overallTimeoutMs?: number
  /** Circuit breaker. Default: false, no breaker. */
  breaker?: Partial<BreakerLimits> | false
  /** Maximum number of concurrent calls, and of calls that wait for a slot. Default: no limit. */
  bulkhead?: { concurrent: number; queue?: number }
  /** Returns a result for a call that failed finally. If it throws, the call fails. */
  fallback?: (error: unknown) => unknown
  /** Queue of the letters. Default: the name of the policy. */
  queue?: string
}

export interface ExecutorOptions {
  /** Policies by name. A policy with a built-in name overrides only the keys that it has. */
  policies?: Record<string, ResiliencePolicy>
}

/** A policy with every default filled in. */
export type ResolvedPolicy = Required<
  Omit<ResiliencePolicy, 'overallTimeoutMs' | 'breaker' | 'bulkhead' | 'fallback'>
> &
  Pick<ResiliencePolicy, 'overallTimeoutMs' | 'fallback'> & {
    name: string
    breaker: BreakerLimits | false
    bulkhead?: { concurrent: number; queue: number }
  }

/** The built-in policies. */
export const resiliencePolicies = {
  llm: {
    attempts: 3,
    initialDelayMs: 1000,
    maxDelayMs: 30_000,
    multiplier: 2,
    jitter: 0.1,
    retryOn: { errors: ['RateLimitError', 'TimeoutError'], statuses: [429, 500, 502, 503, 504] },
    timeoutMs: 60_000,
    breaker: { failures: 5, successes: 3, openMs: 60_000, halfOpenCalls: 3 },
    queue: 'llm_call',
  },
  github: {
    attempts: 5,
    initialDelayMs: 1000,
    maxDelayMs: 60_000,
    multiplier: 2,
    jitter: 0.2,
    retryOn: { statuses: [408, 429, 500, 502, 503, 504] },
    timeoutMs: 30_000,
    breaker: { failures: 10, successes: 5, openMs: 120_000, halfOpenCalls: 5 },
    queue: 'github_api',
  },
  tool: {
    attempts: 3,
    initialDelayMs: 500,
    maxDelayMs: 10_000,
    multiplier: 2,
    jitter: 0.15,
    retryOn: { errors: ['TimeoutError'] },
    timeoutMs: 30_000,
    breaker: { failures: 3, successes: 2, openMs: 30_000, halfOpenCalls: 2 },
    queue: 'tool_execution',
  },
  verification: {
    attempts: 3,
    initialDelayMs: 2000,
    maxDelayMs: 30_000,
    multiplier: 2,
    jitter: 0,
    retryOn: { errors: ['TimeoutError', 'BuildError'] },
    timeoutMs: 180_000,
    breaker: false,
    queue: 'verification',
  },
} as const satisfies Record<string, ResiliencePolicy>
