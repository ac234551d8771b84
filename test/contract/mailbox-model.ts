/** The identity of an unsettled delivery. */
export interface Delivery {
  id: string
  deliveries: number
}

export interface Item {
  id: string
  /** Never delivered and never delayed: such messages arrive in the order of sending. */
  fresh: boolean
  deliveries: number
  failures: number
  firstReceivedMs: number | undefined
  enqueuedMs: number
  /** Becomes visible between these two times, which are equal with a fake clock. */
  earliestMs: number
  latestMs: number
  /** The delivery that may settle the message. */
  holder: Delivery | undefined
}

/** The mailbox contract in its simplest form: one array that is scanned for everything. */
export class MailboxModel {
  items: Item[] = []
  nowMs: number
  readonly #marginMs: number

  /** `margin`: the maximum clock difference to the mailbox. */
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

  /** Messages that are visible now, and those that may be. */
  visible(): { surely: Item[]; perhaps: Item[] } {
    const before = (ms: number): boolean => ms <= this.nowMs
    return {
      surely: this.items.filter((item) => before(item.latestMs)),
      perhaps: this.items.filter((item) => before(item.earliestMs)),
    }
  }

  /** Delivers a message, which must be visible. */
  give(id: string, visibilityMs: number): Item {
    const item = this.visible().perhaps.find((one) => one.id === id)
    if (!item) throw new Error(`${id} is not visible`)
    item.fresh = false
    item.deliveries += 1
    item.firstReceivedMs ??= this.nowMs
    item.holder = { id, deliveries: item.deliveries }
    this.#hide(item, visibilityMs)
    return item
  }

  /** Whether the delivery may still settle its message. Undefined: too close to its expiry. */
  holds(given: Delivery): boolean | undefined {
    const item = this.#item(given)
    if (!item || item.latestMs <= this.nowMs) return false
    return item.earliestMs > this.nowMs ? true : undefined
  }

  acknowledge(given: Delivery): void {
    const item = this.#item(given)
    this.items = this.items.filter((one) => one !== item)
  }

  /** `counts`: the delivery stays counted. */
  nack(given: Delivery, how: { delayMs: number; failed: boolean; counts: boolean }): void {
    const { delayMs, failed, counts } = how
    const item = this.#item(given)!
    item.holder = undefined
    if (failed) item.failures += 1
    if (!counts) item.deliveries -= 1
    if (delayMs > 0) this.#hide(item, delayMs)
    else item.earliestMs = item.latestMs = this.nowMs
  }

  extend(given: Delivery, ms: number): void {
    const item = this.#item(given)!
    const { earliestMs, latestMs } = item
    this.#hide(item, ms)
    item.earliestMs = Math.max(item.earliestMs, earliestMs)
    item.latestMs = Math.max(item.latestMs, latestMs)
  }

  purge(): number {
    return this.items.splice(0).length
  }

  /** A broker may release the messages of a closed handle, or let their receipts expire. */
  handleClosed(): void {
    if (this.#marginMs === 0) return
    for (const item of this.items) item.earliestMs = Math.min(item.earliestMs, this.nowMs)
  }

  #hide(item: Item, ms: number): void {
    item.earliestMs = this.nowMs + ms - this.#marginMs
    item.latestMs = this.nowMs + ms + this.#marginMs
  }

  #item({ id, deliveries }: Delivery): Item | undefined {
    return this.items.find((item) => item.id === id && item.holder?.deliveries === deliveries)
  }
}
