import type { Clock } from '../../clock/clock.ts'

/** The number of receipts after which expired ones are removed. */
const sweepEvery = 1000

/**
 * The receipts of one process. JetStream accepts the acknowledgement of any delivery of a message,
 * even of an expired one, so the holder itself must know until when its receipt is valid. The time
 * starts before the server gets to know it, and so ends first.
 */
export class Receipts {
  readonly #clock: Clock
  readonly #expiries = new Map<string, number>()
  #sweepAt = sweepEvery

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Makes a receipt valid until then, on the monotonic clock. Never shortens. */
  hold(receipt: string, untilMs: number): void {
    this.#expiries.set(receipt, Math.max(untilMs, this.#expiries.get(receipt) ?? 0))
    if (this.#expiries.size < this.#sweepAt) return
    for (const held of this.#expiries.keys()) this.isValid(held)
    this.#sweepAt = this.#expiries.size + sweepEvery
  }

  isValid(receipt: string): boolean {
    const untilMs = this.#expiries.get(receipt)
    if (untilMs === undefined) return false
    if (untilMs > this.#clock.mono()) return true
    this.#expiries.delete(receipt)
    return false
  }

  drop(receipt: string): void {
    this.#expiries.delete(receipt)
  }

  clear(): void {
    this.#expiries.clear()
  }
}
