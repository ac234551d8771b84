import type { Clock } from '../../clock/clock.ts'

/** How many may be held before those that have lapsed are looked for. */
const sweepEvery = 1000

interface Held {
  receivedMs: number
  lapsesMs: number
}

/**
 * The receipts of one process. SQS may still delete a message by a receipt that has lapsed, although somebody else has it by then, so it
 * is the holder who knows until when its own is good.
 */
export class Receipts {
  readonly #clock: Clock
  readonly #held = new Map<string, Held>()
  #sweepAt = sweepEvery

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(receipt: string, visibilityMs: number): void {
    const receivedMs = this.#clock.mono()
    this.#held.set(receipt, { receivedMs, lapsesMs: receivedMs + visibilityMs })
    if (this.#held.size < this.#sweepAt) return
    for (const one of this.#held.keys()) this.ageMs(one)
    this.#sweepAt = this.#held.size + sweepEvery
  }

  /** For how long it has been held. Undefined: it does not hold any more. */
  ageMs(receipt: string): number | undefined {
    const held = this.#held.get(receipt)
    const nowMs = this.#clock.mono()
    if (held && held.lapsesMs > nowMs) return nowMs - held.receivedMs
    this.#held.delete(receipt)
    return undefined
  }

  /** Good until then, on the monotonic clock. Never shorter than it is already. */
  prolong(receipt: string, lapsesMs: number): void {
    const held = this.#held.get(receipt)
    if (held) held.lapsesMs = Math.max(held.lapsesMs, lapsesMs)
  }

  drop(receipt: string): void {
    this.#held.delete(receipt)
  }

  clear(): void {
    this.#held.clear()
  }
}
