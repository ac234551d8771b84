import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  OutgoingMessage,
} from '../../mailbox.ts'
import { mailbox } from '../mailbox.ts'
import { retentionMsOf } from '../../backends/retention.ts'
import { useQueue, type QueueUse } from './broker.ts'
import { MemoryQueue, type Rules } from './queue.ts'

export interface MemoryMailboxOptions {
  name: string
  /**
   * Mailboxes with the same broker, clock and name share their messages while one of them is open.
   * Default: none, every mailbox has its own messages.
   */
  broker?: string
  clock?: Clock
  resolver?: MailboxResolver
  /**
   * Maximum number of messages, visible and hidden; more are rejected with MAILBOX_FULL. Default:
   * no limit.
   */
  maxMessages?: number
  /** Messages older than this are removed. Default: 0, which keeps them for ever. */
  retentionSeconds?: number
}

const optionKeys = keysOf<MemoryMailboxOptions>({
  name: true,
  broker: true,
  clock: true,
  resolver: true,
  maxMessages: true,
  retentionSeconds: true,
})

/** A mailbox in this process, for tests and small programs. */
export function memoryMailbox(options: MemoryMailboxOptions): Mailbox {
  checkKeys('memory mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const { clock = systemClock, resolver, retentionSeconds = 0 } = options
  const driver = new MemoryMailbox(options, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** One handle on a queue in memory. */
export class MemoryMailbox implements MailboxDriver {
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
  readonly #broker: string | undefined
  readonly #rules: Rules
  #use: QueueUse | undefined
  #report: (count: number) => void = () => {}

  constructor(options: MemoryMailboxOptions, clock: Clock) {
    const { name, broker, maxMessages = Infinity, retentionSeconds } = options
    if (!(maxMessages >= 1))
      throw new RedriveError('INVALID_INPUT', `maxMessages must be at least 1, got ${maxMessages}`)
    this.name = name
    this.#clock = clock
    this.#broker = broker
    const retentionMs = retentionMsOf(retentionSeconds)
    this.#rules = { maxMessages, retentionMs, report: (count) => this.#report(count) }
    if (broker === undefined) this.#use = { queue: new MemoryQueue(name, clock), leave: () => {} }
  }

  async open(): Promise<void> {
    if (this.#broker !== undefined) this.#use ??= useQueue(this.#clock, this.#broker, this.name)
  }

  /** Waiting receivers are woken by their signal. */
  async close(): Promise<void> {
    this.#use?.leave()
  }

  onExpired(report: (count: number) => void): void {
    this.#report = report
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    this.#queue().send(message, delayMs, this.#rules)
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    return this.#queue().receive(ask, this.#rules)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    return this.#queue().acknowledge(receipt)
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    return this.#queue().nack(receipt, how)
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#queue().extend(receipt, ms)
  }

  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    if (after !== undefined && !/^\d{1,15}$/.test(after))
      throw new RedriveError('INVALID_INPUT', 'after must be a cursor that browse returned')
    return this.#queue().browse(Number(after ?? 0), limit)
  }

  async purge(): Promise<number> {
    return this.#queue().purge()
  }

  async count(): Promise<number> {
    return this.#queue().size
  }

  async health(): Promise<MailboxHealth> {
    return { ok: true, checks: { messages: String(this.#queue().size) }, problems: [] }
  }

  /**
   * Makes delivered messages visible again, as if their receipts had lapsed. Returns how many.
   * Default: all.
   */
  lapse(id?: string): number {
    return this.#queue().lapse(id)
  }

  #queue(): MemoryQueue {
    if (this.#use) return this.#use.queue
    throw new RedriveError('CLOSED', `the mailbox ${this.name} is not open: await open() first`)
  }
}
