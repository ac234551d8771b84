import type { Clock } from '../clock/clock.ts'
import type { ReceiveRequest, Delivery } from '../mailbox.ts'

export interface TakenMessages {
  deliveries: Delivery[]
  /** The time until the next hidden message becomes visible. */
  nextMs?: number
}

export interface SharedReceiverOptions {
  clock: Clock
  /** Takes at most one message per slot; a slot is how long its message is hidden, in ms. */
  take: (slots: number[]) => Promise<TakenMessages>
  /** Makes messages visible again, as if they had not been taken. */
  release: (receipts: string[]) => Promise<unknown>
  /** The interval of polls without notifications. */
  pollMs: () => number
}

interface Waiter {
  ask: ReceiveRequest
  endMs: number
  hasLeft: boolean
  /** A poll for this waiter is in flight. */
  isPolled: boolean
  end: (found: Delivery[]) => void
  fail: (error: unknown) => void
}

/** Maximum number of messages per poll. */
export const maxSlots = 500
/** Maximum number of polls in flight. */
const maxPolls = 2

/**
 * Receives for all waiters of a mailbox with shared polls: the next poll starts after a
 * notification or an interval. A waiter that comes during a poll need not wait for its end: a
 * second poll is started.
 */
export class SharedReceiver {
  readonly #options: SharedReceiverOptions
  /** In order of arrival. Some may have left since the last poll. */
  #waiters: Waiter[] = []
  #starting = false
  #polls = 0
  /** The number of notifications. */
  #notifications = 0
  #wake: (() => void) | undefined
  #idle: (() => void)[] = []

  constructor(options: SharedReceiverOptions) {
    this.#options = options
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    if (ask.signal.aborted) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiter.hasLeft = true
        ask.signal.removeEventListener('abort', abort)
      }
      const end = (found: Delivery[]): void => (leave(), resolve(found))
      const fail = (error: unknown): void => (leave(), reject(error))
      const abort = (): void => (end([]), this.notify())
      ask.signal.addEventListener('abort', abort, { once: true })
      const endMs = this.#options.clock.mono() + ask.waitMs
      const waiter: Waiter = { ask, endMs, hasLeft: false, isPolled: false, end, fail }
      this.#waiters.push(waiter)
      this.notify()
      // Calls made in the same tick share a poll.
      if (!this.#starting) queueMicrotask(() => void this.#poll())
      this.#starting = true
    })
  }

  /** Messages may have become visible. */
  notify(): void {
    this.#notifications += 1
    this.#wake?.()
  }

  /** Resolves once nobody waits and no poll is in flight. */
  async idle(): Promise<void> {
    if (this.#starting || this.#polls > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /**
   * Polls for waiters without a poll in flight, until none is left, or until this poll finds
   * nothing and another one is in flight.
   */
  async #poll(): Promise<void> {
    this.#starting = false
    if (this.#polls === maxPolls || this.#willRelease()) return
    this.#polls += 1
    for (let found = true; found || this.#polls === 1;) {
      const all = this.#present().filter(({ isPolled }) => !isPolled)
      if (all.length === 0) break
      found = await this.#pollFor(all)
    }
    this.#polls -= 1
    if (this.#polls === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Without waiters that have left, unless a poll for them is in flight. */
  #present(): Waiter[] {
    this.#waiters = this.#waiters.filter(({ hasLeft, isPolled }) => isPolled || !hasLeft)
    return this.#waiters
  }

  /**
   * Whether a waiter left while a poll for it was in flight. Messages for it return to their place,
   * and must not be overtaken.
   */
  #willRelease(): boolean {
    return this.#waiters.some(({ hasLeft, isPolled }) => hasLeft && isPolled)
  }

  /**
   * Returns whether something was found. If not, and no other poll is in flight, waits until the
   * next poll is due.
   */
  async #pollFor(all: Waiter[]): Promise<boolean> {
    const seen = this.#notifications
    for (const one of all) one.isPolled = true
    try {
      const slots = all.flatMap(({ ask }) => Array<number>(ask.max).fill(ask.visibilityMs))
      const { deliveries, nextMs } = await this.#options.take(slots.slice(0, maxSlots))
      await this.#handOut(all, deliveries)
      this.#end(all)
      if (deliveries.length > 0) return true
      if (this.#polls === 1) await this.#waitForPoll(seen, nextMs)
    } catch (error) {
      for (const { hasLeft, fail } of all) if (!hasLeft) fail(error)
      this.#end(all)
    }
    return false
  }

  #end(all: Waiter[]): void {
    for (const one of all) one.isPolled = false
  }

  /**
   * Hands out messages. Those taken for a waiter that has left are released: they must not stay
   * hidden.
   */
  async #handOut(all: Waiter[], deliveries: Delivery[]): Promise<void> {
    const nowMs = this.#options.clock.mono()
    // A poll is limited in messages and bytes: only a poll that found nothing means that there is
    // nothing.
    const nothing = deliveries.length === 0
    const left: string[] = []
    let start = 0
    for (const { ask, hasLeft, end, endMs } of all) {
      const found = deliveries.slice(start, (start += ask.max))
      if (hasLeft) left.push(...found.map(({ receipt }) => receipt))
      else if (found.length > 0 || (nothing && endMs <= nowMs)) end(found)
    }
    if (left.length === 0) return
    // If this fails, the messages become visible when their receipts expire.
    await this.#options.release(left).catch(() => {})
    // A poll in the meantime did not see them.
    this.notify()
  }

  /**
   * Waits for a notification, the next hidden message, the time limit of a waiter, or the next
   * poll.
   */
  async #waitForPoll(seen: number, nextMs = Infinity): Promise<void> {
    const present = this.#present()
    if (this.#notifications !== seen || present.length === 0) return
    const { clock, pollMs } = this.#options
    let leastMs = Math.min(nextMs, pollMs())
    for (const { endMs } of present) leastMs = Math.min(leastMs, endMs - clock.mono())
    await new Promise<void>((resolve) => {
      const cancel = clock.timer(Math.max(1, leastMs), resolve)
      this.#wake = () => (cancel(), resolve())
    })
    this.#wake = undefined
  }
}
