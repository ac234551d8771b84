import type {
  Message,
  MessageAttributeValue,
  SendMessageBatchRequestEntry,
  SQSClientConfig,
} from '@aws-sdk/client-sqs'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { toTimestamp } from '../letter/time.ts'
import { addressOf, type Address } from '../backends/sqs/address.ts'
import { SqsConnection } from '../backends/sqs/connection.ts'
import { lineageOf, onceIdOf, sendTo } from './returned-message.ts'
import { allStored, PollLoop } from './poll-loop.ts'
import type { ForeignLetter, Keep, ReturnedLetter, Tap } from './tap.ts'

export interface SqsTapOptions {
  /** The dead letter queue: `sqs://host:port/queue?region=…`, or its own `https://` URL. */
  url: string
  keep: Keep
  /** The name of the queue to return letters to, where SQS does not report their source queue. */
  sourceQueue?: string
  clock?: Clock
  connection?: SQSClientConfig
  /** Called with each error. Reading continues and retries by itself. */
  onError?: (error: unknown) => void
}

/**
 * Reads a dead letter queue, into which SQS moves messages that were received more often than a
 * `RedrivePolicy` allows.
 */
export function sqsTap(options: SqsTapOptions): Tap {
  return new SqsTap(options)
}

/** Storing a letter takes less than this; otherwise SQS delivers it a second time. */
const visibilitySeconds = 60
const waitSeconds = 20
const againSeconds = 1

class SqsTap implements Tap {
  readonly #options: SqsTapOptions
  readonly #clock: Clock
  readonly #address: Address
  readonly #queue: string
  readonly #connection: SqsConnection
  readonly #urls = new Map<string, Promise<string>>()
  #loop: PollLoop | undefined
  #stopped = false

  constructor(options: SqsTapOptions) {
    const { url, clock = systemClock, connection = {} } = options
    this.#address = addressOf(url)
    const { queue } = this.#address
    if (queue === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        'the URL of a tap must name a queue, as in sqs://host/queue',
      )
    this.#options = options
    this.#clock = clock
    this.#queue = queue
    this.#connection = SqsConnection.open(this.#address, connection, queue, clock)
  }

  async start(): Promise<void> {
    const queueUrl = this.#address.queueUrl ?? (await this.#urlOf(this.#queue))
    await this.#connection.attributes(queueUrl, ['QueueArn'])
    if (this.#stopped) return
    this.#loop ??= new PollLoop(this.#clock, () => this.#turn(queueUrl), this.#options.onError)
  }

  /**
   * Aborts the current poll. A message that SQS puts into that answer is delivered again when its
   * visibility timeout ends.
   */
  async stop(): Promise<void> {
    this.#stopped = true
    const stopped = this.#loop?.stop()
    this.#connection.abortPolls()
    await stopped
    this.#connection.close()
  }

  /**
   * Sends the letter to the queue in which it died. Attributes are unchanged unless somebody has
   * edited them.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { queue } = letter.origin
    if (queue === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        `the source queue of ${letter.messageId} is unknown: set the option sourceQueue of the tap`,
      )
    const entry = toSendEntry(letter, generation, queue.endsWith('.fifo'))
    await sendTo(`the queue ${queue}`, async () => {
      try {
        const failed = await this.#connection.send(await this.#urlOf(queue), [entry])
        const failure = failed.get('0')
        if (failure) throw this.#connection.toError(failure)
      } catch (error) {
        // The queue may have another URL when it exists again.
        this.#urls.delete(queue)
        throw error
      }
    })
  }

  async #turn(queueUrl: string): Promise<void> {
    const found = await this.#connection.receive(queueUrl, {
      max: 10,
      visibilitySeconds,
      waitSeconds,
    })
    const carrying = found.map((one) => this.#carry(queueUrl, one))
    await allStored(carrying, this.#options.onError)
  }

  /** Deletes the message only after its letter is stored. */
  async #carry(queueUrl: string, message: Message): Promise<void> {
    const entry = { Id: '0', ReceiptHandle: message.ReceiptHandle }
    try {
      await this.#options.keep(this.#foreignOf(message))
    } catch (error) {
      const later = { ...entry, VisibilityTimeout: againSeconds }
      await this.#connection.change(queueUrl, [later]).catch(() => {})
      throw error
    }
    const failure = (await this.#connection.delete(queueUrl, [entry])).get('0')
    if (failure) throw this.#connection.toError(failure)
  }

  #foreignOf(message: Message): ForeignLetter {
    const { MessageId = '', Body = '', Attributes = {}, MessageAttributes = {} } = message
    const { DeadLetterQueueSourceArn: arn, MessageGroupId: group, SentTimestamp } = Attributes
    const sentMs = Number(SentTimestamp)
    const headers: Record<string, string> = Object.fromEntries(
      Object.entries(MessageAttributes).flatMap(([name, { StringValue }]) =>
        StringValue === undefined ? [] : [[name, StringValue]],
      ),
    )
    const from = arn?.split(':').at(-1) ?? this.#options.sourceQueue
    return {
      source: this.#queue,
      reason: 'given up after too many deliveries (maxReceiveCount)',
      deliveries: Number(Attributes.ApproximateReceiveCount ?? 1),
      ...(sentMs > 0 ? { enqueuedAt: toTimestamp(sentMs) } : {}),
      body: Buffer.from(Body),
      contentType: headers['Content-Type'] ?? 'text/plain; charset=utf-8',
      headers,
      messageId: MessageId,
      origin: {
        attributes: attributesOf(MessageAttributes),
        ...(from === undefined ? {} : { queue: from }),
        ...(group === undefined ? {} : { group }),
      },
    }
  }

