import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { systemClock, type Clock } from '../clock/clock.ts'
import { retry } from '../clock/retry.ts'
import { RedriveError } from '../errors.ts'
import { ignore, limitTime, RabbitmqConnection } from '../backends/rabbitmq/connection.ts'
import { Publisher } from '../backends/rabbitmq/publisher.ts'
import { reportError } from './poll-loop.ts'
import { sendTo } from './returned-message.ts'
import { foreignLetterOf, toPublishOptions } from './rabbitmq-letter.ts'
import type { Keep, ReturnedLetter, Tap } from './tap.ts'

export interface RabbitMQTapOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps://` over TLS. */
  url: string
  /** The queue of a dead letter exchange. It must exist; it may be of any type. */
  queue: string
  keep: Keep
  /** Called each time that a letter could not be stored. Storing is retried until it succeeds. */
  onError?: (error: unknown) => void
  /**
   * Where letters return to: `exchange`, to which they were first published, or `queue`, the queue
   * in which they died, so that other queues of the exchange do not receive them twice. Default:
   * `exchange`.
   */
  returnTo?: 'exchange' | 'queue'
  /**
   * Maximum number of letters that are stored at once, not counting letters that fail repeatedly.
   * Default: 10.
   */
  concurrency?: number
  clock?: Clock
  /** Time limit of a call to the server. Default: 5 seconds. */
  timeoutMs?: number
}

/** Reads a dead letter queue of RabbitMQ, and returns letters to their source. */
export function rabbitmqTap(options: RabbitMQTapOptions): Tap {
  const { concurrency = 10, timeoutMs = 5000 } = options
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
    throw new RedriveError(
      'INVALID_INPUT',
      `concurrency must be a whole number from 1 to 1000, not ${concurrency}`,
    )
  if (!(timeoutMs > 0))
    throw new RedriveError('INVALID_INPUT', `timeoutMs must be a number above 0, not ${timeoutMs}`)
  return new RabbitMQTap(options, { concurrency, timeoutMs })
}

const storeDelay = { firstMs: 1000, maxMs: 30_000 }
/**
 * Other letters are read past a letter that failed this often. Before that, the store may be
 * unreachable.
 */
const patience = 3
/** Letters that are read past stay in memory, so their number and size are bounded. */
const maxPast = 2000
const maxPastBytes = 256 * 1024 * 1024

interface Session {
  channel: Channel
  /** The tag of the consumer that reads. */
  tag: string
  /** Aborts when the messages of this session are no longer ours. */
  over: AbortController
  /** Letters that failed repeatedly and are read past. */
  past: Set<ConsumeMessage>
}

class RabbitMQTap implements Tap {
  readonly #options: RabbitMQTapOptions
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #timeoutMs: number
  readonly #connection: RabbitmqConnection<Session>
  readonly #publisher: Publisher
  readonly #keeping = new Set<Promise<void>>()

