import type { Clock } from '../../clock/clock.ts'
import type { Part as OurPart } from './parts.ts'
import { Alarm } from '../../clock/alarm.ts'
import type { Opened } from './packing.ts'
import type { Stored } from './record.ts'

/** A partition that is ours, and what we have of it. */
export interface Part extends OurPart {
  /** Records in memory that are not done. */
  readonly entries: Set<Entry>
  /** That they have together. */
  bytes: number
  /** Deliveries that are out. */
  held: number
  /** Called when nothing is out any more. */
  onIdle: () => void
}

/** A record that waits, for its time or for somebody to take it, or that somebody has. */
export interface Entry {
  readonly part: Part
  readonly stored: Stored
  readonly opened: Opened
  firstReceivedMs: number | undefined
  /** It waits for its time. */
  isDelayed: boolean
  /** Waits for its time no longer. */
  cancel: () => void
}

/** One delivery. */
export interface Held {
  readonly entry: Entry
  readonly number: number
  readonly receipt: string
  readonly deliveries: number
  lapsesMs: number
  /** It is acknowledged, but the broker may not have heard of it. */
  isDone: boolean
}

/** The deliveries that are out. A receipt is good for its time, and not longer. */
export class Holding {
  readonly #clock: Clock
  readonly #onLapse: (held: Held) => void
  readonly #held = new Map<number, Held>()
  #lastNumber = 0
  readonly #alarm: Alarm
  readonly #session: string

  constructor(clock: Clock, onLapse: (held: Held) => void) {
    this.#clock = clock
    this.#onLapse = onLapse
    this.#alarm = new Alarm(clock, () => this.#lapse())
    this.#session = clock.id()
  }

  get size(): number {
    return this.#held.size
  }

  add(entry: Entry, deliveries: number, visibilityMs: number): Held {
    const number = ++this.#lastNumber
    const receipt = `${this.#session}:${number}`
    const lapsesMs = this.#clock.mono() + visibilityMs
    const held: Held = { entry, number, receipt, deliveries, lapsesMs, isDone: false }
    entry.part.held += 1
    this.restore(held)
    return held
  }

  /** Takes it out, if it is good: whoever does decides what becomes of it. */
  take(receipt: string): Held | undefined {
    const held = this.#held.get(Number(receipt.slice(this.#session.length + 1)))
    if (held?.receipt !== receipt || held.lapsesMs <= this.#clock.mono()) return undefined
    this.#held.delete(held.number)
    return held
  }

  /** Puts it back, since nothing came of it. */
  restore(held: Held): void {
    this.#held.set(held.number, held)
    this.#alarm.by(held.lapsesMs)
  }

  /** At least so long from now. */
  extend(receipt: string, ms: number): boolean {
    const held = this.take(receipt)
    if (!held) return false
    held.lapsesMs = Math.max(held.lapsesMs, this.#clock.mono() + ms)
    this.restore(held)
    return true
  }

  /** All receipts of these are stale. */
  drop(isGone: (entry: Entry) => boolean): void {
    for (const held of this.#held.values()) if (isGone(held.entry)) this.#end(held)
  }

  /** A delivery has ended. */
  release(part: Part): void {
    part.held -= 1
    if (part.held === 0) part.onIdle()
  }

  close(): void {
    this.#alarm.off()
  }

  #end(held: Held): void {
    this.#held.delete(held.number)
    this.release(held.entry.part)
  }

  #lapse(): number {
    const nowMs = this.#clock.mono()
    let nextMs = Infinity
    for (const held of [...this.#held.values()])
      if (held.lapsesMs > nowMs) nextMs = Math.min(nextMs, held.lapsesMs)
      else {
        this.#end(held)
        this.#onLapse(held)
      }
    return nextMs
  }
}
