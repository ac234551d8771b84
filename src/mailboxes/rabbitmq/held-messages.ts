import type { Clock } from '../../clock/clock.ts'
import type { Delivery } from '../../mailbox.ts'
import { Alarm } from '../../clock/alarm.ts'
import type { ReceivedMessage, Session } from '../../backends/rabbitmq/session.ts'

/** A message that is handed out. */
export interface Held extends ReceivedMessage {
  delivery: Delivery
  /** On the monotonic clock. */
  expiresMs: number
}

/**
 * Messages that are handed out, by receipt. RabbitMQ hides a message as long as its channel lives;
 * expiry is up to us.
 */
export class HeldMessages {
  readonly #clock: Clock
  readonly #onExpiry: (held: Held) => void
  readonly #alarm: Alarm
  readonly #held = new Map<string, Held>()

  constructor(clock: Clock, onExpiry: (held: Held) => void) {
    this.#clock = clock
    this.#onExpiry = onExpiry
    this.#alarm = new Alarm(clock, (nowMs) => this.#expire(nowMs))
  }

  get size(): number {
    return this.#held.size
  }

  add(arrived: ReceivedMessage, delivery: Delivery, visibilityMs: number): void {
    const expiresMs = this.#clock.mono() + visibilityMs
    this.#keep({ ...arrived, delivery, expiresMs })
  }

  /**
   * Ends the hold. The caller that gets the message settles it. Undefined if the receipt is stale.
   */
  take(receipt: string): Held | undefined {
    const held = this.#held.get(receipt)
    if (!held || held.expiresMs <= this.#clock.mono()) return undefined
    this.#held.delete(receipt)
    return held
  }

  /** Undoes `take`, if the session still exists. */
  restore(held: Held): void {
    if (!held.session.isLost) this.#keep(held)
  }

  extend(receipt: string, ms: number): boolean {
    const held = this.take(receipt)
    if (!held) return false
    held.expiresMs = Math.max(held.expiresMs, this.#clock.mono() + ms)
    this.#keep(held)
    return true
  }

  takeAll(): Held[] {
    const all = [...this.#held.values()]
    this.#held.clear()
    this.#alarm.off()
    return all
  }

  lose(session: Session): void {
    for (const [receipt, held] of this.#held)
      if (held.session === session) this.#held.delete(receipt)
  }

  #keep(held: Held): void {
    this.#held.set(held.delivery.receipt, held)
    this.#alarm.by(held.expiresMs)
  }

  #expire(nowMs: number): number {
    let nextMs = Infinity
    for (const [receipt, held] of this.#held)
      if (held.expiresMs > nowMs) nextMs = Math.min(nextMs, held.expiresMs)
      else {
        this.#held.delete(receipt)
        this.#onExpiry(held)
      }
    return nextMs
  }
}