  #urlOf(queue: string): Promise<string> {
    const known = this.#urls.get(queue)
    if (known) return known
    const found = this.#connection.queueUrl(queue)
    this.#urls.set(queue, found)
    found.catch(() => this.#urls.delete(queue))
    return found
  }
}

type Attributes = Record<string, MessageAttributeValue>

/** The limit of SQS. */
const maxAttributes = 10

/**
 * Builds the message that returns a letter. The lineage attributes are left out where SQS allows no
 * more attributes.
 */
function toSendEntry(
  letter: ReturnedLetter,
  generation: number,
  isFifo: boolean,
): SendMessageBatchRequestEntry {
  const { headers, origin, messageId } = letter
  const own = attributesIn(origin['attributes'] ?? '[]', headers)
  for (const [name, StringValue] of Object.entries(lineageOf(letter, generation)))
    if (name in own || Object.keys(own).length < maxAttributes)
      own[name] = { DataType: 'String', StringValue }
  const once = { MessageDeduplicationId: onceIdOf(letter, generation) }
  return {
    Id: '0',
    MessageBody: Buffer.from(letter.body).toString(),
    MessageAttributes: own,
    ...(isFifo ? { MessageGroupId: origin['group'] ?? messageId, ...once } : {}),
  }
}

/** Encodes attributes as JSON, bytes in base64. */
function attributesOf(attributes: Attributes): string {
  return JSON.stringify(
    Object.entries(attributes).map(([name, { DataType, StringValue, BinaryValue }]) => [
      name,
      DataType,
      StringValue ?? Buffer.from(BinaryValue ?? []).toString('base64'),
    ]),
  )
}

/**
 * Binary attributes as they were read, string attributes with the current values of the headers.
 */
function attributesIn(json: string, headers: ReturnedLetter['headers']): Attributes {
  const rows = JSON.parse(json) as [name: string, type: string, value: string][]
  const types = new Map(rows.map(([name, type]) => [name, type]))
  const bytes = rows.filter(([, type]) => type.startsWith('Binary'))
  return Object.fromEntries([
    ...Object.entries(headers).map(([name, StringValue]) => [
      name,
      { DataType: types.get(name) ?? 'String', StringValue },
    ]),
    ...bytes.map(([name, DataType, value]) => [
      name,
      { DataType, BinaryValue: Buffer.from(value, 'base64') },
    ]),
  ]) as Attributes
}
