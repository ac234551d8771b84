import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { ReceiveRequest, Delivery, OutgoingMessage } from '../../mailbox.ts'
import { onAbort } from '../../clock/on-abort.ts'
import { Hidden, type Hiding } from './hidden.ts'

/** The rules of the handle that sends or receives. */
export interface Rules {
  maxMessages: number
  /** 0: messages are kept for ever. */
  retentionMs: number
  /** Receives how many messages this handle removed because of their age. */
  report: (count: number) => void
}

/** A message, which stands in the line of those that wait or is hidden. */
interface Kept extends Hiding {
  readonly parcel: OutgoingMessage
  readonly enqueuedMs: number
  firstReceivedMs: number | undefined
  deliveries: number
  failures: number
  /** Of the newest delivery, while it holds. */
  receipt: string | undefined
  /** Behind it in the line. */
  next: Kept | undefined
}

/** What one receiver takes. */
interface Taking {
  max: number
  visibilityMs: number
  rules: Rules
}

/** Somebody who waits for messages. */
interface Waiter extends Taking {
  give: (found: Delivery[]) => void
}

/** The messages of one mailbox, which any number of handles share. */
export class MemoryQueue {
  readonly #name: string
  readonly #clock: Clock
  /** By id, in the order of sending. */
  readonly #kept = new Map<string, Kept>()
  readonly #byReceipt = new Map<string, Kept>()
  /** Delivered or delayed; times are on the monotonic clock. */
  readonly #hidden = new Hidden<Kept>()
  /** The line of what can be had, in the order in which it became so. While somebody waits, nobody stands in it. */
  #head: Kept | undefined
  #tail: Kept | undefined
  /** Who came first is served first. */
  readonly #waiters = new Set<Waiter>()
  /** For the moment when something hidden shows, while somebody waits for it. */
  #alarm: { atMs: number; cancel: () => void } | undefined
  #seq = 0
  #receipts = 0

  constructor(name: string, clock: Clock) {
    this.#name = name
    this.#clock = clock
  }

  get size(): number {
    return this.#kept.size
  }

