import type { Clock } from './clock.ts'

/**
 * One timer for many moments: rings at the soonest of those asked for. It counts on the monotonic clock, so that a step of the wall clock
 * neither wakes it early for ever nor lets it oversleep. Most of what is to happen by some time happens long before, so nothing is taken
 * back then: `ring` does what is due, and may say when to look again.
 */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: (nowMs: number) => number | void
  #cancel: (() => void) | undefined
  #atMs = Infinity

  constructor(clock: Clock, ring: (nowMs: number) => number | void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings at this moment, unless it rings sooner anyway. Infinity: asks for nothing. */
  by(atMs: number): void {
    if (atMs >= this.#atMs) return
    this.off()
    this.#atMs = atMs
    this.#cancel = this.#clock.timer(Math.max(0, atMs - this.#clock.mono()), () => {
      this.#atMs = Infinity
      this.by(this.#ring(this.#clock.mono()) ?? Infinity)
    })
  }

  /** Rings after this long, unless it rings sooner anyway. */
  within(ms: number): void {
    this.by(this.#clock.mono() + Math.max(0, ms))
  }

  off(): void {
    this.#cancel?.()
    this.#atMs = Infinity
  }
}
