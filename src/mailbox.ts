import type { Payload } from './letter/letter.ts'
import type { Timestamp } from './letter/time.ts'

/**
 * A queue of messages. Delivery is at least once: a message that was received and not acknowledged in time comes again. It is hidden while
 * somebody has it, and every delivery has a receipt of its own: that of an earlier one is refused.
 */
export interface Mailbox {
  /** Names it within its broker, and for replies: 1 to 200 characters without control characters. */
  readonly name: string
  readonly powers: MailboxPowers
  readonly closed: boolean

  /** Connects, and creates the queue when it is not there. Safe twice. */
  open(): Promise<void>
  /** Wakes whoever waits in `receive`. Safe twice. Everything else is refused with CLOSED from then on, also what is done to messages. */
  close(): Promise<void>

  /** Answers with the message's id once the broker has it, durably if it can. */
  send(body: unknown, options?: SendOptions): Promise<string>

  /**
   * Up to `max` messages, hidden from others for `visibilitySeconds`. Waits for the first one up to `waitSeconds`, and comes back as soon
   * as there is one; with none it answers with an empty list, and so it does when the mailbox is closed. A body that nobody can decode is
   * delivered like any other: `value()` is what fails.
   */
  receive(options?: ReceiveOptions): Promise<Message[]>

  /** A page of messages in the order of sending, hidden ones too, without receiving them. Only where `powers.browse`. */
  browse?(options?: BrowseOptions): Promise<Browsed>

  /** Deletes all messages, hidden ones too, and says how many. Receipts that are out become stale. */
  purge(): Promise<number>
  /** Waiting and hidden messages, as exactly as the broker can say. */
  approximateCount(): Promise<number>

  /** Never rejects. `checks.retention` says how long messages are kept, `checks.expired` how many this handle has removed. */
  health(): Promise<MailboxHealth>

  /**
   * Calls the listener after this handle has removed messages because they were older than its retention. Errors of the listener are
   * ignored. Returns a function that removes the listener.
   */
  on(event: 'expired', listener: ExpiredListener): () => void
}

/** Receives how many messages were removed. */
export type ExpiredListener = (expired: { count: number }) => unknown

/** One delivery of a message. It is finalised by the first acknowledge or nack that succeeds. */
export interface Message {
  readonly id: string
  /** The bytes as they were sent, and what they are. */
  readonly body: Payload
  readonly headers: Readonly<Record<string, string>>
  /** 1 for the first delivery. Those that ended because a worker died count; those given back untried do not, where `powers.remembers`. */
  readonly deliveries: number
  /** Deliveries that ended with a nack for a failure. Where the broker cannot keep it (see `powers`), deliveries before this one. */
  readonly failures: number
  readonly enqueuedAt: Timestamp
  /** When it was first delivered. Where the broker cannot keep it, now. */
  readonly firstReceivedAt: Timestamp
  /** Where a reply should go, by the name of a mailbox. */
  readonly replyTo?: string
  /** When the receipt lapses, unless it is extended. */
  readonly visibleAt: Timestamp
  readonly finalized: boolean

  /** The decoded body, each time a new one. Throws UNDECODABLE when the bytes are not what their content type says. */
  value(): unknown
  /** Deletes it for ever. RECEIPT_EXPIRED: somebody else may have it by now. MESSAGE_FINALIZED: that is done already. */
  acknowledge(): Promise<void>
  /**
   * Gives it back, now or after a delay. `failed` unless said: false when it was not tried, and then this delivery does not count, where
   * `powers.remembers`. Refused like `acknowledge`.
   */
  nack(options?: NackOptions): Promise<void>
  /** Hides it for at least so long from now; never for shorter than it is already. Refused like `acknowledge`. */
  extend(seconds: number): Promise<void>
  /** Sends to `replyTo`. REPLY_UNAVAILABLE: there is none, or its name is not known here. Before it is finalised only. */
  reply(body: unknown): Promise<string>
}

export interface SendOptions {
  replyTo?: string
  headers?: Record<string, string>
  /** What the body is, when it is given as bytes or text. */
  contentType?: string
  /** Not delivered before. None unless said. Refused where `powers.delay` is false. */
  delaySeconds?: number
  /** Sending it again with the same id within the broker's window adds nothing, where `powers.deduplicates`. Made up unless given. */
  id?: string
}

