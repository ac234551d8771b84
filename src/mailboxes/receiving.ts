import type { Clock } from '../clock/clock.ts'
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

/**
 * Those who wait for messages. One look is made for all of them, and the next when there is news or it is time. Whoever comes while a look is
 * out need not wait for its end: a second one is made.
 */
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
  /** A look for him is out. */
  sought: boolean
  end: (found: Delivery[]) => void
  fail: (error: unknown) => void
}

/** Messages that one look takes at the most. */
export const maxSlots = 500
/** Looks that may be out at once. */
const maxLooks = 2

class SharedReceiving implements Receiving {
  readonly #options: ReceivingOptions
  /** In the order of coming. Some may have left since the last look. */
  #waiting: Waiting[] = []
  #starting = false
  #looking = 0
  /** Counts the news. */
  #news = 0
  #wake: (() => void) | undefined
  #idle: (() => void)[] = []

  constructor(options: ReceivingOptions) {
    this.#options = options
  }

  receive(ask: Ask): Promise<Delivery[]> {
    if (ask.signal.aborted) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.over = true
        ask.signal.removeEventListener('abort', abort)
      }
      const end = (found: Delivery[]): void => (leave(), resolve(found))
      const fail = (error: unknown): void => (leave(), reject(error))
      const abort = (): void => (end([]), this.news())
      ask.signal.addEventListener('abort', abort, { once: true })
      const endMs = this.#options.clock.mono() + ask.waitMs
      const waiting: Waiting = { ask, endMs, over: false, sought: false, end, fail }
      this.#waiting.push(waiting)
      this.news()
      // Those of one turn share a look.
      if (!this.#starting) queueMicrotask(() => void this.#look())
      this.#starting = true
    })
  }

  news(): void {
    this.#news += 1
    this.#wake?.()
  }

  async idle(): Promise<void> {
    if (this.#starting || this.#looking > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Looks for whoever is not looked for yet, until there is nobody left, or somebody else looks and this one finds nothing. */
  async #look(): Promise<void> {
    this.#starting = false
    if (this.#looking === maxLooks || this.#willGiveBack()) return
    this.#looking += 1
    for (let found = true; found || this.#looking === 1;) {
      const all = this.#present().filter(({ sought }) => !sought)
      if (all.length === 0) break
      found = await this.#lookFor(all)
    }
    this.#looking -= 1
    if (this.#looking === 0) for (const tell of this.#idle.splice(0)) tell()
  }

  /** Without those who left, unless a look for them is out. */
  #present(): Waiting[] {
    this.#waiting = this.#waiting.filter(({ over, sought }) => sought || !over)
    return this.#waiting
  }

  /** Whether somebody left while a look for him was out. What it finds for him goes back to its place, and must not be overtaken. */
  #willGiveBack(): boolean {
    return this.#waiting.some(({ over, sought }) => over && sought)
  }

  /** Answers whether something was found. If not, and nobody else looks, it is now time to look again. */
  async #lookFor(all: Waiting[]): Promise<boolean> {
    const heard = this.#news
    for (const one of all) one.sought = true
    try {
      const slots = all.flatMap(({ ask }) => Array<number>(ask.max).fill(ask.visibilityMs))
      const { deliveries, nextMs } = await this.#options.take(slots.slice(0, maxSlots))
      await this.#share(all, deliveries)
      this.#end(all)
      if (deliveries.length > 0) return true
      if (this.#looking === 1) await this.#pause(heard, nextMs)
    } catch (error) {
      for (const { over, fail } of all) if (!over) fail(error)
      this.#end(all)
    }
    return false
  }

  #end(all: Waiting[]): void {
    for (const one of all) one.sought = false
  }

  /** What was taken for somebody who no longer waits is given back: it must not stay hidden. */
  async #share(all: Waiting[], deliveries: Delivery[]): Promise<void> {
    const nowMs = this.#options.clock.mono()
    // A look stops at so many messages and bytes: only one that found nothing says that there is nothing.
    const nothing = deliveries.length === 0
    const left: string[] = []
    let start = 0
    for (const { ask, over, end, endMs } of all) {
      const found = deliveries.slice(start, (start += ask.max))
      if (over) left.push(...found.map(({ receipt }) => receipt))
      else if (found.length > 0 || (nothing && endMs <= nowMs)) end(found)
    }
    if (left.length === 0) return
    // Should this fail, they are visible again when their receipts lapse.
    await this.#options.giveBack(left).catch(() => {})
    // Whoever looked meanwhile did not see them.
    this.news()
  }

  /** Until there is news, a hidden message is due, somebody's time is up, or it is time to look again. */
  async #pause(heard: number, nextMs = Infinity): Promise<void> {
    const present = this.#present()
    if (this.#news !== heard || present.length === 0) return
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
