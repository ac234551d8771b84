import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { ReceiveRequest, Delivery, OutgoingMessage } from '../../mailbox.ts'
import { Hidden, type Hiding } from './hidden.ts'

/** Limits of the handle that sends or receives. */
export interface Rules {
  maxMessages: number
  /** 0: messages never expire. */
  retentionMs: number
  /** Called with the number of expired messages that this handle removed. */
  report: (count: number) => void
}

/** A message: visible, hidden after a delivery, or delayed. */
interface QueuedMessage extends Hiding {
  readonly message: OutgoingMessage
  readonly enqueuedMs: number
  firstReceivedMs: number | undefined
  deliveries: number
  failures: number
  /** Receipt of the newest delivery, while it is valid. */
  receipt: string | undefined
  /** The next visible message. */
  next: QueuedMessage | undefined
}

/** What a receiver requests. */
interface Taking {
  max: number
  visibilityMs: number
  rules: Rules
}

/** A waiting receiver. */
interface Waiter extends Taking {
  give: (found: Delivery[]) => void
}

/** The messages of one mailbox, shared by any number of handles. */
export class MemoryQueue {
  readonly #name: string
  readonly #clock: Clock
  /** By id, in the order of sending. */
  readonly #messages = new Map<string, QueuedMessage>()
  readonly #byReceipt = new Map<string, QueuedMessage>()
  /** Delivered or delayed messages. Times are monotonic. */
  readonly #hidden = new Hidden<QueuedMessage>()
  /**
   * Linked list of visible messages, in the order in which they became visible. Empty while
   * receivers wait.
   */
  #head: QueuedMessage | undefined
  #tail: QueuedMessage | undefined
  /** First come, first served. */
  readonly #waiters = new Set<Waiter>()
  /** Timer for the next hidden message, while receivers wait. */
  #alarm: { atMs: number; cancel: () => void } | undefined
  #seq = 0
  #receipts = 0

  constructor(name: string, clock: Clock) {
    this.#name = name
    this.#clock = clock
  }

  get size(): number {
    return this.#messages.size
  }

  /** Expired messages neither count towards the limit nor block an id. */
  send(message: OutgoingMessage, delayMs: number, rules: Rules): void {
    const { maxMessages } = rules
    if (this.#messages.has(message.id) || this.#messages.size >= maxMessages) this.#expire(rules)
    if (this.#messages.has(message.id)) return
    if (this.#messages.size >= maxMessages)
      throw new RedriveError(
        'MAILBOX_FULL',
        `${this.#name} already has ${maxMessages} messages (maxMessages): receive some, or raise the limit`,
      )
    const queued: QueuedMessage = {
      message,
      seq: ++this.#seq,
      place: -1,
      enqueuedMs: this.#clock.now(),
      firstReceivedMs: undefined,
      deliveries: 0,
      failures: 0,
      hiddenUntilMs: 0,
      receipt: undefined,
      next: undefined,
    }
    this.#messages.set(message.id, queued)
    this.#enter(queued, delayMs)
  }

  receive(
    { max, visibilityMs, waitMs, signal }: ReceiveRequest,
    rules: Rules,
  ): Promise<Delivery[]> {
    this.#expire(rules)
    this.#surface()
    const taking = { max, visibilityMs, rules }
    const found = this.#take(taking)
    if (found.length > 0 || waitMs <= 0) return Promise.resolve(found)
    return this.#wait(taking, waitMs, signal)
  }

  acknowledge(receipt: string): boolean {
    const queued = this.#holding(receipt)
    if (!queued) return false
    this.#release(queued)
    return this.#messages.delete(queued.message.id)
  }

  nack(receipt: string, how: { delayMs: number; failed: boolean }): boolean {
    const queued = this.#holding(receipt)
    if (!queued) return false
    this.#release(queued)
    if (how.failed) queued.failures++
    else queued.deliveries--
    this.#enter(queued, how.delayMs)
    return true
  }

  extend(receipt: string, ms: number): boolean {
    const queued = this.#holding(receipt)
    if (!queued) return false
    queued.hiddenUntilMs = Math.max(queued.hiddenUntilMs, this.#clock.mono() + ms)
    this.#hidden.update(queued)
    return true
  }

  /** Ends deliveries as if their receipts had lapsed. Returns how many. */
  lapse(id?: string): number {
    const delivered = [...this.#byReceipt.values()].filter(
      ({ message }) => id === undefined || message.id === id,
    )
    for (const queued of delivered) {
      queued.hiddenUntilMs = this.#clock.mono()
      this.#hidden.update(queued)
    }
    this.#surface()
    return delivered.length
  }

  browse(from: number, limit: number): { found: Delivery[]; after?: string } {
    const found: Delivery[] = []
    let last = 0
    for (const queued of this.#messages.values()) {
      if (queued.seq <= from) continue
      if (found.length === limit) return { found, after: String(last) }
      found.push(this.#delivery(queued, ''))
      last = queued.seq
    }
    return { found }
  }

  purge(): number {
    const { size } = this.#messages
    this.#messages.clear()
    this.#byReceipt.clear()
    this.#hidden.clear()
    this.#head = undefined
    this.#tail = undefined
    return size
  }

  /** Removes expired messages. A delivered message stays until its receipt lapses. */
  #expire({ retentionMs, report }: Rules): void {
    if (retentionMs === 0) return
    this.#surface()
    const oldestMs = this.#clock.now() - retentionMs
    let expired = 0
    for (const [id, queued] of this.#messages) {
      if (queued.enqueuedMs > oldestMs) break
      if (queued.receipt !== undefined) continue
      this.#hidden.remove(queued)
      this.#messages.delete(id)
      expired += 1
    }
    report(expired)
  }

  /**
   * The message of a valid receipt. A lapsed receipt is invalid even if the message was not
   * delivered again.
   */
  #holding(receipt: string): QueuedMessage | undefined {
    const queued = this.#byReceipt.get(receipt)
    return queued && queued.hiddenUntilMs > this.#clock.mono() ? queued : undefined
  }

  /** Ends a delivery. */
  #release(queued: QueuedMessage): void {
    if (queued.receipt !== undefined) this.#byReceipt.delete(queued.receipt)
    queued.receipt = undefined
    this.#hidden.remove(queued)
  }

  /**
   * Appends the message to the visible ones, now or after a delay. Messages that are due come
   * first.
   */
  #enter(queued: QueuedMessage, delayMs: number): void {
    this.#surface()
    if (delayMs > 0) this.#hide(queued, delayMs)
    else this.#queue(queued)
    this.#serve()
  }

  #hide(queued: QueuedMessage, ms: number): void {
    queued.hiddenUntilMs = this.#clock.mono() + ms
    this.#hidden.add(queued)
  }

