import type { Message, QueueAttributeName, SQSClient, SQSClientConfig } from '@aws-sdk/client-sqs'
import { createHash } from 'node:crypto'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { Batcher, type Outcome } from '../../backends/batcher.ts'
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
import { addressOf, queueNameOf, type Address } from '../../backends/sqs/address.ts'
import { pack, unpack, type Packed } from './packing.ts'
import { Polls } from '../../backends/sqs/polls.ts'
import { Receipts } from './receipts.ts'
import { isMissingQueue, isStale, isTakenQueue } from '../../backends/sqs/errors.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'
import { SqsConnection } from '../../backends/sqs/connection.ts'

export interface SqsMailboxOptions {
  name: string
  /**
   * `sqs://host:port/queue?region=eu-west-1` for a private server, `sqs:///queue?region=eu-west-1`
   * for AWS, or the `https://` URL of a queue. Without a queue, its name is that of the mailbox.
   * Names that end in `.fifo` are FIFO queues.
   */
  url?: string
  /**
   * A client of the application, which is not destroyed when the mailbox closes. The queue has the
   * name of the mailbox. Either `url` or `client` is required.
   */
  client?: SQSClient
  clock?: Clock
  resolver?: MailboxResolver
  /**
   * Further options of the client. Without credentials here, the SDK uses its own configuration.
   */
  connection?: SQSClientConfig
  /**
   * Messages older than this are removed when they are received. At most 1,209,600 (14 days): SQS
   * itself deletes older ones without a report. A queue that we create stores them for 14 days.
   * Default: 0, they are stored as long as the queue stores them.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<SqsMailboxOptions>({
  name: true,
  url: true,
  client: true,
  clock: true,
  resolver: true,
  connection: true,
  retentionSeconds: true,
})

/** A mailbox in Amazon SQS, or in a compatible server. */
export function sqsMailbox(options: SqsMailboxOptions): Mailbox {
  checkKeys('sqs mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const address = options.url === undefined ? {} : addressOf(options.url)
  const { clock = systemClock, resolver } = options
  const { retentionSeconds = address.retentionSeconds ?? 0 } = options
  const driver = new SqsMailbox({ ...options, retentionSeconds }, address, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** The maximum of SQS is 14 days. Its default is 4. */
const maxRetentionSeconds = 14 * 24 * 3600

/** The maximum lifetime of a receipt, however often it is extended. */
const maxReceiptSeconds = 43_200
const maxDelayMs = 900_000

/** Limits of a batch call, and of calls of one kind in flight. */
const batchLimits = { maxInFlight: 8, maxBatchCost: 10 }

/** SQS counts attributes as part of a message; this much is reserved for them. */
const reservedHeaderBytes = 16 * 1024

const counts = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const satisfies QueueAttributeName[]

interface PendingSend extends Packed {
  id: string
  group: string
  delayMs: number
}

interface Change {
  receipt: string
  seconds: number
}

class SqsMailbox implements MailboxDriver {
  readonly name: string
  readonly #address: Address
  readonly #queue: string
  readonly #isFifo: boolean
  readonly #requiredSeconds: number
  readonly #connection: SqsConnection
  readonly #clock: Clock
  readonly #receipts: Receipts
  readonly #polls: Polls
  readonly #sends: Batcher<PendingSend, void>
  readonly #deletes: Batcher<string, boolean>
  readonly #changes: Batcher<Change, boolean>
  #queueUrl: string | undefined
  #maxBytes = 256 * 1024

  constructor(options: SqsMailboxOptions, address: Address, clock: Clock) {
    const { name, client, connection = {}, retentionSeconds = 0 } = options
    this.name = name
    this.#requiredSeconds = retentionSeconds > 0 ? retentionSeconds : maxRetentionSeconds
    this.#clock = clock
    this.#address = address
    this.#queue = this.#address.queue ?? queueNameOf(name)
    this.#isFifo = this.#queue.endsWith('.fifo')
    this.#connection = client
      ? SqsConnection.use(client, this.#queue, clock)
      : SqsConnection.open(this.#address, connection, this.#queue, clock)
    this.#receipts = new Receipts(clock)
    this.#polls = new Polls({
      clock,
      // Messages of one answer of a FIFO queue may belong to one group, whose order would be lost
      // with several consumers.
      shared: !this.#isFifo,
      start: (ask) => this.#connection.receive(this.#url(), ask),
      release: (messages) => this.#release(messages),
    })
    this.#sends = new Batcher(batchLimits, (sendings) => this.#sendAll(sendings))
    this.#deletes = new Batcher(batchLimits, (receipts) => this.#deleteAll(receipts))
    this.#changes = new Batcher(batchLimits, (changes) => this.#changeAll(changes))
  }

  get powers(): MailboxPowers {
    return {
      kind: 'sqs',
      durable: true,
      shared: true,
      visibility: true,
      extend: true,
      delay: !this.#isFifo,
      maxDelaySeconds: maxDelayMs / 1000,
      // The first delivery is recorded, but failures are not distinguished from deliveries.
      remembers: false,
      exactDeliveries: false,
      ordered: false,
      exactCount: false,
      purge: true,
      browse: false,
      deduplicates: this.#isFifo,
      maxRetentionSeconds,
      maxBodyBytes: Math.floor((this.#maxBytes - reservedHeaderBytes) / 4) * 3 - 6,
    }
  }

  async open(): Promise<void> {
    const queueUrl = this.#address.queueUrl ?? (await this.#ensureQueue())
    const { MaximumMessageSize } = await this.#connection.attributes(queueUrl, [
      'MaximumMessageSize',
    ])
    this.#maxBytes = Number(MaximumMessageSize ?? this.#maxBytes)
    this.#queueUrl = queueUrl
  }

  /**
   * Aborts polls: messages that SQS puts into their answers become visible when their visibility
   * timeout ends.
   */
  async close(): Promise<void> {
    this.#connection.abortPolls()
    await this.#polls.idle()
    await Promise.all([this.#sends.idle(), this.#deletes.idle(), this.#changes.idle()])
    this.#connection.close()
  }

  async send(outgoing: OutgoingMessage, delayMs: number): Promise<void> {
    if (delayMs > maxDelayMs)
      throw new RedriveError(
        'INVALID_INPUT',
        `the maximum delay of sqs is 900 seconds, got ${delayMs / 1000}`,
      )
    const packed = pack(outgoing)
    if (packed.bytes > this.#maxBytes)
      throw new RedriveError(
        'TOO_LARGE',
        `the encoded message has ${packed.bytes} bytes, the limit of this queue is ${this.#maxBytes}: send a reference to it instead`,
      )
    const group = outgoing.headers['redrive-group'] ?? outgoing.id
    await this.#sends.call({ ...packed, id: outgoing.id, group, delayMs })
  }

  async receive({ max, visibilityMs, waitMs, signal }: ReceiveRequest): Promise<Delivery[]> {
    this.#url()
    const ask = {
      max,
      visibilitySeconds: wholeSeconds(visibilityMs),
      waitSeconds: wholeSeconds(waitMs),
    }
    const found = await this.#polls.take(ask, signal)
    for (const { ReceiptHandle = '' } of found) this.#receipts.add(ReceiptHandle, visibilityMs)
    return found.map((one) => unpack(one, this.#clock.now()))
  }

  async acknowledge(receipt: string): Promise<boolean> {
    if (this.#receipts.ageMs(receipt) === undefined) return false
    const done = await this.#deletes.call(receipt)
    this.#receipts.drop(receipt)
    return done
  }

  async nack(receipt: string, { delayMs }: { delayMs: number }): Promise<boolean> {
    const done = await this.#hide(receipt, delayMs)
    this.#receipts.drop(receipt)
    return done
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    const expiresMs = this.#clock.mono() + ms
    if (!(await this.#hide(receipt, ms))) return false
    this.#receipts.extend(receipt, expiresMs)
    return true
  }

  /** The number is approximate, as SQS reports it. */
  async purge(): Promise<number> {
    const count = await this.count()
    await this.#connection.purge(this.#url())
    this.#receipts.clear()
    return count
  }

  async count(): Promise<number> {
    const found = await this.#connection.attributes(this.#url(), [...counts])
    return counts.reduce((sum, name) => sum + Number(found[name] ?? 0), 0)
  }

  async health(): Promise<MailboxHealth> {
    const found = await this.#connection.attributes(this.#url(), ['All'])
    const [waiting, hidden, delayed] = counts.map((name) => found[name] ?? '0')
    const checks = {
      queue: this.#queue,
      waiting: waiting!,
      hidden: hidden!,
      delayed: delayed!,
      retentionSeconds: found.MessageRetentionPeriod ?? 'unknown',
      redrivePolicy: found.RedrivePolicy ?? 'none',
    }
    const keptSeconds = Number(found.MessageRetentionPeriod ?? Infinity)
    const problems =
      keptSeconds < this.#requiredSeconds
        ? [
            `the queue ${this.#queue} deletes messages after ${keptSeconds} seconds: set its MessageRetentionPeriod to ${maxRetentionSeconds}`,
          ]
        : []
    return { ok: problems.length === 0, checks, problems }
  }

  async #ensureQueue(): Promise<string> {
    const name = this.#queue
    try {
      return await this.#connection.queueUrl(name)
    } catch (error) {
      if (!isMissingQueue((error as Error).cause)) throw error
    }
    try {
      return await this.#connection.createQueue(name, {
        MessageRetentionPeriod: String(maxRetentionSeconds),
        ...(this.#isFifo ? { FifoQueue: 'true' } : {}),
      })
    } catch (error) {
      if (isTakenQueue((error as Error).cause)) return this.#connection.queueUrl(name)
      throw error
    }
  }

  /** If this fails, the messages become visible when their visibility timeout ends. */
  #release(messages: readonly Message[]): void {
    for (const { ReceiptHandle: receipt = '' } of messages)
      this.#changes.call({ receipt, seconds: 0 }).catch(() => {})
  }

  /**
   * SQS rejects times beyond twelve hours after the receipt, so the time is limited to the rest.
   */
  async #hide(receipt: string, ms: number): Promise<boolean> {
    const ageMs = this.#receipts.ageMs(receipt)
    if (ageMs === undefined) return false
    const leftSeconds = Math.floor(maxReceiptSeconds - ageMs / 1000)
    const seconds = Math.max(0, Math.min(wholeSeconds(ms), leftSeconds))
    return this.#changes.call({ receipt, seconds })
  }

  /**
   * The size limit of a batch is that of one message, so large messages are split into several
   * batches.
   */
  async #sendAll(sendings: PendingSend[]): Promise<Outcome<void>[]> {
    const parts: PendingSend[][] = []
    let roomLeft = 0
    for (const sending of sendings) {
      if (sending.bytes > roomLeft) {
        parts.push([])
        roomLeft = this.#maxBytes
      }
      parts.at(-1)!.push(sending)
      roomLeft -= sending.bytes
    }
    const outcomes = await Promise.all(parts.map((part) => this.#sendPart(part)))
    return outcomes.flat()
  }

  async #sendPart(part: PendingSend[]): Promise<Outcome<void>[]> {
    const entries = part.map(({ id, body, attributes, group, delayMs }, at) => ({
      Id: String(at),
      MessageBody: body,
      MessageAttributes: attributes,
      ...(this.#isFifo
        ? { MessageGroupId: toToken(group), MessageDeduplicationId: toToken(id) }
        : {}),
      ...(delayMs > 0 ? { DelaySeconds: wholeSeconds(delayMs) } : {}),
    }))
    try {
      const failed = await this.#connection.send(this.#url(), entries)
      return part.map((_, at) => {
        const failure = failed.get(String(at))
        return failure ? { error: this.#connection.toError(failure) } : { value: undefined }
      })
    } catch (error) {
      // The other parts of the batch may have arrived.
      return part.map(() => ({ error }))
    }
  }

  async #deleteAll(receipts: string[]): Promise<Outcome<boolean>[]> {
    const entries = receipts.map((ReceiptHandle, at) => ({ Id: String(at), ReceiptHandle }))
    return this.#toOutcomes(entries.length, await this.#connection.delete(this.#url(), entries))
  }

  async #changeAll(changes: Change[]): Promise<Outcome<boolean>[]> {
    const entries = changes.map(({ receipt, seconds }, at) => ({
      Id: String(at),
      ReceiptHandle: receipt,
      VisibilityTimeout: seconds,
    }))
    return this.#toOutcomes(entries.length, await this.#connection.change(this.#url(), entries))
  }

  #toOutcomes(
    length: number,
    failed: Awaited<ReturnType<SqsConnection['delete']>>,
  ): Outcome<boolean>[] {
    return Array.from({ length }, (_, at) => {
      const failure = failed.get(String(at))
      if (!failure) return { value: true }
      return isStale(failure.Code) ? { value: false } : { error: this.#connection.toError(failure) }
    })
  }

  #url(): string {
    if (this.#queueUrl !== undefined) return this.#queueUrl
    throw new RedriveError('CLOSED', `${this.name} is not open yet: call and await open() first`)
  }
}

/** SQS counts in seconds: rounded up. */
function wholeSeconds(ms: number): number {
  return Math.max(0, Math.ceil(ms / 1000))
}

/** Encodes groups and ids for FIFO queues. */
function toToken(text: string): string {
  return /^[!-~]{1,128}$/.test(text) ? text : createHash('sha256').update(text).digest('hex')
}
