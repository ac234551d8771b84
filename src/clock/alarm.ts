import type { Clock } from './clock.ts'

/**
 * One timer for many deadlines: fires at the earliest. Deadlines are monotonic times, so steps of
 * the wall clock do not matter. Deadlines are rarely reached, so they are never cancelled: when the
 * timer fires, `ring` handles what is due and returns the next deadline, if any.
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

  /** Fires at this time at the latest. Infinity: no deadline. */
  by(atMs: number): void {
    if (atMs >= this.#atMs) return
    this.off()
    this.#atMs = atMs
    this.#cancel = this.#clock.timer(Math.max(0, atMs - this.#clock.mono()), () => {
      this.#atMs = Infinity
      this.by(this.#ring(this.#clock.mono()) ?? Infinity)
    })
  }

  /** Fires after this long at the latest. */
  within(ms: number): void {
    this.by(this.#clock.mono() + Math.max(0, ms))
  }

  off(): void {
    this.#cancel?.()
    this.#atMs = Infinity
  }
}
