import type { Clock } from '../../clock.ts'
import type { RedriveError } from '../../errors.ts'
import type { Ask, Delivery } from '../../mailbox.ts'
import { Alarm } from '../../alarm.ts'

/** What is wrong may soon be well again, and who asks over and over must not spin. */
const troubledMs = 500

/** Somebody who asked for messages. */
export interface Waiter {
  readonly ask: Ask
  /** When the time is over. */
  readonly endMs: number
  readonly resolve: (found: Delivery[]) => void
  readonly reject: (error: unknown) => void
}

/** Those who wait for messages, in the order of coming. They are many and wait shortly: what each would need alone, they share. */
export class Waiting {
  readonly #clock: Clock
  /** When each is looked after. */
  readonly #all = new Map<Waiter, number>()
  readonly #signals = new Map<AbortSignal, number>()
  readonly #alarm: Alarm
  readonly #abort: () => void
  #trouble: RedriveError | undefined
  #lastMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#alarm = new Alarm(clock, () => this.#look())
    this.#abort = () => {
      for (const waiter of this.#all.keys()) if (waiter.ask.signal.aborted) this.#end(waiter)
    }
  }

  get size(): number {
    return this.#all.size
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
    this.#all.set(waiter, lookMs)
    this.#alarm.by(lookMs)
    const sharing = this.#signals.get(ask.signal) ?? 0
    this.#signals.set(ask.signal, sharing + 1)
    if (sharing === 0) ask.signal.addEventListener('abort', this.#abort)
  }

  /** The first in line, who waits no longer. */
  next(): Waiter | undefined {
    for (const waiter of this.#all.keys()) {
      this.#leave(waiter)
      return waiter
    }
    return undefined
  }

  fail(error: RedriveError): void {
    this.#trouble = error
    for (const waiter of this.#all.keys()) this.#refuse(waiter, error)
  }

  well(): void {
    this.#trouble = undefined
  }

  close(): void {
    this.#alarm.off()
    for (const waiter of this.#all.keys()) this.#end(waiter)
  }

  #look(): number {
    const nowMs = this.#clock.mono()
    let nextMs = Infinity
    for (const [waiter, lookMs] of this.#all)
      if (lookMs > nowMs) nextMs = Math.min(nextMs, lookMs)
      else if (this.#trouble) this.#refuse(waiter, this.#trouble)
      else if (waiter.endMs <= nowMs) this.#end(waiter)
      else {
        this.#all.set(waiter, waiter.endMs)
        nextMs = Math.min(nextMs, waiter.endMs)
      }
    return nextMs
  }

  #end(waiter: Waiter): void {
    this.#leave(waiter)
    waiter.resolve([])
  }

  #refuse(waiter: Waiter, error: RedriveError): void {
    this.#leave(waiter)
    waiter.reject(error)
  }

  #leave(waiter: Waiter): void {
    const { signal } = waiter.ask
    this.#lastMs = this.#clock.mono()
    this.#all.delete(waiter)
    const sharing = this.#signals.get(signal)! - 1
    if (sharing > 0) return void this.#signals.set(signal, sharing)
    this.#signals.delete(signal)
    signal.removeEventListener('abort', this.#abort)
  }
}