export interface ReceiveOptions {
  /** 1 to 10. 1 unless said. */
  max?: number
  /** 0 to 43,200 (12 hours). 30 unless said. */
  visibilitySeconds?: number
  /** 0 to 43,200. 0 unless said: answers at once. */
  waitSeconds?: number
  /** Ends the waiting. */
  signal?: AbortSignal
}

export interface NackOptions {
  /** 0 to 43,200. At once unless said, and where the broker cannot delay. */
  delaySeconds?: number
  failed?: boolean
}

export interface BrowseOptions {
  /** Where the page before this one ended. Default: the beginning. */
  after?: string
  /** 1 to 1,000. Default: 50. */
  limit?: number
}

export interface Browsed {
  messages: Pick<
    Message,
    'id' | 'body' | 'headers' | 'deliveries' | 'failures' | 'enqueuedAt' | 'replyTo'
  >[]
  /** For the next page. Absent: that was the last one. */
  after?: string
}

/** What a broker can do. The contract's checks leave out what it cannot, and say so. */
export interface MailboxPowers {
  /** "redis", "rabbitmq": for people. */
  kind: string
  /** Survives the death of the process. */
  durable: boolean
  /** Several processes may use it at once. */
  shared: boolean
  /** The visibility of each receive counts. Otherwise the broker has one of its own for all. */
  visibility: boolean
  /** A receipt can be made to last longer. */
  extend: boolean
  /** Messages and nacks can be delayed. */
  delay: boolean
  /** No message can be delayed for longer. 43,200 unless said. */
  maxDelaySeconds?: number
  /** Failures are counted apart from deliveries, what was given back untried is not counted, and the first delivery is remembered. */
  remembers: boolean
  /** `deliveries` is exact. Otherwise it may count one that nobody saw, when a receiver stopped waiting at that moment. */
  exactDeliveries: boolean
  /** Messages come in the order of sending, as long as none comes twice. */
  ordered: boolean
  /** `approximateCount` is exact. */
  exactCount: boolean
  purge: boolean
  browse: boolean
  /** Sending the same id twice adds nothing, for a while at least. */
  deduplicates: boolean
  /** A larger body is refused with TOO_LARGE. */
  maxBodyBytes: number
  /**
   * The broker itself deletes messages after this many seconds and reports nothing; a larger `retentionSeconds` is refused.
   * Default: none. Messages are kept for ever unless a retention is set.
   */
  maxRetentionSeconds?: number
}

export interface MailboxHealth {
  ok: boolean
  checks: Record<string, string>
  problems: string[]
}

/** Finds mailboxes by name, for replies and replays. */
export interface MailboxResolver {
  /** Undefined: nobody of this name is known. */
  resolve(name: string): Mailbox | undefined | Promise<Mailbox | undefined>
  /** Called when the mailbox that uses it closes. One that is shared by several has none. */
  close?(): Promise<void>
}

/**
 * What a driver gives: the broker's own verbs on bytes and receipts. Bounds, encoding, finalising and replies are the
 * same for all, and `mailbox()` puts them around it.
 */
export interface MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers
  open(): Promise<void>
  /** Also ends every `receive` that waits. */
  close(): Promise<void>
  /** Resolves when the broker has it. */
  send(parcel: OutgoingMessage, delayMs: number): Promise<void>
  receive(ask: Ask): Promise<Delivery[]>
  /** False: the receipt is stale, and nothing was done. */
  acknowledge(receipt: string): Promise<boolean>
  nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean>
  /** Makes it last at least so long from now. */
  extend(receipt: string, ms: number): Promise<boolean>
  browse?(after: string | undefined, limit: number): Promise<{ found: Delivery[]; after?: string }>
  purge(): Promise<number>
  count(): Promise<number>
  health(): Promise<MailboxHealth>
  /**
   * Present where the driver itself removes messages older than the retention: it then calls `report` with their number. In other
   * drivers `mailbox()` removes them when they are received.
   */
  onExpired?(report: (count: number) => void): void
}

/** A message on its way to the broker. */
export interface OutgoingMessage {
  id: string
  bytes: Uint8Array
  contentType: string
  headers: Record<string, string>
  replyTo?: string
}

export interface Ask {
  max: number
  visibilityMs: number
  waitMs: number
  /** Aborts when the caller no longer waits, or the mailbox closes. What was received by then is delivered or given back. */
  signal: AbortSignal
}

/** A message as the broker delivers it. */
export interface Delivery extends OutgoingMessage {
  /** Never the same for two deliveries. */
  receipt: string
  deliveries: number
  failures: number
  enqueuedMs: number
  firstReceivedMs: number
}
