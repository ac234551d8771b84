import type { Clock } from '../../clock.ts'
import type { Delivery } from '../../mailbox.ts'
import type { Arrived, Session } from './session.ts'

/** A message that somebody has. */
export interface Held extends Arrived {
  delivery: Delivery
  /** On the monotonic clock. */
  lapsesMs: number
  /** Stops its timer. */
  stop: () => void
}

/** What is out, by receipt. RabbitMQ hides a message for as long as its channel lives; that it lapses before is up to us. */
export class Holding {
  readonly #clock: Clock
  readonly #onLapse: (held: Held) => void
  readonly #held = new Map<string, Held>()

  constructor(clock: Clock, onLapse: (held: Held) => void) {
    this.#clock = clock
    this.#onLapse = onLapse
  }

  get size(): number {
    return this.#held.size
  }

  add(arrived: Arrived, delivery: Delivery, visibilityMs: number): void {
    const lapsesMs = this.#clock.mono() + visibilityMs
    this.#keep({ ...arrived, delivery, lapsesMs, stop: () => {} })
  }

  /** Ends the hold. Whoever gets the message here is the one who settles it; undefined: the receipt is stale. */
  take(receipt: string): Held | undefined {
    const held = this.#held.get(receipt)
    if (!held || held.lapsesMs <= this.#clock.mono()) return undefined
    this.#release(held)
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
    for (const held of all) this.#release(held)
    return all
  }

  lose(session: Session): void {
    for (const held of this.#held.values()) if (held.session === session) this.#release(held)
  }

  #keep(held: Held): void {
    this.#held.set(held.delivery.receipt, held)
    held.stop = this.#clock.timer(held.lapsesMs - this.#clock.mono(), () => {
      this.#release(held)
      this.#onLapse(held)
    })
  }

  #release(held: Held): void {
    held.stop()
    this.#held.delete(held.delivery.receipt)
  }
}
