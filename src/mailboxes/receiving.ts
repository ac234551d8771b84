import type { Clock } from '../clock.ts'
import type { Ask, Delivery } from '../mailbox.ts'

export interface Taken {
  deliveries: Delivery[]
  /** How long until time alone makes a hidden message visible. */
  nextMs?: number
}

export interface ReceivingOptions {
  clock: Clock
  /** Takes one message for each slot at the most; a slot is how long its message is hidden, in ms. */
  take: (slots: number[]) => Promise<Taken>
  /** Makes messages visible again, as if they had not been taken. */
  giveBack: (receipts: string[]) => Promise<unknown>
  /** How long to wait before looking again when nobody tells of news. */
  pollMs: () => number
}

/** Those who wait for messages. One look is made for all of them, and the next when there is news or it is time. */
export interface Receiving {
  receive(ask: Ask): Promise<Delivery[]>
  /** Messages may have become visible. */
  news(): void
  /** Resolves once nobody waits and nothing is on its way. */
  idle(): Promise<void>
}

export function receiving(options: ReceivingOptions): Receiving {
  return new SharedReceiving(options)
}

interface Waiting {
  ask: Ask
  endMs: number
  over: boolean
  end: (found: Delivery[]) => void
  fail: (error: unknown) => void
}

/** Messages that one look takes at the most. */
const maxSlots = 500

class SharedReceiving implements Receiving {
  readonly #options: ReceivingOptions
  readonly #waiting = new Set<Waiting>()
  #looking: Promise<void> | undefined
  #news = false
  #wake: (() => void) | undefined

  constructor(options: ReceivingOptions) {
    this.#options = options
  }

  receive(ask: Ask): Promise<Delivery[]> {
    if (ask.signal.aborted) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.over = true
        this.#waiting.delete(waiting)
        ask.signal.removeEventListener('abort', abort)
      }
      const end = (found: Delivery[]): void => (leave(), resolve(found))
      const fail = (error: unknown): void => (leave(), reject(error))
      const abort = (): void => (end([]), this.news())
      const endMs = this.#options.clock.mono() + ask.waitMs
      const waiting: Waiting = { ask, endMs, over: false, end, fail }
      ask.signal.addEventListener('abort', abort)
      this.#waiting.add(waiting)
      this.news()
      // Those of one turn share a look.
      this.#looking ??= Promise.resolve().then(() => this.#look())
    })
  }

  news(): void {
    this.#news = true
    this.#wake?.()
  }

  async idle(): Promise<void> {
    while (this.#looking) await this.#looking
  }

  async #look(): Promise<void> {
    while (this.#waiting.size > 0) {
      this.#news = false
      const all = [...this.#waiting]
      try {
        const slots = all.flatMap(({ ask }) => Array<number>(ask.max).fill(ask.visibilityMs))
        const { deliveries, nextMs } = await this.#options.take(slots.slice(0, maxSlots))
        await this.#share(all, deliveries)
        if (deliveries.length === 0) await this.#pause(nextMs)
      } catch (error) {
        for (const { over, fail } of all) if (!over) fail(error)
      }
    }
    this.#looking = undefined
  }

  /** What was taken for somebody who no longer waits is given back: it must not stay hidden. */
  async #share(all: Waiting[], deliveries: Delivery[]): Promise<void> {
    const nowMs = this.#options.clock.mono()
    // Then those who came last had no slot, and there may be more for them.
    const full = deliveries.length === maxSlots
    const left: string[] = []
    let start = 0
    for (const { ask, over, end, endMs } of all) {
      const found = deliveries.slice(start, (start += ask.max))
      if (over) left.push(...found.map(({ receipt }) => receipt))
      else if (found.length > 0 || (endMs <= nowMs && !full)) end(found)
    }
    if (left.length === 0) return
    // Should this fail, they are visible again when their receipts lapse.
    await this.#options.giveBack(left).catch(() => {})
  }

  /** Until there is news, a hidden message is due, somebody's time is up, or it is time to look again. */
  async #pause(nextMs = Infinity): Promise<void> {
    if (this.#news || this.#waiting.size === 0) return
    const { clock, pollMs } = this.#options
    let leastMs = Math.min(nextMs, pollMs())
    for (const { endMs } of this.#waiting) leastMs = Math.min(leastMs, endMs - clock.mono())
    await new Promise<void>((resolve) => {
      const cancel = clock.timer(Math.max(1, leastMs), resolve)
      this.#wake = () => (cancel(), resolve())
    })
    this.#wake = undefined
  }
}
