import type { Clock } from '../../clock.ts'
import type { Progress } from '../../kafka/progress.ts'
import type { Opened } from './packing.ts'
import type { Stored } from '../../kafka/record.ts'
import type { Reading } from '../../kafka/fetcher.ts'

/** A partition that is ours, for as long as it is. When it comes back to us later, it is another one. */
export interface Part extends Reading {
  readonly progress: Progress
  /** Records in memory that are not done. */
  readonly entries: Set<Entry>
  /** That they have together. */
  bytes: number
  /** Deliveries that are out. */
  held: number
  /** No longer given out from: somebody else will have it soon. */
  isLeaving: boolean
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
  cancel: () => void
}

/** One delivery. */
export interface Held {
  readonly entry: Entry
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
  readonly #held = new Map<string, Held>()
  readonly #session: string
  #count = 0

  constructor(clock: Clock, onLapse: (held: Held) => void) {
    this.#clock = clock
    this.#onLapse = onLapse
    this.#session = clock.id()
  }

  get size(): number {
    return this.#held.size
  }

  add(entry: Entry, deliveries: number, visibilityMs: number): Held {
    const receipt = `${this.#session}:${++this.#count}`
    const lapsesMs = this.#clock.mono() + visibilityMs
    const held: Held = { entry, receipt, deliveries, lapsesMs, isDone: false }
    entry.part.held += 1
    this.restore(held)
    return held
  }

  /** Takes it out, if it is good: whoever does decides what becomes of it. */
  take(receipt: string): Held | undefined {
    const held = this.#held.get(receipt)
    if (!held || held.lapsesMs <= this.#clock.mono()) return undefined
    held.entry.cancel()
    this.#held.delete(receipt)
    return held
  }

  /** Puts it back, since nothing came of it. */
  restore(held: Held): void {
    this.#held.set(held.receipt, held)
    this.#setAlarm(held)
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
    for (const [receipt, { entry }] of this.#held) {
      if (!isGone(entry)) continue
      entry.cancel()
      this.#held.delete(receipt)
      this.release(entry.part)
    }
  }

  /** A delivery has ended. */
  release(part: Part): void {
    part.held -= 1
    if (part.held === 0) part.onIdle()
  }

  #setAlarm(held: Held): void {
    held.entry.cancel = this.#clock.timer(held.lapsesMs - this.#clock.mono(), () => {
      this.#held.delete(held.receipt)
      this.release(held.entry.part)
      this.#onLapse(held)
    })
  }
}
