import { sleep, type Clock } from '../clock/clock.ts'

const firstPauseMs = 100
const longestPauseMs = 5000

/** Tries what must succeed until it does, with pauses that grow. */
export class Again {
  readonly #clock: Clock
  readonly #reportError: (error: unknown) => void

  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#reportError = onError
  }

  /** Undefined: the signal says that it is none of our business any more. */
  async until<T>(
    act: () => T | Promise<T>,
    signal?: AbortSignal,
    failed?: (error: unknown) => void,
  ): Promise<T | undefined> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs))
      try {
        return await act()
      } catch (error) {
        failed?.(error)
        if (signal?.aborted) return undefined
        this.#reportError(error)
        await sleep(this.#clock, pauseMs * (0.5 + this.#clock.random()), signal)
        if (signal?.aborted) return undefined
      }
  }
}
