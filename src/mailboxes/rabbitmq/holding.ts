import type { Clock } from '../../clock/clock.ts'
import type { Delivery } from '../../mailbox.ts'
import { Alarm } from '../../clock/alarm.ts'
import type { Arrived, Session } from '../../backends/rabbitmq/session.ts'

/** A message that somebody has. */
export interface Held extends Arrived {
  delivery: Delivery
  /** On the monotonic clock. */
  lapsesMs: number
}

/** What is out, by receipt. RabbitMQ hides a message for as long as its channel lives; that it lapses before is up to us. */
export class Holding {
  readonly #clock: Clock
  readonly #onLapse: (held: Held) => void
  readonly #alarm: Alarm
  readonly #held = new Map<string, Held>()

  constructor(clock: Clock, onLapse: (held: Held) => void) {
    this.#clock = clock
    this.#onLapse = onLapse
    this.#alarm = new Alarm(clock, (nowMs) => this.#lapse(nowMs))
  }

  get size(): number {
    return this.#held.size
  }

  add(arrived: Arrived, delivery: Delivery, visibilityMs: number): void {
    const lapsesMs = this.#clock.mono() + visibilityMs
    this.#keep({ ...arrived, delivery, lapsesMs })
  }

  /** Ends the hold. Whoever gets the message here is the one who settles it; undefined: the receipt is stale. */
  take(receipt: string): Held | undefined {
    const held = this.#held.get(receipt)
    if (!held || held.lapsesMs <= this.#clock.mono()) return undefined
    this.#held.delete(receipt)
    return held
  }

  /** As it was before it was taken, if it still holds. */
  restore(held: Held): void {
    if (!held.session.isLost) this.#keep(held)
  }

  extend(receipt: string, ms: number): boolean {
    const held = this.take(receipt)
    if (!held) return false
    held.lapsesMs = Math.max(held.lapsesMs, this.#clock.mono() + ms)
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
    this.#alarm.by(held.lapsesMs)
  }

  #lapse(nowMs: number): number {
    let nextMs = Infinity
    for (const [receipt, held] of this.#held)
      if (held.lapsesMs > nowMs) nextMs = Math.min(nextMs, held.lapsesMs)
      else {
        this.#held.delete(receipt)
        this.#onLapse(held)
      }
    return nextMs
  }
}
