import type { Channel, Options } from 'amqplib'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
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
import { queryOf, urlSettings } from '../../backends/url.ts'
import { mailbox } from '../mailbox.ts'
import { retentionIn } from '../../backends/retention.ts'
import { toCopy, toPublishOptions, type Ending } from '../../backends/rabbitmq/form.ts'
import type { Held } from './held-messages.ts'
import { Intake } from './intake.ts'
import { closeTimeoutMs, ignore, limitTime } from '../../backends/rabbitmq/connection.ts'
import {
  delayQueueOf,
  delayQueuesOf,
  queueOf,
  type DelayQueue,
} from '../../backends/rabbitmq/names.ts'
import { Publisher } from '../../backends/rabbitmq/publisher.ts'
import { requeue } from '../../backends/rabbitmq/session.ts'
import { toRedriveError } from '../../backends/rabbitmq/errors.ts'

export interface RabbitMQMailboxOptions {
  /** Also the name of the queue, if it is valid in RabbitMQ. */
  name: string
  /** `amqp://user:password@host:5672/vhost`, or `amqps://` over TLS. */
  url: string
  clock?: Clock
  resolver?: MailboxResolver
  /**
   * False: the queue must exist, and is used as it is, of any type. Default: true, a quorum queue
   * is created.
   */
  declare?: boolean
  /** Time limit of a call. Default: 5 seconds. */
  timeoutMs?: number
  /**
   * Messages older than this are removed when they are received. The queue is created without a
   * time to live. Default: 0, they are stored forever.
   */
  retentionSeconds?: number
}

const optionKeys = keysOf<RabbitMQMailboxOptions>({
  name: true,
  url: true,
  clock: true,
  resolver: true,
  declare: true,
  timeoutMs: true,
  retentionSeconds: true,
})

/** URL parameters: ours, and those of the client. */
const urlKeys = [
  'retentionSeconds',
  'heartbeat',
  'frameMax',
  'channelMax',
  'maxFrameSize',
  'locale',
] as const

