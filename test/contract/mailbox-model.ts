/** A delivery, by what tells it from all others that are not settled. */
export interface Given {
  id: string
  deliveries: number
}

export interface Item {
  id: string
  /** Never delivered and never delayed: such come in the order of sending. */
  fresh: boolean
  deliveries: number
  failures: number
  firstReceivedMs: number | undefined
  enqueuedMs: number
  /** It becomes visible between these two moments, which are the same where time is in the hands of the test. */
  earliestMs: number
  latestMs: number
  /** The delivery that may settle it. */
  holder: Given | undefined
}

/** The mailbox contract in the plainest form: one array that is scanned for everything. */
export class MailboxModel {
  items: Item[] = []
  nowMs: number
  readonly #marginMs: number

  /** The margin is how far the mailbox's time may be from ours. */
  constructor(nowMs: number, marginMs: number) {
    this.nowMs = nowMs
    this.#marginMs = marginMs
  }

  send(id: string, delayMs: number): void {
    const item: Item = {
      id,
      fresh: delayMs === 0,
      deliveries: 0,
      failures: 0,
      firstReceivedMs: undefined,
      enqueuedMs: this.nowMs,
      earliestMs: this.nowMs,
      latestMs: this.nowMs,
      holder: undefined,
    }
    if (delayMs > 0) this.#hide(item, delayMs)
    this.items.push(item)
  }

  /** What can be had now, and what perhaps can. */
  visible(): { surely: Item[]; perhaps: Item[] } {
    const before = (ms: number): boolean => ms <= this.nowMs
    return {
      surely: this.items.filter((item) => before(item.latestMs)),
      perhaps: this.items.filter((item) => before(item.earliestMs)),
    }
  }

  /** Delivers this one, which must be visible. */
  give(id: string, visibilityMs: number): Item {
    const item = this.visible().perhaps.find((one) => one.id === id)
    if (!item) throw new Error(`${id} is not to be had`)
    item.fresh = false
    item.deliveries += 1
    item.firstReceivedMs ??= this.nowMs
    item.holder = { id, deliveries: item.deliveries }
    this.#hide(item, visibilityMs)
    return item
  }

  /** Whether the delivery may still settle its message. Undefined: it is too close to say. */
  holds(given: Given): boolean | undefined {
    const item = this.#item(given)
    if (!item || item.latestMs <= this.nowMs) return false
    return item.earliestMs > this.nowMs ? true : undefined
  }

  acknowledge(given: Given): void {
    const item = this.#item(given)
    this.items = this.items.filter((one) => one !== item)
  }

  /** `counts`: it stays a delivery. */
  nack(given: Given, how: { delayMs: number; failed: boolean; counts: boolean }): void {
    const { delayMs, failed, counts } = how
    const item = this.#item(given)!
    item.holder = undefined
    if (failed) item.failures += 1
    if (!counts) item.deliveries -= 1
    if (delayMs > 0) this.#hide(item, delayMs)
    else item.earliestMs = item.latestMs = this.nowMs
  }

  extend(given: Given, ms: number): void {
    const item = this.#item(given)!
    const { earliestMs, latestMs } = item
    this.#hide(item, ms)
    item.earliestMs = Math.max(item.earliestMs, earliestMs)
    item.latestMs = Math.max(item.latestMs, latestMs)
  }

  purge(): number {
    return this.items.splice(0).length
  }

  /** A broker may give back what a closed handle held, or wait until it lapses. */
  handleClosed(): void {
    if (this.#marginMs === 0) return
    for (const item of this.items) item.earliestMs = Math.min(item.earliestMs, this.nowMs)
  }

  #hide(item: Item, ms: number): void {
    item.earliestMs = this.nowMs + ms - this.#marginMs
    item.latestMs = this.nowMs + ms + this.#marginMs
  }

  #item({ id, deliveries }: Given): Item | undefined {
    return this.items.find((item) => item.id === id && item.holder?.deliveries === deliveries)
  }
}
