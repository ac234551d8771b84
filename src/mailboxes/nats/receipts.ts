import type { Clock } from '../../clock/clock.ts'

/** How many may be held before those that have lapsed are looked for. */
const sweepEvery = 1000

/**
 * The receipts of one process. JetStream takes the acknowledgement of any delivery of a message, also of one that has lapsed, so it is
 * the holder who knows until when its own is good. It counts from before the server heard of it, and so ends first.
 */
export class Receipts {
  readonly #clock: Clock
  readonly #lapses = new Map<string, number>()
  #sweepAt = sweepEvery

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Good until then, on the monotonic clock. Never shorter than it is already. */
  hold(receipt: string, untilMs: number): void {
    this.#lapses.set(receipt, Math.max(untilMs, this.#lapses.get(receipt) ?? 0))
    if (this.#lapses.size < this.#sweepAt) return
    for (const held of this.#lapses.keys()) this.holds(held)
    this.#sweepAt = this.#lapses.size + sweepEvery
  }

  holds(receipt: string): boolean {
    const untilMs = this.#lapses.get(receipt)
    if (untilMs === undefined) return false
    if (untilMs > this.#clock.mono()) return true
    this.#lapses.delete(receipt)
    return false
  }

  drop(receipt: string): void {
    this.#lapses.delete(receipt)
  }

  clear(): void {
    this.#lapses.clear()
  }
}
