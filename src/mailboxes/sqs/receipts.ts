import type { Clock } from '../../clock/clock.ts'

/** The number of receipts after which expired ones are removed. */
const sweepEvery = 1000

interface Held {
  receivedMs: number
  expiresMs: number
}

/**
 * The receipts of one process. SQS may still delete a message by an expired receipt, although
 * another consumer has it by then, so the holder itself must know until when its receipt is valid.
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
    this.#held.set(receipt, { receivedMs, expiresMs: receivedMs + visibilityMs })
    if (this.#held.size < this.#sweepAt) return
    for (const one of this.#held.keys()) this.ageMs(one)
    this.#sweepAt = this.#held.size + sweepEvery
  }

  /** How long the receipt has been held. Undefined if it has expired. */
  ageMs(receipt: string): number | undefined {
    const held = this.#held.get(receipt)
    const nowMs = this.#clock.mono()
    if (held && held.expiresMs > nowMs) return nowMs - held.receivedMs
    this.#held.delete(receipt)
    return undefined
  }

  /** Makes a receipt valid until then, on the monotonic clock. Never shortens. */
  extend(receipt: string, expiresMs: number): void {
    const held = this.#held.get(receipt)
    if (held) held.expiresMs = Math.max(held.expiresMs, expiresMs)
  }

  drop(receipt: string): void {
    this.#held.delete(receipt)
  }

  clear(): void {
    this.#held.clear()
  }
}
