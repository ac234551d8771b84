import { systemClock, type Clock } from '../clock/clock.ts'

/**
 * A sign of progress: whoever does work beats, and whoever supervises reads the time since the last
 * beat.
 */
export class Heartbeat {
  readonly #clock: Clock
  readonly #reportError: (error: unknown) => void
  #observers: (() => unknown)[] | undefined
  #beatMs: number

  /** The time starts now. `onError` gets the errors of observers. */
  constructor(clock: Clock = systemClock, onError: (error: unknown) => void = () => {}) {
    this.#clock = clock
    this.#reportError = onError
    this.#beatMs = clock.mono()
  }

  beat(): void {
    this.#beatMs = this.#clock.mono()
    if (this.#observers) for (const observer of this.#observers) this.#call(observer)
  }

  /** Milliseconds since the last beat, on the monotonic clock. */
  elapsedMs(): number {
    return this.#clock.mono() - this.#beatMs
  }

  /**
   * Calls the observer at every beat; its errors are reported and do no harm. Returns a function
   * that removes the observer.
   */
  observe(observer: () => unknown): () => void {
    this.#observers = [...(this.#observers ?? []), observer]
    return () => {
      this.#observers = this.#observers?.filter((other) => other !== observer)
    }
  }

  #call(observer: () => unknown): void {
    try {
      const returned = observer()
      if (returned instanceof Promise) returned.catch(this.#reportError)
    } catch (error) {
      this.#reportError(error)
    }
  }
}