  #queue(queued: QueuedMessage): void {
    queued.next = undefined
    if (this.#tail) this.#tail.next = queued
    else this.#head = queued
    this.#tail = queued
  }

  /** Makes messages visible whose time has come, and gives them to waiting receivers. */
  #surface(): void {
    const nowMs = this.#clock.mono()
    for (;;) {
      const queued = this.#hidden.first()
      if (!queued || queued.hiddenUntilMs > nowMs) break
      this.#release(queued)
      this.#queue(queued)
    }
    this.#serve()
  }

  #serve(): void {
    for (const waiter of this.#waiters) {
      if (!this.#head) break
      const found = this.#take(waiter)
      if (found.length > 0) waiter.give(found)
    }
    this.#setAlarm()
  }

  #take({ max, visibilityMs, rules: { retentionMs, report } }: Taking): Delivery[] {
    const oldestMs = retentionMs > 0 ? this.#clock.now() - retentionMs : -Infinity
    const taken: Delivery[] = []
    let expired = 0
    while (this.#head && taken.length < max) {
      const queued = this.#head
      this.#head = queued.next
      if (!this.#head) this.#tail = undefined
      // The message was removed while it was in the list.
      if (this.#messages.get(queued.message.id) !== queued) continue
      if (queued.enqueuedMs <= oldestMs) {
        this.#messages.delete(queued.message.id)
        expired += 1
        continue
      }
      queued.receipt = String(++this.#receipts)
      queued.deliveries++
      queued.firstReceivedMs ??= this.#clock.now()
      this.#byReceipt.set(queued.receipt, queued)
      this.#hide(queued, visibilityMs)
      taken.push(this.#delivery(queued, queued.receipt))
    }
    report(expired)
    return taken
  }

  #delivery(queued: QueuedMessage, receipt: string): Delivery {
    const { message, deliveries, failures, enqueuedMs, firstReceivedMs } = queued
    return {
      ...message,
      bytes: new Uint8Array(message.bytes),
      headers: { ...message.headers },
      receipt,
      deliveries,
      failures,
      enqueuedMs,
      firstReceivedMs: firstReceivedMs ?? this.#clock.now(),
    }
  }

  #wait(taking: Taking, waitMs: number, signal: AbortSignal): Promise<Delivery[]> {
    return new Promise((resolve) => {
      const give = (found: Delivery[]): void => {
        cancel()
        signal.removeEventListener('abort', end)
        this.#waiters.delete(waiter)
        this.#setAlarm()
        resolve(found)
      }
      const end = (): void => give([])
      const waiter: Waiter = { ...taking, give }
      const cancel = this.#clock.timer(waitMs, end)
      signal.addEventListener('abort', end, { once: true })
      this.#waiters.add(waiter)
      this.#setAlarm()
    })
  }

  /** A timer that fires too early is harmless: it is set again. */
  #setAlarm(): void {
    const first = this.#waiters.size > 0 ? this.#hidden.first() : undefined
    if (first && this.#alarm && this.#alarm.atMs <= first.hiddenUntilMs) return
    this.#alarm?.cancel()
    this.#alarm = undefined
    if (!first) return
    const atMs = first.hiddenUntilMs
    const ring = (): void => {
      this.#alarm = undefined
      this.#surface()
    }
    this.#alarm = { atMs, cancel: this.#clock.timer(atMs - this.#clock.mono(), ring) }
  }
}
