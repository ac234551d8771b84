import { systemClock, type Clock } from '../../clock.ts'
import { onAbort } from '../../passing/on-abort.ts'
import { RedriveError } from '../../errors.ts'
import type {
  Ask,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  Parcel,
} from '../../mailbox.ts'
import { mailbox } from '../mailbox.ts'
import { Hidden, type Hiding } from './hidden.ts'

export interface MemoryMailboxOptions {
  name: string
  clock?: Clock
  resolver?: MailboxResolver
  /** Waiting and hidden messages at the most; more are refused with MAILBOX_FULL. No limit unless said. */
  maxMessages?: number
}

/** A mailbox in this process, for tests and small programs. Another one of the same name is another mailbox. */
export function memoryMailbox(options: MemoryMailboxOptions): Mailbox {
  const { clock = systemClock, resolver } = options
  return mailbox(new MemoryMailbox(options, clock), resolver ? { clock, resolver } : { clock })
}

/** A message, which stands in the line of those that wait or is hidden. */
interface Kept extends Hiding {
  readonly parcel: Parcel
  readonly enqueuedMs: number
  firstReceivedMs: number | undefined
  deliveries: number
  failures: number
  /** Of the newest delivery, while it holds. */
  receipt: string | undefined
  /** Behind it in the line. */
  next: Kept | undefined
}

/** Somebody who waits for messages. */
interface Waiter {
  max: number
  visibilityMs: number
  give: (found: Delivery[]) => void
}

class MemoryMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers = {
    kind: 'memory',
    durable: false,
    shared: false,
    visibility: true,
    extend: true,
    delay: true,
    remembers: true,
    exactDeliveries: true,
    ordered: true,
    exactCount: true,
    purge: true,
    browse: true,
    deduplicates: true,
    maxBodyBytes: 16 * 1024 ** 2,
  }
  readonly #clock: Clock
  readonly #maxMessages: number
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

  constructor({ name, maxMessages = Infinity }: MemoryMailboxOptions, clock: Clock) {
    if (!(maxMessages >= 1))
      throw new RedriveError('INVALID_INPUT', `maxMessages must be at least 1, got ${maxMessages}`)
    this.name = name
    this.#clock = clock
    this.#maxMessages = maxMessages
  }

  async open(): Promise<void> {}

  /** Whoever waits hears of it by the signal. */
  async close(): Promise<void> {}

  async send(parcel: Parcel, delayMs: number): Promise<void> {
    if (this.#kept.has(parcel.id)) return
    if (this.#kept.size >= this.#maxMessages)
      throw new RedriveError(
        'MAILBOX_FULL',
        `${this.name} holds ${this.#maxMessages} messages already (maxMessages): receive some, or raise the limit`,
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

  async receive(ask: Ask): Promise<Delivery[]> {
    this.#surface()
    const found = this.#take(ask)
    return found.length > 0 || ask.waitMs <= 0 ? found : this.#wait(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    const kept = this.#holding(receipt)
    if (!kept) return false
    this.#release(kept)
    return this.#kept.delete(kept.parcel.id)
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const kept = this.#holding(receipt)
    if (!kept) return false
    this.#release(kept)
    if (how.failed) kept.failures++
    else kept.deliveries--
    this.#enter(kept, how.delayMs)
    return true
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    const kept = this.#holding(receipt)
    if (!kept) return false
    kept.hiddenUntilMs = Math.max(kept.hiddenUntilMs, this.#clock.mono() + ms)
    this.#hidden.moved(kept)
    return true
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RedriveError('INVALID_INPUT', 'after must be what browse gave for the next page')
    const from = Number(after ?? 0)
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

  async purge(): Promise<number> {
    const { size } = this.#kept
    this.#kept.clear()
    this.#byReceipt.clear()
    this.#hidden.clear()
    this.#head = undefined
    this.#tail = undefined
    return size
  }

  async count(): Promise<number> {
    return this.#kept.size
  }

  async health(): Promise<MailboxHealth> {
    return { ok: true, checks: { messages: String(this.#kept.size) }, problems: [] }
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
      waiter.give(this.#take(waiter))
    }
    this.#setAlarm()
  }

  #take({ max, visibilityMs }: Pick<Ask, 'max' | 'visibilityMs'>): Delivery[] {
    const taken: Delivery[] = []
    while (this.#head && taken.length < max) {
      const kept = this.#head
      this.#head = kept.next
      if (!this.#head) this.#tail = undefined
      kept.receipt = String(++this.#receipts)
      kept.deliveries++
      kept.firstReceivedMs ??= this.#clock.now()
      this.#byReceipt.set(kept.receipt, kept)
      this.#hide(kept, visibilityMs)
      taken.push(this.#delivery(kept, kept.receipt))
    }
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

  #wait({ max, visibilityMs, waitMs, signal }: Ask): Promise<Delivery[]> {
    return new Promise((resolve) => {
      const give = (found: Delivery[]): void => {
        cancel()
        forget()
        this.#waiters.delete(waiter)
        this.#setAlarm()
        resolve(found)
      }
      const end = (): void => give([])
      const waiter: Waiter = { max, visibilityMs, give }
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
