import { systemClock, type Clock } from '../clock/clock.ts'

/** Shows that work goes on: whoever does some beats, and whoever supervises asks how long ago that was. */
export class Heartbeat {
  readonly #clock: Clock
  readonly #reportError: (error: unknown) => void
  #observers: (() => unknown)[] | undefined
  #beatMs: number

  /** It counts as beating from the start. `error` hears what observers throw. */
  constructor(clock: Clock = systemClock, onError: (error: unknown) => void = () => {}) {
    this.#clock = clock
    this.#reportError = onError
    this.#beatMs = clock.mono()
  }

  beat(): void {
    this.#beatMs = this.#clock.mono()
    if (this.#observers) for (const observer of this.#observers) this.#call(observer)
  }

  /** Since the last beat, on the monotonic clock. */
  elapsedMs(): number {
    return this.#clock.mono() - this.#beatMs
  }

  /** Calls the observer at every beat; one that throws or rejects hurts nobody. Returns a function that takes it away. */
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
