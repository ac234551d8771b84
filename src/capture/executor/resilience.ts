import type { ErrorCategory, Failure, Jitter } from '../../letter/letter.ts'

/** Which failures are worth another try within the call. */
export interface RetryOn {
  /** Names of errors. They match subclasses, and causes. */
  errors?: readonly string[]
  /** HTTP statuses. */
  statuses?: readonly number[]
  categories?: readonly ErrorCategory[]
}

/** When calls are refused instead of made. */
export interface BreakerLimits {
  /** Tries that fail in a row, over all calls, before it opens. 5 unless said. */
  failures: number
  /** Of the calls that are tried when it is half-open, so many have to succeed. 2 unless said. */
  successes: number
  /** How long it stays open. 30 s unless said. */
  openMs: number
  /** Calls that are tried when it is half-open; others wait for their result. As many as `successes` unless said. */
  halfOpenCalls: number
}

/** How one kind of call is made. What is left out is as in the built-in policy of that name, else as said here. */
export interface ResiliencePolicy {
  /** Runs in one call, the first one counted. 3 unless said. */
  attempts?: number
  /** The wait before the second run. 1 s unless said. */
  initialDelayMs?: number
  /** No wait is longer. When the other side asks for a longer one, the call gives up and its letter waits. 30 s unless said. */
  maxDelayMs?: number
  /** How much longer each wait is than the one before. 2 unless said. */
  multiplier?: number
  /** 0.1 unless said: waits are spread over ± 10 %, within the maximum. */
  jitter?: Jitter
  /**
   * One match in any of the lists is enough; a function decides by itself. Unless said, the categories transient, network,
   * timeout, rate-limit and dependency.
   */
  retryOn?: RetryOn | ((error: unknown, failure: Failure) => boolean)
  /** How long one run may take. 30 s unless said. */
  timeoutMs?: number
  /** How long all runs and the waits between them may take. No limit unless said. */
  overallTimeoutMs?: number
  /** False, and unless said: no breaker. */
  breaker?: Partial<BreakerLimits> | false
  /** How many calls run at the same time, and how many more may wait for a place. No limit unless said. */
  bulkhead?: { concurrent: number; queue?: number }
  /** Gives the result of a call that failed for good. By throwing it declines. */
  fallback?: (error: unknown) => unknown
  /** Where letters of this policy go. The name of the policy unless said. */
  queue?: string
}

export interface ExecutorOptions {
  /** Policies by name. Those of built-in ones change only what they say. */
  policies?: Record<string, ResiliencePolicy>
}

/** A policy with every default filled in. */
export type SettledPolicy = Required<
  Omit<ResiliencePolicy, 'overallTimeoutMs' | 'breaker' | 'bulkhead' | 'fallback'>
> &
  Pick<ResiliencePolicy, 'overallTimeoutMs' | 'fallback'> & {
    name: string
    breaker: BreakerLimits | false
    bulkhead?: { concurrent: number; queue: number }
  }

/** The policies that every executor knows. */
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
