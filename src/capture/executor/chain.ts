import { AsyncLocalStorage } from 'node:async_hooks'
import {
  BrokenCircuitError,
  bulkhead,
  BulkheadRejectedError,
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
  retry,
  timeout,
  TimeoutStrategy,
  type BulkheadPolicy,
  type CircuitBreakerPolicy,
  type RetryPolicy,
  type TimeoutPolicy,
} from 'cockatiel'
import { sleep, type Clock } from '../../clock/clock.ts'
import { toFailure } from '../../letter/failure.ts'
import type { ErrorCategory, Failure } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import { neverAgain } from '../../policy/backoff.ts'
import type { BreakerState } from '../../policy/breaker.ts'
import { classifyFailure, type Rule } from '../../policy/classify.ts'
import type { BreakerLimits, ResolvedPolicy } from './resilience.ts'
import { BulkheadFullError, CallTimeout, CircuitBreakerOpenError } from './errors.ts'
import { isListed, waitMs } from './retry.ts'

interface ChainOptions {
  hub: ObserverHub
  clock: Clock
  rules: readonly Rule[]
}

/** One call in the chain. */
export interface Call {
  operation: (run: { signal: AbortSignal; attempt: number }) => unknown
  /** The signal of the caller. */
  signal: AbortSignal | undefined
  /** Runs so far. */
  attempts: number
  /** How the last run failed. */
  last: FailedRun | undefined
  /** Where there is an overall limit: when the call began, and what aborts when the time is up. */
  startedMs?: number
  overall?: AbortSignal
}

/**
 * A failed run and its classification. It wraps the thrown value, so that the caller gets the same
 * object, and so that no error of the operation is mistaken for an error of cockatiel.
 */
class FailedRun {
  readonly thrown: unknown
  /**
   * Whether the breaker counts the run. A run that the caller cancelled says nothing about the
   * service.
   */
  readonly counts: boolean | 'cancelled'
  /** Delay before the next run. Undefined: no further run. */
  readonly waitMs: number | undefined

  constructor(thrown: unknown, counts: FailedRun['counts'], waitMs?: number) {
    this.thrown = thrown
    this.counts = counts
    this.waitMs = waitMs
  }
}

/**
 * A named policy as a chain of cockatiel policies, shared by all calls. From the outside: overall
 * timeout, bulkhead, retry, breaker, timeout. A slot of the bulkhead is held for the whole call.
 * Each run counts for the breaker, so it opens while calls are still being retried; those calls
 * then stop retrying.
 *
 * Timeouts and breaker use real time, since cockatiel has its own timers. Delays use the clock,
 * because those of cockatiel cannot be cancelled.
 */
export class Chain {
  readonly policy: ResolvedPolicy
  readonly #options: ChainOptions
  readonly #overall: TimeoutPolicy | undefined
  readonly #bulkhead: BulkheadPolicy | undefined
  readonly #retry: RetryPolicy
  readonly #breaker: CircuitBreakerPolicy | undefined
  readonly #timeout: TimeoutPolicy
  #openUntilMs = 0

  constructor(policy: ResolvedPolicy, options: ChainOptions) {
    const { attempts, timeoutMs, overallTimeoutMs } = policy
    this.policy = policy
    this.#options = options
    this.#timeout = createTimeLimit(timeoutMs)
    this.#overall = overallTimeoutMs === undefined ? undefined : createTimeLimit(overallTimeoutMs)
    this.#bulkhead = policy.bulkhead && bulkhead(policy.bulkhead.concurrent, policy.bulkhead.queue)
    this.#breaker = policy.breaker ? this.#createBreaker(policy.breaker) : undefined
    const isWorthwhile = (error: unknown): boolean =>
      error instanceof FailedRun && error.waitMs !== undefined && this.state !== 'open'
    this.#retry = retry(handleWhen(isWorthwhile), { maxAttempts: attempts - 1 })
  }

  get state(): BreakerState['kind'] {
    return this.#breaker ? nameOf(this.#breaker.state) : 'closed'
  }

