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
import { wireTo, type Wire } from '../backends/sqs/connection.ts'
import { lineageOf, onceIdOf, sent } from './homeward.ts'
import { allCarried, reading, type Reading } from './reading.ts'
import type { ForeignLetter, Keep, SentBack, Tap } from './tap.ts'

export interface SqsTapOptions {
  /** The dead letter queue: `sqs://host:port/queue?region=…`, or its own `https://` URL. */
  url: string
  keep: Keep
  /** The name of the queue to send letters back to, where SQS does not say where they came from. */
  sourceQueue?: string
  clock?: Clock
  connection?: SQSClientConfig
  /** Hears what failed. It is tried again by itself. */
  onError?: (error: unknown) => void
}

/** Reads a dead letter queue, where SQS puts what was received more often than a `RedrivePolicy` allows. */
export function sqsTap(options: SqsTapOptions): Tap {
  return new SqsTap(options)
}

/** Keeping takes less than this; otherwise the letter comes a second time. */
const visibilitySeconds = 60
const waitSeconds = 20
const againSeconds = 1

class SqsTap implements Tap {
  readonly #options: SqsTapOptions
  readonly #clock: Clock
  readonly #address: Address
  readonly #queue: string
  readonly #wire: Wire
  readonly #urls = new Map<string, Promise<string>>()
  #reading: Reading | undefined
  #stopped = false

  constructor(options: SqsTapOptions) {
    const { url, clock = systemClock, connection = {} } = options
    this.#address = addressOf(url)
    const { queue } = this.#address
    if (queue === undefined)
      throw new RedriveError('INVALID_INPUT', 'the URL of a tap names a queue: sqs://host/queue')
    this.#options = options
    this.#clock = clock
    this.#queue = queue
    this.#wire = wireTo(this.#address, connection, queue, clock)
  }

  async start(): Promise<void> {
    const queueUrl = this.#address.queueUrl ?? (await this.#urlOf(this.#queue))
    await this.#wire.attributes(queueUrl, ['QueueArn'])
    if (this.#stopped) return
    this.#reading ??= reading(this.#clock, () => this.#turn(queueUrl), this.#options.onError)
  }

  /** The poll is cut: what SQS puts into its answer at this moment comes again when its visibility lapses. */
  async stop(): Promise<void> {
    this.#stopped = true
    const stopped = this.#reading?.stop()
    this.#wire.cut()
    await stopped
    this.#wire.close()
  }

  /** To the queue that it died in. Attributes go as they came, unless somebody has edited them. */
  async sendBack(letter: SentBack, generation: number): Promise<void> {
    const { queue } = letter.origin
    if (queue === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        `nobody knows which queue ${letter.messageId} came from: give the tap its sourceQueue`,
      )
    const entry = homewardOf(letter, generation, queue.endsWith('.fifo'))
    await sent(`the queue ${queue}`, async () => {
      try {
        const failed = await this.#wire.send(await this.#urlOf(queue), [entry])
        const failure = failed.get('0')
        if (failure) throw this.#wire.refused(failure)
      } catch (error) {
        // It may have another URL when it is there again.
        this.#urls.delete(queue)
        throw error
      }
    })
  }

  async #turn(queueUrl: string): Promise<void> {
    const found = await this.#wire.receive(queueUrl, { max: 10, visibilitySeconds, waitSeconds })
    const carrying = found.map((one) => this.#carry(queueUrl, one))
    await allCarried(carrying, this.#options.onError)
  }

  /** Deleted only once it is kept. */
  async #carry(queueUrl: string, message: Message): Promise<void> {
    const entry = { Id: '0', ReceiptHandle: message.ReceiptHandle }
    try {
      await this.#options.keep(this.#foreignOf(message))
    } catch (error) {
      const later = { ...entry, VisibilityTimeout: againSeconds }
      await this.#wire.change(queueUrl, [later]).catch(() => {})
      throw error
    }
    const failure = (await this.#wire.delete(queueUrl, [entry])).get('0')
    if (failure) throw this.#wire.refused(failure)
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
    const found = this.#wire.queueUrl(queue)
    this.#urls.set(queue, found)
    found.catch(() => this.#urls.delete(queue))
    return found
  }
}

type Attributes = Record<string, MessageAttributeValue>

/** SQS takes no more. */
const maxAttributes = 10

/** How a letter travels home. It says how often it went, if there is room for that. */
function homewardOf(
  letter: SentBack,
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

/** As JSON, with bytes in base64. */
function attributesOf(attributes: Attributes): string {
  return JSON.stringify(
    Object.entries(attributes).map(([name, { DataType, StringValue, BinaryValue }]) => [
      name,
      DataType,
      StringValue ?? Buffer.from(BinaryValue ?? []).toString('base64'),
    ]),
  )
}

/** Bytes as they came, and texts as the headers have them now. */
function attributesIn(json: string, headers: SentBack['headers']): Attributes {
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
