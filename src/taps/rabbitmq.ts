import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { ignore, linkTo, within, type Link } from '../backends/rabbitmq/connection.ts'
import { publisherTo, type Publisher } from '../backends/rabbitmq/publisher.ts'
import { sent } from './homeward.ts'
import { foreignLetterOf, homewardOf } from './rabbitmq-letter.ts'
import type { Keep, SentBack, Tap } from './tap.ts'

export interface RabbitMQTapOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps://` over TLS. */
  url: string
  /** Where a dead letter exchange puts what was given up. It must be there; it may be of any type. */
  queue: string
  keep: Keep
  /** Hears why a letter could not be kept. It is tried again until it can. */
  onError?: (error: unknown) => void
  /**
   * Where letters are sent back to: `exchange`, as they were first sent, or `queue`, straight to where they died, so that other queues of the
   * exchange do not get them twice. `exchange` unless said.
   */
  sendBackTo?: 'exchange' | 'queue'
  /** Letters that are being kept at once, those aside that cannot be kept for long. 10 unless said. */
  concurrency?: number
  clock?: Clock
  /** How long a call to the server may take. 5 seconds unless said. */
  timeoutMs?: number
}

/** Brings in what RabbitMQ has put into a dead letter queue, and sends it back. */
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

const firstPauseMs = 1000
const maxPauseMs = 30_000
/** A letter that failed so often is read past. Before that, it may be the store that is away. */
const patience = 3
/** All that is read past stays in memory, so there is an end to it. */
const maxPast = 2000
const maxPastBytes = 256 * 1024 * 1024

interface Session {
  channel: Channel
  /** Of the consumer that reads. */
  tag: string
  /** Aborts when its messages are no longer ours. */
  over: AbortController
  /** What could not be kept for long, and is read past. */
  past: Set<ConsumeMessage>
}

class RabbitMQTap implements Tap {
  readonly #options: RabbitMQTapOptions
  readonly #clock: Clock
  readonly #concurrency: number
  readonly #timeoutMs: number
  readonly #link: Link<Session>
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
    this.#publisher = publisherTo({ ...common, title: `redrive tap ${queue}, sending` })
    this.#link = linkTo<Session>({
      ...common,
      title: `redrive tap ${queue}, receiving`,
      setup: (model) => this.#begin(model),
    })
  }

  start(): Promise<void> {
    return this.#link.open()
  }

  /** What could not be kept yet goes back to its queue. */
  async stop(): Promise<void> {
    const session = this.#link.current
    if (session) {
      await this.#answered(session.channel.cancel(session.tag)).catch(ignore)
      session.over.abort()
      await Promise.all(this.#keeping)
      // An answer to this means that the server has heard what was acknowledged before.
      await this.#answered(session.channel.prefetch(1)).catch(ignore)
    }
    await Promise.all([this.#link.close(), this.#publisher.close()])
    await Promise.all(this.#keeping)
  }

  async sendBack(letter: SentBack, generation: number): Promise<void> {
    const { exchange, routingKey, queue } = letter.origin
    if (exchange === undefined || routingKey === undefined || queue === undefined)
      throw new RedriveError('INVALID_INPUT', 'the letter does not say where in RabbitMQ it was')
    const [to, key] =
      this.#options.sendBackTo === 'queue' ? ['', queue] : ([exchange, routingKey] as const)
    const where = `the exchange ${JSON.stringify(to)} with the routing key ${JSON.stringify(key)}`
    await sent(where, async () => {
      await this.#publisher.open()
      const publishing = homewardOf(letter, generation)
      if (await this.#publisher.publish(to, key, letter.body, publishing)) return
      throw new RedriveError('MAILBOX_UNAVAILABLE', 'no queue takes it there, and nothing was sent')
    })
  }

  async #begin(model: ChannelModel): Promise<Session> {
    const channel = await model.createChannel()
    const over = new AbortController()
    const session: Session = { channel, tag: this.#clock.id(), over, past: new Set() }
    channel.on('error', ignore)
    channel.on('close', () => {
      session.over.abort()
      this.#link.renew(session)
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
    // The queue is gone. The link waits until it is there again.
    if (message === null) return this.#link.renew(session)
    const keeping = this.#keep(session, message).finally(() => this.#keeping.delete(keeping))
    this.#keeping.add(keeping)
  }

  /**
   * Keeps it, and only then lets the server forget it. A letter that cannot be kept stays here and is tried again: giving it back would count
   * as a delivery, and newer servers drop a message after twenty of those.
   */
  async #keep(session: Session, message: ConsumeMessage): Promise<void> {
    const { channel, over, past } = session
    const { queue, keep, onError } = this.#options
    const foreign = foreignLetterOf(message, { queue, freshId: () => this.#clock.id() })
    for (let failures = 1; !over.signal.aborted; failures++)
      try {
        await keep(foreign)
        channel.ack(message)
        past.delete(message)
        return
      } catch (error) {
        if (over.signal.aborted) return
        tell(onError, error)
        if (failures >= patience) {
          past.add(message)
          void this.#readPast(session).catch(ignore)
        }
        const longest = Math.min(firstPauseMs * 2 ** (failures - 1), maxPauseMs)
        await sleep(this.#clock, longest * (0.5 + this.#clock.random() / 2), over.signal)
      }
  }

  /**
   * Letters that cannot be kept must not hold up the others. When they are all that the consumer has room for, another takes its place, with
   * room of its own. What the first one had stays with the channel.
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
    // Both are asked at once, so that whoever stops the tap meanwhile comes after them. If one fails, the channel closes.
    await Promise.all([channel.cancel(tag), this.#consume(session)])
  }

  #answered<T>(asked: Promise<T>): Promise<T> {
    return within(this.#clock, this.#timeoutMs, asked, 'the server did not answer')
  }
}

/** What listeners throw is their own. */
function tell(listener: ((error: unknown) => void) | undefined, error: unknown): void {
  try {
    listener?.(error)
  } catch {
    // It must not keep the letter from being tried again.
  }
}
