import type { Payload } from './letter/letter.ts'
import type { Timestamp } from './letter/time.ts'

/**
 * A message queue. Delivery is at least once: a message that was received and not acknowledged in
 * time is delivered again. It is hidden while a consumer has it, and every delivery has its own
 * receipt: the receipt of an earlier delivery is rejected.
 */
export interface Mailbox {
  /**
   * Identifies the mailbox within its broker, and for replies: 1 to 200 characters without control
   * characters.
   */
  readonly name: string
  readonly powers: MailboxPowers
  readonly closed: boolean

  /** Connects, and creates the queue if it does not exist. May be called twice. */
  open(): Promise<void>
  /**
   * Ends waiting `receive` calls. May be called twice. Every other call is rejected with CLOSED
   * from then on, including calls on messages.
   */
  close(): Promise<void>

  /** Returns the id of the message once the broker has stored it, durably if possible. */
  send(body: unknown, options?: SendOptions): Promise<string>

  /**
   * Returns up to `max` messages, hidden from others for `visibilitySeconds`. Waits up to
   * `waitSeconds` for the first one, and returns as soon as there is one; returns an empty array if
   * there is none, or when the mailbox is closed. A body that cannot be decoded is delivered like
   * any other: its `value()` throws.
   */
  receive(options?: ReceiveOptions): Promise<Message[]>

  /**
   * Returns a page of messages in the order of sending, including hidden ones, without receiving
   * them. Only where `powers.browse`.
   */
  browse?(options?: BrowseOptions): Promise<Browsed>

  /**
   * Deletes all messages, including hidden ones, and returns their number. Open receipts become
   * stale.
   */
  purge(): Promise<number>
  /** The number of visible and hidden messages, as exactly as the broker reports it. */
  approximateCount(): Promise<number>

  /**
   * Never rejects. `checks.retention` is how long messages are stored, `checks.expired` how many
   * this handle has removed.
   */
  health(): Promise<MailboxHealth>

  /**
   * Calls the listener after this handle has removed messages because they were older than its
   * retention. Errors of the listener are ignored. Returns a function that removes the listener.
   */
  on(event: 'expired', listener: ExpiredListener): () => void
}

/** Called with the number of removed messages. */
export type ExpiredListener = (expired: { count: number }) => unknown

/** One delivery of a message. The first successful acknowledge or nack finalises it. */
export interface Message {
  readonly id: string
  /** The bytes as they were sent, and their content type. */
  readonly body: Payload
  readonly headers: Readonly<Record<string, string>>
  /**
   * 1 for the first delivery. Deliveries that ended with a dead worker count; those released before
   * they ran do not, where `powers.remembers`.
   */
  readonly deliveries: number
  /**
   * Deliveries that ended with a nack for a failure. Where the broker does not count them (see
   * `powers`), deliveries before this one.
   */
  readonly failures: number
  readonly enqueuedAt: Timestamp
  /** When the message was first delivered. Where the broker does not record it, now. */
  readonly firstReceivedAt: Timestamp
  /** The name of the mailbox for the reply. */
  readonly replyTo?: string
  /** When the receipt expires, unless it is extended. */
  readonly visibleAt: Timestamp
  readonly finalized: boolean

  /**
   * The decoded body, a new object each time. Throws UNDECODABLE if the bytes do not match their
   * content type.
   */
  value(): unknown
  /**
   * Deletes the message permanently. RECEIPT_EXPIRED: another consumer may have it by now.
   * MESSAGE_FINALIZED: it is already finalised.
   */
  acknowledge(): Promise<void>
  /**
   * Releases the message, now or after a delay. `failed` is true by default: set it to false if the
   * message did not run, and this delivery does not count, where `powers.remembers`. Rejected like
   * `acknowledge`.
   */
  nack(options?: NackOptions): Promise<void>
  /**
   * Hides the message for at least this long from now; never shortens. Rejected like `acknowledge`.
   */
  extend(seconds: number): Promise<void>
  /**
   * Sends to `replyTo`. REPLY_UNAVAILABLE: there is none, or its name is unknown here. Only before
   * the message is finalised.
   */
  reply(body: unknown): Promise<string>
}

export interface SendOptions {
  replyTo?: string
  headers?: Record<string, string>
  /** The content type of a body that is bytes or a string. */
  contentType?: string
  /** The message is not delivered before. Rejected where `powers.delay` is false. Default: 0. */
  delaySeconds?: number
  /**
   * Sending the same id again within the window of the broker adds nothing, where
   * `powers.deduplicates`. Default: a new id.
   */
  id?: string
}