  /** Resolves with the result of the operation. Pass a rejection to `errorOf`. */
  run(call: Call): Promise<unknown> {
    if (!this.#overall) return this.#runInBulkhead(call, call.signal)
    call.startedMs = this.#options.clock.mono()
    return this.#overall.execute(({ signal }) => {
      call.overall = signal
      return this.#runInBulkhead(call, signal)
    }, call.signal)
  }

  /** The error of a failed call that its caller did not cancel. */
  errorOf(call: Call, error: unknown): unknown {
    const { name, bulkhead } = this.policy
    const { last } = call
    if (call.overall?.aborted) return this.#createOverallTimeout(call)
    if (error instanceof FailedRun) return error.thrown
    if (error instanceof BulkheadRejectedError && bulkhead)
      return new BulkheadFullError(name, bulkhead)
    if (!(error instanceof BrokenCircuitError)) return error
    if (last) return last.thrown
    const lastFailure = this.#breaker?.lastFailure
    const cause = lastFailure && 'error' in lastFailure ? lastFailure.error : undefined
    const leftMs = Math.max(0, Math.ceil(this.#openUntilMs - this.#options.clock.mono()))
    return new CircuitBreakerOpenError(
      name,
      leftMs,
      cause instanceof FailedRun ? cause.thrown : cause,
    )
  }

  #runInBulkhead(call: Call, signal: AbortSignal | undefined): Promise<unknown> {
    if (!this.#bulkhead) return this.#runWithRetries(call, signal)
    // A waiting call is started by the call that ends, and must not run in the async context of
    // that call.
    const bound = AsyncLocalStorage.bind(() => this.#runWithRetries(call, signal))
    const mustWait = this.#bulkhead.executionSlots === 0
    const admitted = this.#bulkhead.execute(bound, signal)
    return signal && mustWait ? rejectOnAbort(admitted, signal) : admitted
  }

  #runWithRetries(call: Call, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#retry.execute(
      ({ signal }) =>
        call.last ? this.#runAfterDelay(call, signal) : this.#runInBreaker(call, signal),
      signal,
    )
  }

  async #runAfterDelay(call: Call, signal: AbortSignal): Promise<unknown> {
    await sleep(this.#options.clock, call.last?.waitMs ?? 0, signal)
    return this.#runInBreaker(call, signal)
  }

  #runInBreaker(call: Call, signal: AbortSignal): Promise<unknown> {
    // Otherwise an aborted call would count as one of the calls of a half-open breaker.
    if (signal.aborted) throw this.#toAbortedRun(call, signal)
    if (!this.#breaker) return this.#runOnce(call, signal)
    const mayWait = this.state === 'half-open'
    const tried = this.#breaker.execute(({ signal }) => this.#runOnce(call, signal), signal)
    return mayWait ? rejectOnAbort(tried, signal) : tried
  }

  async #runOnce(call: Call, around: AbortSignal): Promise<unknown> {
    let own = around
    try {
      return await this.#timeout.execute(({ signal }) => {
        own = signal
        call.attempts += 1
        return call.operation({ signal, attempt: call.attempts })
      }, around)
    } catch (error) {
      if (around.aborted) throw this.#toAbortedRun(call, around)
      call.last = this.#judge(call, own.aborted ? this.#createRunTimeout() : error)
      throw call.last
    }
  }

  /** A run that ended because the whole call ended. That is not a failure of the operation. */
  #toAbortedRun(call: Call, around: AbortSignal): FailedRun {
    if (call.signal?.aborted) return new FailedRun(around.reason, 'cancelled')
    return new FailedRun(this.#createOverallTimeout(call), true)
  }

  #createRunTimeout(): CallTimeout {
    const { name, timeoutMs } = this.policy
    return new CallTimeout(`a run of ${name} did not end within ${timeoutMs} ms (timeoutMs)`)
  }

  #createOverallTimeout({ last }: Call): CallTimeout {
    const { name, overallTimeoutMs } = this.policy
    const message = `a call of ${name} did not end within ${overallTimeoutMs} ms (overallTimeoutMs)`
    return new CallTimeout(message, last && { cause: last.thrown })
  }

  #judge(call: Call, thrown: unknown): FailedRun {
    const { clock, rules } = this.#options
    const { overallTimeoutMs = Infinity } = this.policy
    const failure = toFailure(thrown, toTimestamp(clock.now()))
    const { category } = classifyFailure(failure, thrown, rules)
    const again = this.#isListed(thrown, failure, category)
    const counts = again || !neverAgain.has(category)
    if (!again) return new FailedRun(thrown, counts)
    const wait = waitMs(this.policy, call.attempts, failure, () => clock.random())
    // No delay that would exceed the overall timeout: the letter waits instead.
    const leftMs = overallTimeoutMs - (clock.mono() - (call.startedMs ?? 0))
    return new FailedRun(thrown, counts, wait !== undefined && wait < leftMs ? wait : undefined)
  }

  #isListed(thrown: unknown, failure: Failure, category: ErrorCategory): boolean {
    const { name, retryOn } = this.policy
    if (typeof retryOn !== 'function') return isListed(retryOn, failure, category, thrown)
    try {
      // An async function returns a promise, which must not count as true.
      const answer: unknown = retryOn(thrown, failure)
      return answer === true
    } catch (error) {
      this.#options.hub.emit({ type: 'error', during: `retryOn of ${name}`, error })
      return false
    }
  }

  #createBreaker({
    failures,
    successes,
    openMs,
    halfOpenCalls,
  }: BreakerLimits): CircuitBreakerPolicy {
    const { clock, hub } = this.#options
    const { name } = this.policy
    // While half-open, cockatiel counts each run as success or failure; a cancelled run must not
    // close the breaker.
    const isCounted = (error: unknown): boolean =>
      error instanceof FailedRun &&
      (error.counts === 'cancelled' ? this.state === 'half-open' : error.counts)
    const breaker = circuitBreaker(handleWhen(isCounted), {
      breaker: new ConsecutiveBreaker(failures),
      halfOpenAfter: openMs,
      // The breaker opens again when more than this share failed. The half avoids rounding errors.
      halfOpenSampling: {
        calls: halfOpenCalls,
        threshold: (halfOpenCalls - successes + 0.5) / halfOpenCalls,
      },
    })
    breaker.onStateChange((changed) => {
      const state = nameOf(changed)
      const event = { type: 'breaker', kind: 'policy', name, state } as const
      if (state !== 'open') return hub.emit(event)
      this.#openUntilMs = clock.mono() + openMs
      hub.emit({ ...event, until: toTimestamp(clock.now() + openMs) })
    })
    return breaker
  }
}

/**
 * The signal aborts on timeout, but not when the run ends: its result, such as a stream, may still
 * be in use.
 */
function createTimeLimit(ms: number): TimeoutPolicy {
  return timeout(ms, { strategy: TimeoutStrategy.Aggressive, abortOnReturn: false })
}

/**
 * Rejects on abort at once. Calls that wait in a bulkhead or half-open breaker of cockatiel notice
 * it only on their turn.
 */
function rejectOnAbort<T>(admitted: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    void admitted.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function nameOf(state: CircuitState): BreakerState['kind'] {
  if (state === CircuitState.Closed) return 'closed'
  return state === CircuitState.HalfOpen ? 'half-open' : 'open'
}