  constructor(
    options: RabbitMQTapOptions,
    { concurrency, timeoutMs }: { concurrency: number; timeoutMs: number },
  ) {
    const { url, queue, clock = systemClock } = options
    this.#options = options
    this.#clock = clock
    this.#concurrency = concurrency
    this.#timeoutMs = timeoutMs
    const common = { url, clock, timeoutMs }
    this.#publisher = new Publisher({ ...common, title: `redrive tap ${queue}, sending` })
    this.#connection = new RabbitmqConnection<Session>({
      ...common,
      title: `redrive tap ${queue}, receiving`,
      setup: (model) => this.#begin(model),
    })
  }

  start(): Promise<void> {
    return this.#connection.open()
  }

  /** Letters that are not stored yet return to their queue. */
  async stop(): Promise<void> {
    const session = this.#connection.current
    if (session) {
      await this.#awaitAnswer(session.channel.cancel(session.tag)).catch(ignore)
      session.over.abort()
      await Promise.all(this.#keeping)
      // The answer to this call means that the server has received all acknowledgements before it.
      await this.#awaitAnswer(session.channel.prefetch(1)).catch(ignore)
    }
    await Promise.all([this.#connection.close(), this.#publisher.close()])
    await Promise.all(this.#keeping)
  }

  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { exchange, routingKey, queue } = letter.origin
    if (exchange === undefined || routingKey === undefined || queue === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        'the origin of this letter has no exchange, routing key and queue',
      )
    const [to, key] =
      this.#options.returnTo === 'queue' ? ['', queue] : ([exchange, routingKey] as const)
    const where = `the exchange ${JSON.stringify(to)} with the routing key ${JSON.stringify(key)}`
    await sendTo(where, async () => {
      await this.#publisher.open()
      const publishing = toPublishOptions(letter, generation)
      if (await this.#publisher.publish(to, key, letter.body, publishing)) return
      throw new RedriveError('MAILBOX_UNAVAILABLE', 'no queue is bound there, so nothing was sent')
    })
  }

  async #begin(model: ChannelModel): Promise<Session> {
    const channel = await model.createChannel()
    const over = new AbortController()
    const session: Session = { channel, tag: this.#clock.id(), over, past: new Set() }
    channel.on('error', ignore)
    channel.on('close', () => {
      session.over.abort()
      this.#connection.renew(session)
    })
    await channel.prefetch(this.#concurrency)
    await this.#consume(session)
    return session
  }

  async #consume(session: Session): Promise<void> {
    const arrive = (message: ConsumeMessage | null): void => this.#arrive(session, message)
    await session.channel.consume(this.#options.queue, arrive, { consumerTag: session.tag })
  }

  #arrive(session: Session, message: ConsumeMessage | null): void {
    // The queue was deleted. The connection retries until the queue exists again.
    if (message === null) return this.#connection.renew(session)
    const keeping = this.#keep(session, message).finally(() => this.#keeping.delete(keeping))
    this.#keeping.add(keeping)
  }

  /**
   * Stores the letter, then acknowledges the message. A letter that cannot be stored stays here and
   * is retried: requeueing would count as a delivery, and newer servers drop a message after twenty
   * deliveries.
   */
  async #keep(session: Session, message: ConsumeMessage): Promise<void> {
    const { channel, over, past } = session
    const { queue, keep, onError } = this.#options
    const foreign = foreignLetterOf(message, { queue, freshId: () => this.#clock.id() })
    const { signal } = over
    if (signal.aborted) return
    const report = (thrown: unknown, failures: number): void => {
      if (signal.aborted) return
      reportError(onError, thrown)
      if (failures < patience) return
      past.add(message)
      void this.#readPast(session).catch(ignore)
    }
    try {
      await retry({ clock: this.#clock, ...storeDelay, signal, onError: report }, async () => {
        await keep(foreign)
        channel.ack(message)
        past.delete(message)
      })
    } catch {
      // The session is over: the server delivers the message again.
    }
  }

  /**
   * Letters that fail repeatedly must not block the others. When they fill the prefetch limit of
   * the consumer, a new consumer replaces it. Messages of the old consumer stay with the channel.
   */
  async #readPast(session: Session): Promise<void> {
    const { channel, tag, past } = session
    let inTheWay = 0
    let bytes = 0
    for (const { fields, content } of past) {
      if (fields.consumerTag === tag) inTheWay += 1
      bytes += content.byteLength
    }
    if (inTheWay < this.#concurrency || past.size >= maxPast || bytes >= maxPastBytes) return
    session.tag = this.#clock.id()
    // Both requests are sent at once, so that a stop in between comes after them. If one fails, the
    // channel closes.
    await Promise.all([channel.cancel(tag), this.#consume(session)])
  }

  #awaitAnswer<T>(asked: Promise<T>): Promise<T> {
    return limitTime(this.#clock, this.#timeoutMs, asked, 'the server did not answer')
  }
}
