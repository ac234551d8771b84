import type { Message, QueueAttributeName, SQSClient, SQSClientConfig } from '@aws-sdk/client-sqs'
import { createHash } from 'node:crypto'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { Batcher, type Outcome } from '../../backends/batcher.ts'
import type {
  Ask,
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
import { useClient, wireTo, type Wire } from '../../backends/sqs/connection.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'

export interface SqsMailboxOptions {
  name: string
  /**
   * `sqs://host:port/queue?region=eu-west-1` for a server of one's own, `sqs:///queue?region=eu-west-1` for AWS, or the `https://` URL of
   * a queue. Without a queue it is called like the mailbox. Names that end in `.fifo` are FIFO queues.
   */
  url?: string
  /**
   * A client of the application, which is not destroyed when the mailbox closes. The queue is named like the mailbox. Either `url`
   * or `client` is required.
   */
  client?: SQSClient
  clock?: Clock
  resolver?: MailboxResolver
  /** More for the client. Credentials come from where the SDK looks for them unless they stand here. */
  connection?: SQSClientConfig
  /**
   * Messages older than this are removed when they are received. At most 1,209,600 (14 days): SQS itself deletes older ones, and
   * reports nothing. Default: 0, they are kept as long as the queue does. A queue that we create keeps them for 14 days.
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

/** A mailbox in Amazon SQS, or in a server that speaks like it. */
export function sqsMailbox(options: SqsMailboxOptions): Mailbox {
  checkKeys('sqs mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const address = options.url === undefined ? {} : addressOf(options.url)
  const { clock = systemClock, resolver } = options
  const { retentionSeconds = address.retentionSeconds ?? 0 } = options
  const driver = new SqsMailbox({ ...options, retentionSeconds }, address, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** SQS keeps no message for more than 14 days. Its default is 4. */
const maxRetentionSeconds = 14 * 24 * 3600

/** A receipt lasts no longer than this, however often it is extended. */
const longestSeconds = 43_200
const longestDelayMs = 900_000

/** One call carries so many entries, and so many calls of a kind are on their way at once. */
const together = { maxInFlight: 8, maxBatchCost: 10 }

/** Attributes count as SQS measures a message; so much is kept free for them. */
const roomForHeaders = 16 * 1024

const counts = [
  'ApproximateNumberOfMessages',
  'ApproximateNumberOfMessagesNotVisible',
  'ApproximateNumberOfMessagesDelayed',
] as const satisfies QueueAttributeName[]

interface Sending extends Packed {
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
  readonly #wantedSeconds: number
  readonly #wire: Wire
  readonly #clock: Clock
  readonly #receipts: Receipts
  readonly #polls: Polls
  readonly #sends: Batcher<Sending, void>
  readonly #deletes: Batcher<string, boolean>
  readonly #changes: Batcher<Change, boolean>
  #queueUrl: string | undefined
  #maxBytes = 256 * 1024

  constructor(options: SqsMailboxOptions, address: Address, clock: Clock) {
    const { name, client, connection = {}, retentionSeconds = 0 } = options
    this.name = name
    this.#wantedSeconds = retentionSeconds > 0 ? retentionSeconds : maxRetentionSeconds
    this.#clock = clock
    this.#address = address
    this.#queue = this.#address.queue ?? queueNameOf(name)
    this.#isFifo = this.#queue.endsWith('.fifo')
    this.#wire = client
      ? useClient(client, this.#queue, clock)
      : wireTo(this.#address, connection, this.#queue, clock)
    this.#receipts = new Receipts(clock)
    this.#polls = new Polls({
      clock,
      // What comes together from a FIFO queue may be of one group, and its order is lost when several work on it.
      shared: !this.#isFifo,
      start: (ask) => this.#wire.receive(this.#url(), ask),
      giveBack: (messages) => this.#giveBack(messages),
    })
    this.#sends = new Batcher(together, (sendings) => this.#sendAll(sendings))
    this.#deletes = new Batcher(together, (receipts) => this.#deleteAll(receipts))
    this.#changes = new Batcher(together, (changes) => this.#changeAll(changes))
  }

  get powers(): MailboxPowers {
    return {
      kind: 'sqs',
      durable: true,
      shared: true,
      visibility: true,
      extend: true,
      delay: !this.#isFifo,
      maxDelaySeconds: longestDelayMs / 1000,
      // The first delivery is, but failures are not told from deliveries.
      remembers: false,
      exactDeliveries: false,
      ordered: false,
      exactCount: false,
      purge: true,
      browse: false,
      deduplicates: this.#isFifo,
      maxRetentionSeconds,
      maxBodyBytes: Math.floor((this.#maxBytes - roomForHeaders) / 4) * 3 - 6,
    }
  }

  async open(): Promise<void> {
    const queueUrl = this.#address.queueUrl ?? (await this.#ensureQueue())
    const { MaximumMessageSize } = await this.#wire.attributes(queueUrl, ['MaximumMessageSize'])
    this.#maxBytes = Number(MaximumMessageSize ?? this.#maxBytes)
    this.#queueUrl = queueUrl
  }

  /** Polls are cut: what SQS puts into their answers at this moment comes back when its visibility lapses. */
  async close(): Promise<void> {
    this.#wire.cut()
    await this.#polls.idle()
    await Promise.all([this.#sends.idle(), this.#deletes.idle(), this.#changes.idle()])
    this.#wire.close()
  }

  async send(parcel: OutgoingMessage, delayMs: number): Promise<void> {
    if (delayMs > longestDelayMs)
      throw new RedriveError(
        'INVALID_INPUT',
        `sqs delays a message by 900 seconds at the most, got ${delayMs / 1000}`,
      )
    const packed = pack(parcel)
    if (packed.bytes > this.#maxBytes)
      throw new RedriveError(
        'TOO_LARGE',
        `the message has ${packed.bytes} bytes as it is written, this queue takes ${this.#maxBytes}: send a reference to it instead`,
      )
    const group = parcel.headers['redrive-group'] ?? parcel.id
    await this.#sends.call({ ...packed, id: parcel.id, group, delayMs })
  }

  async receive({ max, visibilityMs, waitMs, signal }: Ask): Promise<Delivery[]> {
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
    const lapsesMs = this.#clock.mono() + ms
    if (!(await this.#hide(receipt, ms))) return false
    this.#receipts.prolong(receipt, lapsesMs)
    return true
  }

  /** SQS says only about how many there were. */
  async purge(): Promise<number> {
    const count = await this.count()
    await this.#wire.purge(this.#url())
    this.#receipts.clear()
    return count
  }

  async count(): Promise<number> {
    const found = await this.#wire.attributes(this.#url(), [...counts])
    return counts.reduce((sum, name) => sum + Number(found[name] ?? 0), 0)
  }

  async health(): Promise<MailboxHealth> {
    const found = await this.#wire.attributes(this.#url(), ['All'])
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
      keptSeconds < this.#wantedSeconds
        ? [
            `the queue ${this.#queue} deletes messages after ${keptSeconds} seconds: set its MessageRetentionPeriod to ${maxRetentionSeconds}`,
          ]
        : []
    return { ok: problems.length === 0, checks, problems }
  }

  async #ensureQueue(): Promise<string> {
    const name = this.#queue
    try {
      return await this.#wire.queueUrl(name)
    } catch (error) {
      if (!isMissingQueue((error as Error).cause)) throw error
    }
    try {
      return await this.#wire.createQueue(name, {
        MessageRetentionPeriod: String(maxRetentionSeconds),
        ...(this.#isFifo ? { FifoQueue: 'true' } : {}),
      })
    } catch (error) {
      if (isTakenQueue((error as Error).cause)) return this.#wire.queueUrl(name)
      throw error
    }
  }

  /** When this fails, they come back when their visibility lapses. */
  #giveBack(messages: readonly Message[]): void {
    for (const { ReceiptHandle: receipt = '' } of messages)
      this.#changes.call({ receipt, seconds: 0 }).catch(() => {})
  }

  /** SQS refuses what would go beyond twelve hours since it was received; it gets what is left of them. */
  async #hide(receipt: string, ms: number): Promise<boolean> {
    const ageMs = this.#receipts.ageMs(receipt)
    if (ageMs === undefined) return false
    const leftSeconds = Math.floor(longestSeconds - ageMs / 1000)
    const seconds = Math.max(0, Math.min(wholeSeconds(ms), leftSeconds))
    return this.#changes.call({ receipt, seconds })
  }

  /** A batch may weigh as much as one message may, so large ones go in several. */
  async #sendAll(sendings: Sending[]): Promise<Outcome<void>[]> {
    const loads: Sending[][] = []
    let roomLeft = 0
    for (const sending of sendings) {
      if (sending.bytes > roomLeft) {
        loads.push([])
        roomLeft = this.#maxBytes
      }
      loads.at(-1)!.push(sending)
      roomLeft -= sending.bytes
    }
    const outcomes = await Promise.all(loads.map((load) => this.#sendLoad(load)))
    return outcomes.flat()
  }

  async #sendLoad(load: Sending[]): Promise<Outcome<void>[]> {
    const entries = load.map(({ id, body, attributes, group, delayMs }, at) => ({
      Id: String(at),
      MessageBody: body,
      MessageAttributes: attributes,
      ...(this.#isFifo
        ? { MessageGroupId: tokenOf(group), MessageDeduplicationId: tokenOf(id) }
        : {}),
      ...(delayMs > 0 ? { DelaySeconds: wholeSeconds(delayMs) } : {}),
    }))
    try {
      const failed = await this.#wire.send(this.#url(), entries)
      return load.map((_, at) => {
        const failure = failed.get(String(at))
        return failure ? { error: this.#wire.refused(failure) } : { value: undefined }
      })
    } catch (error) {
      // The other loads of the batch may have arrived.
      return load.map(() => ({ error }))
    }
  }

  async #deleteAll(receipts: string[]): Promise<Outcome<boolean>[]> {
    const entries = receipts.map((ReceiptHandle, at) => ({ Id: String(at), ReceiptHandle }))
    return this.#settled(entries.length, await this.#wire.delete(this.#url(), entries))
  }

  async #changeAll(changes: Change[]): Promise<Outcome<boolean>[]> {
    const entries = changes.map(({ receipt, seconds }, at) => ({
      Id: String(at),
      ReceiptHandle: receipt,
      VisibilityTimeout: seconds,
    }))
    return this.#settled(entries.length, await this.#wire.change(this.#url(), entries))
  }

  #settled(length: number, failed: Awaited<ReturnType<Wire['delete']>>): Outcome<boolean>[] {
    return Array.from({ length }, (_, at) => {
      const failure = failed.get(String(at))
      if (!failure) return { value: true }
      return isStale(failure.Code) ? { value: false } : { error: this.#wire.refused(failure) }
    })
  }

  #url(): string {
    if (this.#queueUrl !== undefined) return this.#queueUrl
    throw new RedriveError('CLOSED', `${this.name} is not open yet: await open() first`)
  }
}

/** SQS counts in seconds: rather too long than too short. */
function wholeSeconds(ms: number): number {
  return Math.max(0, Math.ceil(ms / 1000))
}

/** What groups and ids of FIFO queues may be. */
function tokenOf(text: string): string {
  return /^[!-~]{1,128}$/.test(text) ? text : createHash('sha256').update(text).digest('hex')
}