export interface ReceiveOptions {
  /** 1 to 10. Default: 1. */
  max?: number
  /** 0 to 43,200 (12 hours). Default: 30. */
  visibilitySeconds?: number
  /** 0 to 43,200. Default: 0, which returns at once. */
  waitSeconds?: number
  /** Ends the wait. */
  signal?: AbortSignal
}

export interface NackOptions {
  /** 0 to 43,200. Ignored where the broker cannot delay. Default: 0. */
  delaySeconds?: number
  failed?: boolean
}

export interface BrowseOptions {
  /** The `after` of the previous page. Default: the beginning. */
  after?: string
  /** 1 to 1,000. Default: 50. */
  limit?: number
}

export interface Browsed {
  messages: Pick<
    Message,
    'id' | 'body' | 'headers' | 'deliveries' | 'failures' | 'enqueuedAt' | 'replyTo'
  >[]
  /** For the next page. Absent on the last page. */
  after?: string
}

/** What a broker can do. The contract checks skip what it cannot, and say so. */
export interface MailboxPowers {
  /** For people: "redis", "rabbitmq". */
  kind: string
  /** Messages survive the death of the process. */
  durable: boolean
  /** Several processes may use the mailbox at once. */
  shared: boolean
  /** The visibility of each receive is used. Otherwise the broker has its own for all. */
  visibility: boolean
  /** A receipt can be extended. */
  extend: boolean
  /** Messages and nacks can be delayed. */
  delay: boolean
  /** Maximum delay of a message. Default: 43,200. */
  maxDelaySeconds?: number
  /**
   * Failures are counted separately from deliveries, messages released before they ran are not
   * counted, and the first delivery is recorded.
   */
  remembers: boolean
  /**
   * `deliveries` is exact. Otherwise it may include a delivery that nobody saw, if a receiver
   * stopped waiting at that time.
   */
  exactDeliveries: boolean
  /** Messages arrive in the order of sending, as long as none is redelivered. */
  ordered: boolean
  /** `approximateCount` is exact. */
  exactCount: boolean
  purge: boolean
  browse: boolean
  /** Sending the same id twice adds nothing, at least for a while. */
  deduplicates: boolean
  /** A larger body is rejected with TOO_LARGE. */
  maxBodyBytes: number
  /**
   * The broker itself deletes messages after this many seconds without a report; a larger
   * `retentionSeconds` is rejected. Default: none; messages are stored forever unless a retention
   * is set.
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
  /** Undefined if the name is unknown. */
  resolve(name: string): Mailbox | undefined | Promise<Mailbox | undefined>
  /**
   * Called when the mailbox that uses the resolver closes. Absent on a resolver that several
   * mailboxes share.
   */
  close?(): Promise<void>
}

/**
 * The contract of a driver: the operations of the broker on bytes and receipts. Bounds, encoding,
 * finalising and replies are the same for all, and `mailbox()` adds them.
 */
export interface MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers
  open(): Promise<void>
  /** Also ends every waiting `receive`. */
  close(): Promise<void>
  /** Resolves once the broker has stored the message. */
  send(parcel: OutgoingMessage, delayMs: number): Promise<void>
  receive(ask: ReceiveRequest): Promise<Delivery[]>
  /** False: the receipt is stale, and nothing was done. */
  acknowledge(receipt: string): Promise<boolean>
  nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean>
  /** Extends the receipt to at least this long from now. */
  extend(receipt: string, ms: number): Promise<boolean>
  browse?(after: string | undefined, limit: number): Promise<{ found: Delivery[]; after?: string }>
  purge(): Promise<number>
  count(): Promise<number>
  health(): Promise<MailboxHealth>
  /**
   * Present if the driver itself removes messages older than the retention: it then calls `report`
   * with their number. For other drivers, `mailbox()` removes them when they are received.
   */
  onExpired?(report: (count: number) => void): void
}

/** A message to be sent. */
export interface OutgoingMessage {
  id: string
  bytes: Uint8Array
  contentType: string
  headers: Record<string, string>
  replyTo?: string
}

export interface ReceiveRequest {
  max: number
  visibilityMs: number
  waitMs: number
  /**
   * Aborts when the caller no longer waits, or the mailbox closes. Messages received by then are
   * delivered or released.
   */
  signal: AbortSignal
}

/** A message as the broker delivers it. */
export interface Delivery extends OutgoingMessage {
  /** Unique per delivery. */
  receipt: string
  deliveries: number
  failures: number
  enqueuedMs: number
  firstReceivedMs: number
}
