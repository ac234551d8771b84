import { Alarm } from './alarm.ts'
import type { Clock } from './clock.ts'

interface Deadline {
  atMs: number
  expire: () => void
}

/** Time limits of many pieces of work that run at once, with one timer for all of them. */
export class Deadlines {
  readonly #clock: Clock
  readonly #alarm: Alarm
  readonly #pending = new Set<Deadline>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#alarm = new Alarm(clock, (nowMs) => this.#expireDue(nowMs))
  }

  /** The result of the work, or undefined once the time is up. The work must not reject. */
  within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
    return new Promise((resolve) => {
      const deadline = { atMs: this.#clock.mono() + ms, expire: () => resolve(undefined) }
      const end = (result: T): void => {
        this.#pending.delete(deadline)
        // A timer would keep the process alive.
        if (this.#pending.size === 0) this.#alarm.off()
        resolve(result)
      }
      this.#pending.add(deadline)
      this.#alarm.by(deadline.atMs)
      void work.then(end)
    })
  }

  /** Returns the next deadline. */
  #expireDue(nowMs: number): number {
    let nextMs = Infinity
    for (const deadline of this.#pending) {
      if (deadline.atMs > nowMs) nextMs = Math.min(nextMs, deadline.atMs)
      else if (this.#pending.delete(deadline)) deadline.expire()
    }
    return nextMs
  }
}
