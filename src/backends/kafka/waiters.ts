import type { Clock } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import type { ReceiveRequest, Delivery } from '../../mailbox.ts'

/** In an outage a new waiter fails after this pause: the outage can end, loops must not spin. */
const failAfterMs = 500

/** A call that waits for messages. */
export interface Waiter {
  readonly ask: ReceiveRequest
  /** When the call ends without messages, on the monotonic clock. */
  readonly endMs: number
  readonly resolve: (found: Delivery[]) => void
  readonly reject: (error: unknown) => void
}

/** The calls that wait for messages, in order. */
export class Waiters {
  readonly #clock: Clock
  /** The waiters with the functions that remove their timers and listeners. */
  readonly #waiting = new Map<Waiter, () => void>()
  #error: RedriveError | undefined
  #lastMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#waiting.size
  }

  /** When a waiter was last added or removed. */
  get lastMs(): number {
    return this.#lastMs
  }

  /** Resolves without messages at its end or when its signal aborts. Rejects in an outage. */
  add(waiter: Waiter): void {
    const { ask, endMs } = waiter
    if (ask.signal.aborted) return waiter.resolve([])
    this.#lastMs = this.#clock.mono()
    const end = (): void => this.#remove(waiter).resolve([])
    const check = (): void => {
      if (this.#error) this.#remove(waiter).reject(this.#error)
      else if (this.#clock.mono() >= endMs) end()
      else cancel = this.#clock.timer(endMs - this.#clock.mono(), check)
    }
    const firstMs = endMs - this.#lastMs
    let cancel = this.#clock.timer(this.#error ? Math.min(firstMs, failAfterMs) : firstMs, check)
    ask.signal.addEventListener('abort', end)
    this.#waiting.set(waiter, () => {
      cancel()
      ask.signal.removeEventListener('abort', end)
    })
  }

  /** Removes and returns the first waiter. */
  next(): Waiter | undefined {
    const [first] = this.#waiting.keys()
    return first && this.#remove(first)
  }

  /** Rejects all waiters, and later ones until `recover`. */
  fail(error: RedriveError): void {
    this.#error = error
    for (const waiter of this.#waiting.keys()) this.#remove(waiter).reject(error)
  }

  recover(): void {
    this.#error = undefined
  }

  close(): void {
    for (const waiter of this.#waiting.keys()) this.#remove(waiter).resolve([])
  }

  #remove(waiter: Waiter): Waiter {
    this.#lastMs = this.#clock.mono()
    this.#waiting.get(waiter)?.()
    this.#waiting.delete(waiter)
    return waiter
  }
}
