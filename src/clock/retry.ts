import { sleep, type Clock } from './clock.ts'

export interface BackoffOptions {
  /** Upper bound of the first delay. */
  firstMs: number
  /** Upper bound of every delay. */
  maxMs: number
  /** Growth from one delay to the next. Default: 2. */
  factor?: number
}

/**
 * Delays that grow exponentially. Each delay is random between half of its upper bound and the
 * whole, so that processes that lost the same server do not all come back at once.
 */
export class Backoff {
  readonly #clock: Clock
  readonly #options: BackoffOptions
  #delays = 0

  constructor(clock: Clock, options: BackoffOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** Returns the next delay. Each call makes the following delay longer. */
  nextMs(): number {
    const { firstMs, maxMs, factor = 2 } = this.#options
    const boundMs = Math.min(maxMs, firstMs * factor ** this.#delays++)
    return boundMs * (0.5 + this.#clock.random() / 2)
  }

  /** Waits for the next delay, or until the signal aborts. */
  wait(signal?: AbortSignal): Promise<void> {
    return sleep(this.#clock, this.nextMs(), signal)
  }

  /** Starts again with the first delay. Call it after a success. */
  reset(): void {
    this.#delays = 0
  }
}

export interface RetryOptions extends BackoffOptions {
  clock: Clock
  /** Ends the current delay and the retries when it aborts. */
  signal?: AbortSignal
  /** No attempt starts later than this after the first one. Default: no limit. */
  limitMs?: number
  /**
   * Whether another attempt can help. `attempt` is the one that failed, from 1. Default: always.
   */
  shouldRetry?: (error: unknown, attempt: number) => boolean
  /** Called after each failed attempt, the last one included. It must not throw. */
  onError?: (error: unknown, attempt: number) => void
}

/**
 * Calls `act` until it succeeds, with a delay after each failure. `act` is called at least once and
 * gets the number of the attempt, from 1. Rejects with the error of the last attempt when the
 * signal aborts, `limitMs` is over or `shouldRetry` returns false.
 */
export async function retry<T>(
  options: RetryOptions,
  act: (attempt: number) => T | Promise<T>,
): Promise<T> {
  const { clock, signal, limitMs = Infinity, shouldRetry, onError } = options
  const backoff = new Backoff(clock, options)
  const endMs = clock.mono() + limitMs
  for (let attempt = 1; ; attempt++)
    try {
      return await act(attempt)
    } catch (error) {
      onError?.(error, attempt)
      if (signal?.aborted || shouldRetry?.(error, attempt) === false) throw error
      const delayMs = backoff.nextMs()
      if (clock.mono() + delayMs > endMs) throw error
      await sleep(clock, delayMs, signal)
      if (signal?.aborted) throw error
    }
}
