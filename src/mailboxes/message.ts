import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Payload } from '../letter/letter.ts'
import { decodePayload } from '../letter/payload.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Delivery, MailboxDriver, MailboxResolver, Message, NackOptions } from '../mailbox.ts'
import { bounded, toPortable, maxVisibilitySeconds } from '../backends/bounds.ts'

export interface MessageParts {
  driver: MailboxDriver
  clock: Clock
  resolver: MailboxResolver | undefined
  /** Throws CLOSED if the mailbox is closed. */
  mustBeOpen: () => void
}

const nackKeys = keysOf<NackOptions>({ delaySeconds: true, failed: true })

/** One delivery. Its calls are passed to the driver with the receipt. */
export class OpenMessage implements Message {
  readonly id: string
  readonly body: Payload
  readonly headers: Readonly<Record<string, string>>
  readonly deliveries: number
  readonly failures: number
  readonly replyTo?: string
  readonly #parts: MessageParts
  readonly #receipt: string
  readonly #enqueuedMs: number
  readonly #firstReceivedMs: number
  #lapsesMs: number
  #finalized = false
  /**
   * Calls run one after the other: a call after the message is finalised is rejected instead of
   * executed twice.
   */
  #last: Promise<unknown> | undefined

  constructor(delivery: Delivery, lapsesMs: number, parts: MessageParts) {
    this.id = delivery.id
    this.body = payloadOf(delivery)
    this.headers = delivery.headers
    this.deliveries = delivery.deliveries
    this.failures = delivery.failures
    if (delivery.replyTo !== undefined) this.replyTo = delivery.replyTo
    this.#receipt = delivery.receipt
    this.#enqueuedMs = delivery.enqueuedMs
    this.#firstReceivedMs = delivery.firstReceivedMs
    this.#lapsesMs = lapsesMs
    this.#parts = parts
  }

  get finalized(): boolean {
    return this.#finalized
  }

  get enqueuedAt(): Timestamp {
    return toTimestamp(this.#enqueuedMs)
  }

  get firstReceivedAt(): Timestamp {
    return toTimestamp(this.#firstReceivedMs)
  }

  get visibleAt(): Timestamp {
    return toTimestamp(this.#lapsesMs)
  }

  value(): unknown {
    try {
      return decodePayload(this.body)
    } catch (cause) {
      const { contentType } = this.body
      throw new RedriveError(
        'UNDECODABLE',
        `message ${this.id} cannot be decoded as ${contentType.slice(0, 100)}: its bytes are in body`,
        { cause },
      )
    }
  }

  acknowledge(): Promise<void> {
    return this.#settle(() => this.#parts.driver.acknowledge(this.#receipt))
  }

  async nack(options: NackOptions = {}): Promise<void> {
    checkKeys('nack options', options, nackKeys)
    const { delaySeconds = 0, failed = true } = options
    const { driver } = this.#parts
    const delayMs = bounded('delaySeconds', delaySeconds, maxVisibilitySeconds) * 1000
    await this.#settle(() => driver.nack(this.#receipt, { delayMs, failed }))
  }

  async extend(seconds: number): Promise<void> {
    const { driver, clock } = this.#parts
    const askedMs = bounded('seconds', seconds, maxVisibilitySeconds) * 1000
    await this.#inTurn(async () => {
      if (!driver.powers.extend)
        throw new RedriveError('INVALID_INPUT', `${driver.powers.kind} cannot extend a receipt`)
      // Some brokers would shorten the receipt. They are asked for the rest of the longer time,
      // since only they know whether the receipt is still valid.
      const nowMs = clock.now()
      const leftMs = Math.min(this.#lapsesMs - nowMs, maxVisibilitySeconds * 1000)
      const ms = Math.max(askedMs, leftMs)
      if (!(await driver.extend(this.#receipt, ms))) throw this.#expired()
      this.#lapsesMs = nowMs + ms
    })
  }

  reply(body: unknown): Promise<string> {
    return this.#inTurn(async () => {
      const { replyTo } = this
      if (replyTo === undefined)
        throw new RedriveError('REPLY_UNAVAILABLE', `message ${this.id} has no reply address`)
      const target = await this.#parts.resolver?.resolve(replyTo)
      if (!target)
        throw new RedriveError(
          'REPLY_UNAVAILABLE',
          `the mailbox ${replyTo.slice(0, 100)} for the reply to message ${this.id} is unknown: pass a resolver that knows it`,
        )
      return target.send(body, { headers: { 'redrive-in-reply-to': toPortable(this.id) } })
    })
  }

  #settle(act: () => Promise<boolean>): Promise<void> {
    return this.#inTurn(async () => {
      if (!(await act())) throw this.#expired()
      this.#finalized = true
    })
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const run = (): Promise<T> => this.#unlessOver(act)
    const mine = this.#last ? this.#last.then(run) : run()
    this.#last = mine.catch(() => {})
    return mine
  }

  async #unlessOver<T>(act: () => Promise<T>): Promise<T> {
    if (this.#finalized)
      throw new RedriveError('MESSAGE_FINALIZED', `message ${this.id} is already finalised`)
    this.#parts.mustBeOpen()
    return act()
  }

  #expired(): RedriveError {
    return new RedriveError(
      'RECEIPT_EXPIRED',
      `the receipt for message ${this.id} is stale: it was settled, or it expired and another consumer may have the message`,
    )
  }
}

export function payloadOf({
  bytes,
  contentType,
}: Pick<Delivery, 'bytes' | 'contentType'>): Payload {
  return { bytes, contentType, size: bytes.byteLength, version: 1 }
}