/** A mailbox in RabbitMQ, for any number of processes: a quorum queue of the same name. */
export function rabbitmqMailbox(options: RabbitMQMailboxOptions): Mailbox {
  checkKeys('rabbitmq mailbox options', options, optionKeys, { code: 'INVALID_CONFIG' })
  const settings = urlSettings('RabbitMQ URL', queryOf(options.url), urlKeys)
  const { clock = systemClock, resolver } = options
  const { retentionSeconds = retentionIn(settings).retentionSeconds ?? 0 } = options
  const driver = new RabbitMQMailbox(options, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** Newer servers drop a message after twenty deliveries by default. That decision is not theirs. */
const noLimit = 1_000_000_000

const quorum = { 'x-queue-type': 'quorum', 'x-delivery-limit': noLimit }

/**
 * A delay queue that is unused for this long is deleted; its messages have been moved long before.
 */
const unusedMs = 24 * 3600 * 1000
/** Declaring the queue again restarts that time. */
const renewMs = 3600 * 1000

class RabbitMQMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers = {
    kind: 'rabbitmq',
    durable: true,
    shared: true,
    visibility: true,
    extend: true,
    delay: true,
    remembers: true,
    exactDeliveries: false,
    ordered: true,
    exactCount: false,
    purge: true,
    browse: false,
    deduplicates: false,
    maxBodyBytes: 16 * 1024 ** 2,
  }
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #declares: boolean
  readonly #queue: string
  readonly #publisher: Publisher
  readonly #intake: Intake
  /** When delay queues were last declared, on the monotonic clock. */
  readonly #delayQueues = new Map<string, number>()
  readonly #expiring = new Set<Promise<void>>()

  constructor(options: RabbitMQMailboxOptions, clock: Clock) {
    const { name, url, declare = true, timeoutMs = 5000 } = options
    if (!(timeoutMs > 0))
      throw new RedriveError(
        'INVALID_INPUT',
        `timeoutMs must be a number above 0, not ${timeoutMs}`,
      )
    this.name = name
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#declares = declare
    const queue = (this.#queue = queueOf(name))
    const common = { url, clock, timeoutMs }
    this.#publisher = new Publisher({ ...common, title: `redrive ${name}, sending` })
    this.#intake = new Intake({
      ...common,
      title: `redrive ${name}, receiving`,
      queue,
      declare: (channel) => this.#declare(channel),
      onExpiry: (held) => this.#expire(held),
    })
  }

  async open(): Promise<void> {
    try {
      await this.#intake.open()
      await this.#publisher.open()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /**
   * What the server does not do in time happens when the connections close: unsettled messages are
   * requeued.
   */
  async close(): Promise<void> {
    const ended = Promise.all([this.#intake.end(), ...this.#expiring])
    const limitMs = Math.min(this.#timeoutMs, closeTimeoutMs)
    await limitTime(this.#clock, limitMs, ended, 'the server did not answer').catch(ignore)
    await Promise.all([this.#intake.close(), this.#publisher.close()])
  }

  async send(outgoing: OutgoingMessage, delayMs: number): Promise<void> {
    const state = { enqueuedMs: Math.floor(this.#clock.now()), deliveries: 0, failures: 0 }
    await this.#put(outgoing.bytes, toPublishOptions(outgoing, state), delayMs)
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    return this.#intake.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    const held = this.#intake.holding.take(receipt)
    return held !== undefined && this.#intake.settle(held)
  }

  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const held = this.#intake.holding.take(receipt)
    if (!held) return false
    try {
      await this.#release(held, how.failed ? 'failed' : 'untried', how.delayMs)
    } catch (error) {
      this.#intake.holding.restore(held)
      throw error
    }
    return true
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#intake.holding.extend(receipt, ms)
  }

  /** Messages held by other processes cannot be deleted. */
  async purge(): Promise<number> {
    const waiting = await this.#ask((channel) => channel.purgeQueue(this.#queue))
    let count = waiting.messageCount + (await this.#intake.settleAll())
    await this.#ask(async (channel) => {
      for (const { name } of delayQueuesOf(this.#queue))
        count += (await channel.deleteQueue(name)).messageCount
    })
    this.#delayQueues.clear()
    return count
  }

  /** Waiting messages, those held by this process, and those that it has delayed. */
  async count(): Promise<number> {
    const { messageCount } = await this.#ask((channel) => channel.checkQueue(this.#queue))
    let count = messageCount + this.#intake.count
    for (const name of this.#delayQueues.keys()) {
      const delayed = await this.#ask((channel) => channel.checkQueue(name)).catch(() => undefined)
      count += delayed?.messageCount ?? 0
    }
    return count
  }

  async health(): Promise<MailboxHealth> {
    const { model } = await this.#intake.session()
    const { product, version } = model.connection.serverProperties
    const messages = String(await this.count())
    const { blocked } = this.#publisher
    const problems =
      blocked === undefined ? [] : [`the server does not accept messages at present: ${blocked}`]
    const checks = { server: `${product} ${version}`, queue: this.#queue, messages }
    return { ok: problems.length === 0, checks, problems }
  }

  async #declare(channel: Channel): Promise<void> {
    const { version } = channel.connection.serverProperties
    if (isTooOld(version))
      throw new RedriveError(
        'INVALID_CONFIG',
        `rabbitmq ${this.#intake.place}: version ${version} would store delayed messages forever, and then lose them; use 3.10 or newer`,
      )
    if (this.#declares) await channel.assertQueue(this.#queue, { durable: true, arguments: quorum })
    else await channel.checkQueue(this.#queue)
  }

  /**
   * Publishes a copy with the updated state, then deletes the message. A crash in between leaves
   * both, never none.
   */
  async #release(held: Held, ending: Ending, delayMs: number): Promise<void> {
    const { message, delivery } = held
    await this.#put(message.content, toCopy(message, delivery, ending), delayMs)
    // The copy is stored, whatever happens here.
    await this.#intake.settle(held).catch(ignore)
  }

  #expire(held: Held): void {
    const expire = this.#release(held, 'lapsed', 0)
      .catch(() => requeue(held))
      .finally(() => this.#expiring.delete(expire))
    this.#expiring.add(expire)
  }

  /** Publishes to the queue, or to a delay queue that forwards to it after the delay. */
  async #put(body: Uint8Array, options: Options.Publish, delayMs: number): Promise<void> {
    if (delayMs <= 0)
      return this.#publish(this.#queue, body, options, (channel) => this.#declare(channel))
    const delay = delayQueueOf(this.#queue, delayMs)
    const expiration = String(Math.ceil(delayMs))
    const declare = (channel: Channel): Promise<void> => this.#declareDelay(channel, delay)
    const usedMs = this.#delayQueues.get(delay.name) ?? -Infinity
    if (this.#clock.mono() - usedMs > renewMs) await this.#ask(declare)
    await this.#publish(delay.name, body, { ...options, expiration }, declare)
  }

  /** Publishes. A deleted queue is recreated once. */
  async #publish(
    queue: string,
    body: Uint8Array,
    options: Options.Publish,
    declare: (channel: Channel) => Promise<void>,
  ): Promise<void> {
    if (await this.#publisher.publish('', queue, body, options)) return
    await this.#ask(declare)
    if (await this.#publisher.publish('', queue, body, options)) return
    throw new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `rabbitmq ${this.#intake.place}: the queue ${queue} does not exist, somebody keeps deleting it; nothing was sent`,
    )
  }

  /**
   * After their delay, messages are forwarded to the mailbox; they stay here as long as the mailbox
   * does not accept them.
   */
  async #declareDelay(channel: Channel, { name, topMs }: DelayQueue): Promise<void> {
    await channel.assertQueue(name, {
      durable: true,
      arguments: {
        ...quorum,
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': this.#queue,
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
        'x-expires': topMs + unusedMs,
      },
    })
    this.#delayQueues.set(name, this.#clock.mono())
  }

  /** Uses its own channel, since the server closes the channel of a request that fails. */
  async #ask<R>(work: (channel: Channel) => Promise<R>): Promise<R> {
    const { model } = await this.#intake.session()
    const request = async (): Promise<R> => {
      const channel = await model.createChannel()
      channel.on('error', ignore)
      try {
        return await work(channel)
      } finally {
        await channel.close().catch(ignore)
      }
    }
    try {
      return await limitTime(this.#clock, this.#timeoutMs, request(), 'the server did not answer')
    } catch (error) {
      throw toRedriveError(error, this.#intake.place)
    }
  }
}

/** Quorum queues support expiry since 3.10. */
function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < 3 || (major === 3 && minor < 10)
}
