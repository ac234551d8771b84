import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { encodePayload, shared } from '../letter/payload.ts'
import { toTimestamp } from '../letter/time.ts'
import { checkKeys, checkOneOf, keysOf } from '../check/keys.ts'
import type {
  ReceiveRequest,
  BrowseOptions,
  Browsed,
  Delivery,
  ExpiredListener,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  Message,
  OutgoingMessage,
  ReceiveOptions,
  SendOptions,
} from '../mailbox.ts'
import {
  bounded,
  checkHeaders,
  maxVisibilitySeconds,
  printable,
  whole,
} from '../backends/bounds.ts'
import { OpenMessage, payloadOf, type MessageParts } from './message.ts'
import { Expiry, receiveUnexpired } from './retention.ts'
import { retentionMsOf } from '../backends/retention.ts'

export interface MailboxOptions {
  clock: Clock
  /** Finds the mailboxes of replies. Without it, no reply can be sent. */
  resolver?: MailboxResolver
  /** Messages older than this are removed. Default: 0, they are stored forever. */
  retentionSeconds?: number
}

const sendKeys = keysOf<SendOptions>({
  replyTo: true,
  headers: true,
  contentType: true,
  delaySeconds: true,
  id: true,
})
const receiveKeys = keysOf<ReceiveOptions>({
  max: true,
  visibilitySeconds: true,
  waitSeconds: true,
  signal: true,
})
const browseKeys = keysOf<BrowseOptions>({ after: true, limit: true })

/**
 * Adds to a driver what is the same for all brokers. Rejects an invalid name with INVALID_INPUT.
 */
export function mailbox(driver: MailboxDriver, options: MailboxOptions): Mailbox {
  return new OpenMailbox(driver, options)
}

class OpenMailbox implements Mailbox {
  readonly #driver: MailboxDriver
  readonly #options: MailboxOptions
  /** Shared by all messages. */
  readonly #parts: MessageParts
  readonly #closing = new AbortController()
  readonly #retentionMs: number
  readonly #expiry = new Expiry()
  readonly browse?: NonNullable<Mailbox['browse']>
  #opening: Promise<void> | undefined
  #closed: Promise<void> | undefined

