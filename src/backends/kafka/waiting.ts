import type { Clock } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import type { ReceiveRequest, Delivery } from '../../mailbox.ts'
import { onAbort } from '../../clock/on-abort.ts'
import { Alarm } from '../../clock/alarm.ts'

/** What is wrong may soon be well again, and who asks over and over must not spin. */
const troubledMs = 500

/** Somebody who asked for messages. */
export interface Waiter {
  readonly ask: ReceiveRequest
  /** When the time is over. */
  readonly endMs: number
  readonly resolve: (found: Delivery[]) => void
  readonly reject: (error: unknown) => void
}

interface Place {
  readonly waiter: Waiter
  /** When he is looked after. */
  lookMs: number
  isOver: boolean
  forget: () => void
}

/** Those who wait for messages, in the order of coming. They are many and wait shortly: what each would need alone, they share. */
export class Waiting {
  readonly #clock: Clock
  /** In the order of coming. Some may have left. */
  #all: Place[] = []
  #size = 0
  readonly #alarm: Alarm
  #trouble: RedriveError | undefined
  #lastMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#alarm = new Alarm(clock, () => this.#look())
  }

  get size(): number {
    return this.#size
  }

  /** When somebody last came or went. */
  get lastMs(): number {
    return this.#lastMs
  }

  /** It is given nothing when its time is over or it gives up, and an error when nothing can come at present. */
  add(waiter: Waiter): void {
    const { ask, endMs, resolve } = waiter
    if (ask.signal.aborted) return resolve([])
    this.#lastMs = this.#clock.mono()
    const lookMs = this.#trouble ? Math.min(endMs, this.#lastMs + troubledMs) : endMs
    const place: Place = {
      waiter,
      lookMs,
      isOver: false,
      forget: onAbort(ask.signal, () => this.#end(place)),
    }
    if (this.#all.length > 2 * this.#size + 32) this.#present()
    this.#all.push(place)
    this.#size += 1
    this.#alarm.by(lookMs)
  }

  /** The first in line, who waits no longer. */
  next(): Waiter | undefined {
    for (let first = this.#all.shift(); first; first = this.#all.shift())
      if (!first.isOver) {
        this.#leave(first)
        return first.waiter
      }
    return undefined
  }

  fail(error: RedriveError): void {
    this.#trouble = error
    for (const place of this.#present()) this.#refuse(place, error)
  }

  well(): void {
    this.#trouble = undefined
  }

  close(): void {
    this.#alarm.off()
    for (const place of this.#present()) this.#end(place)
  }

  /** Without those who left. */
  #present(): Place[] {
    this.#all = this.#all.filter(({ isOver }) => !isOver)
    return [...this.#all]
  }

  #look(): number {
    const nowMs = this.#clock.mono()
    let nextMs = Infinity
    for (const place of this.#present())
      if (place.lookMs > nowMs) nextMs = Math.min(nextMs, place.lookMs)
      else if (this.#trouble) this.#refuse(place, this.#trouble)
      else if (place.waiter.endMs <= nowMs) this.#end(place)
      else {
        place.lookMs = place.waiter.endMs
        nextMs = Math.min(nextMs, place.lookMs)
      }
    return nextMs
  }

  #end(place: Place): void {
    this.#leave(place)
    place.waiter.resolve([])
  }

  #refuse(place: Place, error: RedriveError): void {
    this.#leave(place)
    place.waiter.reject(error)
  }

  #leave(place: Place): void {
    this.#lastMs = this.#clock.mono()
    this.#size -= 1
    place.isOver = true
    place.forget()
  }
}
