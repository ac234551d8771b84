import type { Clock } from '../clock.ts'

/**
 * Wakes once, at the soonest of the times asked for. It counts on the monotonic clock, so that a step of the wall
 * clock neither wakes it early for ever nor lets it oversleep.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #cancel: (() => void) | undefined
  #atMs = Infinity

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings after this long, unless it rings sooner anyway. */
  within(ms: number): void {
    const atMs = this.#clock.mono() + Math.max(0, ms)
    if (atMs >= this.#atMs) return
    this.off()
    this.#atMs = atMs
    this.#cancel = this.#clock.timer(Math.max(0, ms), () => {
      this.#atMs = Infinity
      this.#ring()
    })
  }

  off(): void {
    this.#cancel?.()
    this.#atMs = Infinity
  }
}