  constructor(driver: MailboxDriver, options: MailboxOptions) {
    printable('the name of a mailbox', driver.name)
    this.#driver = driver
    this.#options = options
    this.#retentionMs = checkedRetentionMs(driver.powers, options.retentionSeconds)
    driver.onExpired?.((count) => this.#expiry.report(count))
    const { clock, resolver } = options
    this.#parts = { driver, clock, resolver, mustBeOpen: () => this.#mustBeOpen() }
    if (driver.powers.browse) this.browse = (asked = {}) => this.#browse(asked)
  }

  get name(): string {
    return this.#driver.name
  }

  get powers(): MailboxPowers {
    return this.#driver.powers
  }

  get closed(): boolean {
    return this.#closed !== undefined
  }

  async open(): Promise<void> {
    this.#mustBeOpen()
    this.#opening ??= this.#driver.open().catch((error: unknown) => {
      // The broker may be reachable the next time.
      this.#opening = undefined
      throw error
    })
    await this.#opening
  }

  close(): Promise<void> {
    this.#closed ??= this.#shut()
    return this.#closed
  }

  async #shut(): Promise<void> {
    this.#closing.abort()
    await this.#opening?.catch(() => {})
    await this.#driver.close()
    await this.#options.resolver?.close?.()
  }

  async send(body: unknown, options: SendOptions = {}): Promise<string> {
    this.#mustBeOpen()
    checkKeys('send options', options, sendKeys)
    const { powers } = this
    const { replyTo, contentType, headers = {}, id = this.#options.clock.id() } = options
    const delaySeconds = bounded('delaySeconds', options.delaySeconds ?? 0, maxVisibilitySeconds)
    if (delaySeconds > 0 && !powers.delay)
      throw new RedriveError(
        'INVALID_INPUT',
        `${powers.kind} cannot delay messages: remove delaySeconds`,
      )
    if (this.#retentionMs > 0 && delaySeconds * 1000 >= this.#retentionMs)
      throw new RedriveError(
        'INVALID_INPUT',
        `delaySeconds is ${delaySeconds}, but ${this.name} stores messages for ${this.#retention()} (retentionSeconds): the message would expire before anybody can receive it`,
      )
    printable('an id', id)
    if (replyTo !== undefined) printable('replyTo', replyTo)
    if (contentType !== undefined) printable('a content type', contentType)
    checkHeaders(headers)
    const { bytes, contentType: written } = encodePayload(body, contentType, shared)
    if (bytes.byteLength > powers.maxBodyBytes)
      throw new RedriveError(
        'TOO_LARGE',
        `the body has ${bytes.byteLength} bytes, the limit of ${powers.kind} is ${powers.maxBodyBytes}: send a reference to it instead`,
      )
    const parcel: OutgoingMessage = { id, bytes, contentType: written, headers: { ...headers } }
    if (replyTo !== undefined) parcel.replyTo = replyTo
    await this.#driver.send(parcel, delaySeconds * 1000)
    return id
  }

  async receive(options: ReceiveOptions = {}): Promise<Message[]> {
    checkKeys('receive options', options, receiveKeys)
    const max = whole('max', options.max ?? 1, 10)
    const visibilityMs =
      1000 * bounded('visibilitySeconds', options.visibilitySeconds ?? 30, maxVisibilitySeconds)
    const waitMs = 1000 * bounded('waitSeconds', options.waitSeconds ?? 0, maxVisibilitySeconds)
    if (this.closed || options.signal?.aborted) return []
    const closing = this.#closing.signal
    const signal = options.signal ? AbortSignal.any([closing, options.signal]) : closing
    try {
      const deliveries = await this.#take({ max, visibilityMs, waitMs, signal })
      const lapsesMs = this.#options.clock.now() + visibilityMs
      return deliveries.map((one) => this.#message(one, lapsesMs))
    } catch (error) {
      // The caller has given up, so the error does not matter.
      if (signal.aborted) return []
      throw error
    }
  }

  #take(ask: ReceiveRequest): Promise<Delivery[]> {
    const retentionMs = this.#retentionMs
    if (retentionMs === 0 || this.#driver.onExpired) return this.#driver.receive(ask)
    const report = (count: number): void => this.#expiry.report(count)
    const { clock } = this.#options
    return receiveUnexpired(this.#driver, ask, { clock, retentionMs, report })
  }

  async purge(): Promise<number> {
    this.#mustBeOpen()
    if (this.powers.purge) return this.#driver.purge()
    throw new RedriveError('INVALID_INPUT', `${this.powers.kind} cannot purge a mailbox`)
  }

  async approximateCount(): Promise<number> {
    this.#mustBeOpen()
    return this.#driver.count()
  }

  async health(): Promise<MailboxHealth> {
    if (this.closed) return { ok: false, checks: {}, problems: ['the mailbox is closed'] }
    try {
      const found = await this.#driver.health()
      const retention = this.#retention()
      const expired = String(this.#expiry.count)
      return { ...found, checks: { retention, expired, ...found.checks } }
    } catch (error) {
      const problem = error instanceof RedriveError ? error.message : 'the broker gave no answer'
      return { ok: false, checks: {}, problems: [problem] }
    }
  }

  on(event: 'expired', listener: ExpiredListener): () => void {
    checkOneOf('mailbox event', event, ['expired'])
    if (typeof listener !== 'function')
      throw new RedriveError(
        'INVALID_INPUT',
        `the listener must be a function, got ${typeof listener}`,
      )
    return this.#expiry.on(listener)
  }

  async #browse(options: BrowseOptions): Promise<Browsed> {
    this.#mustBeOpen()
    checkKeys('browse options', options, browseKeys)
    const { after, limit = 50 } = options
    whole('limit', limit, 1000)
    const page = await this.#driver.browse!(after, limit)
    const messages = page.found.map(
      ({ id, headers, deliveries, failures, enqueuedMs, replyTo, ...body }) => ({
        id,
        body: payloadOf(body),
        headers,
        deliveries,
        failures,
        enqueuedAt: toTimestamp(enqueuedMs),
        ...(replyTo === undefined ? {} : { replyTo }),
      }),
    )
    return page.after === undefined ? { messages } : { messages, after: page.after }
  }

  /** How long messages are stored, for messages to people. */
  #retention(): string {
    const seconds =
      this.#retentionMs > 0 ? this.#retentionMs / 1000 : this.powers.maxRetentionSeconds
    return seconds === undefined ? 'for ever' : `${seconds} s`
  }

  #message(delivery: Delivery, lapsesMs: number): Message {
    return new OpenMessage(delivery, lapsesMs, this.#parts)
  }

  #mustBeOpen(): void {
    if (this.closed)
      throw new RedriveError('CLOSED', `the mailbox ${this.name} is closed: open a new one`)
  }
}

function checkedRetentionMs(powers: MailboxPowers, retentionSeconds: number | undefined): number {
  const { kind, maxRetentionSeconds: most = Infinity } = powers
  const retentionMs = retentionMsOf(retentionSeconds)
  if (retentionMs <= most * 1000) return retentionMs
  throw new RedriveError(
    'INVALID_CONFIG',
    `${kind} deletes messages after ${most} seconds itself: retentionSeconds must be ${most} or less, got ${retentionSeconds}`,
  )
}