  /** Messages that have expired are not in the way of what comes. */
  send(parcel: OutgoingMessage, delayMs: number, rules: Rules): void {
    const { maxMessages } = rules
    if (this.#kept.has(parcel.id) || this.#kept.size >= maxMessages) this.#expire(rules)
    if (this.#kept.has(parcel.id)) return
    if (this.#kept.size >= maxMessages)
      throw new RedriveError(
        'MAILBOX_FULL',
        `${this.#name} holds ${maxMessages} messages already (maxMessages): receive some, or raise the limit`,
      )
    const kept: Kept = {
      parcel,
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
    this.#kept.set(parcel.id, kept)
    this.#enter(kept, delayMs)
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
    const kept = this.#holding(receipt)
    if (!kept) return false
    this.#release(kept)
    return this.#kept.delete(kept.parcel.id)
  }

  nack(receipt: string, how: { delayMs: number; failed: boolean }): boolean {
    const kept = this.#holding(receipt)
    if (!kept) return false
    this.#release(kept)
    if (how.failed) kept.failures++
    else kept.deliveries--
    this.#enter(kept, how.delayMs)
    return true
  }

  extend(receipt: string, ms: number): boolean {
    const kept = this.#holding(receipt)
    if (!kept) return false
    kept.hiddenUntilMs = Math.max(kept.hiddenUntilMs, this.#clock.mono() + ms)
    this.#hidden.moved(kept)
    return true
  }

  /** Ends deliveries as if their receipts had lapsed, and returns how many. */
  lapse(id?: string): number {
    const delivered = [...this.#byReceipt.values()].filter(
      ({ parcel }) => id === undefined || parcel.id === id,
    )
    for (const kept of delivered) {
      kept.hiddenUntilMs = this.#clock.mono()
      this.#hidden.moved(kept)
    }
    this.#surface()
    return delivered.length
  }

  browse(from: number, limit: number): { found: Delivery[]; after?: string } {
    const found: Delivery[] = []
    let last = 0
    for (const kept of this.#kept.values()) {
      if (kept.seq <= from) continue
      if (found.length === limit) return { found, after: String(last) }
      found.push(this.#delivery(kept, ''))
      last = kept.seq
    }
    return { found }
  }

  purge(): number {
    const { size } = this.#kept
    this.#kept.clear()
    this.#byReceipt.clear()
    this.#hidden.clear()
    this.#head = undefined
    this.#tail = undefined
    return size
  }

  /** Removes messages older than the retention. One that is delivered stays until its receipt lapses. */
  #expire({ retentionMs, report }: Rules): void {
    if (retentionMs === 0) return
    this.#surface()
    const oldestMs = this.#clock.now() - retentionMs
    let expired = 0
    for (const [id, kept] of this.#kept) {
      if (kept.enqueuedMs > oldestMs) break
      if (kept.receipt !== undefined) continue
      this.#hidden.remove(kept)
      this.#kept.delete(id)
      expired += 1
    }
    report(expired)
  }

  /** The message of a receipt that still holds. One that has lapsed does not, even if nobody else came for the message. */
  #holding(receipt: string): Kept | undefined {
    const kept = this.#byReceipt.get(receipt)
    return kept && kept.hiddenUntilMs > this.#clock.mono() ? kept : undefined
  }

  /** Ends a delivery. */
  #release(kept: Kept): void {
    if (kept.receipt !== undefined) this.#byReceipt.delete(kept.receipt)
    kept.receipt = undefined
    this.#hidden.remove(kept)
  }

  /** To the end of the line, now or later. What was due before goes before it. */
  #enter(kept: Kept, delayMs: number): void {
    this.#surface()
    if (delayMs > 0) this.#hide(kept, delayMs)
    else this.#queue(kept)
    this.#serve()
  }

  #hide(kept: Kept, ms: number): void {
    kept.hiddenUntilMs = this.#clock.mono() + ms
    this.#hidden.add(kept)
  }

  #queue(kept: Kept): void {
    kept.next = undefined
    if (this.#tail) this.#tail.next = kept
    else this.#head = kept
    this.#tail = kept
  }

  /** Puts into the line what was hidden until now, and gives it to those who wait. */
  #surface(): void {
    const nowMs = this.#clock.mono()
    for (;;) {
      const kept = this.#hidden.first()
      if (!kept || kept.hiddenUntilMs > nowMs) break
      this.#release(kept)
      this.#queue(kept)
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
      const kept = this.#head
      this.#head = kept.next
      if (!this.#head) this.#tail = undefined
      // Removed before, while it stood in the line.
      if (this.#kept.get(kept.parcel.id) !== kept) continue
      if (kept.enqueuedMs <= oldestMs) {
        this.#kept.delete(kept.parcel.id)
        expired += 1
        continue
      }
      kept.receipt = String(++this.#receipts)
      kept.deliveries++
      kept.firstReceivedMs ??= this.#clock.now()
      this.#byReceipt.set(kept.receipt, kept)
      this.#hide(kept, visibilityMs)
      taken.push(this.#delivery(kept, kept.receipt))
    }
    report(expired)
    return taken
  }

  #delivery(kept: Kept, receipt: string): Delivery {
    const { parcel, deliveries, failures, enqueuedMs, firstReceivedMs } = kept
    return {
      ...parcel,
      bytes: new Uint8Array(parcel.bytes),
      headers: { ...parcel.headers },
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
        forget()
        this.#waiters.delete(waiter)
        this.#setAlarm()
        resolve(found)
      }
      const end = (): void => give([])
      const waiter: Waiter = { ...taking, give }
      const cancel = this.#clock.timer(waitMs, end)
      const forget = onAbort(signal, end)
      this.#waiters.add(waiter)
      this.#setAlarm()
    })
  }

  /** An alarm that comes too early does no harm: it is set again. */
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
