import type { ConfirmChannel, Options } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Alarm } from '../../clock/alarm.ts'
import { ignore, RabbitmqConnection } from './connection.ts'
import { toRedriveError } from './errors.ts'

export interface PublisherOptions {
  url: string
  title: string
  clock: Clock
  timeoutMs: number
}

interface PublisherChannel {
  channel: ConfirmChannel
  /**
   * Number of returned messages by destination and id. The server sends a return right before the
   * confirmation.
   */
  returned: Map<string, number>
}

/** A message that is not confirmed yet. */
interface PendingMessage {
  /** On the monotonic clock. */
  expiresMs: number
  reject: (error: unknown) => void
}

/**
 * Publishes messages with confirmations. It has its own connection: the server throttles
 * connections that publish too much.
 */
export class Publisher {
  readonly #options: PublisherOptions
  readonly #connection: RabbitmqConnection<PublisherChannel>
  readonly #alarm: Alarm
  /** In order of their time limits. */
  readonly #sent = new Set<PendingMessage>()

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#alarm = new Alarm(options.clock, (nowMs) => this.#expire(nowMs))
    this.#connection = new RabbitmqConnection<PublisherChannel>({
      ...options,
      setup: async (model) => {
        const channel = await model.createConfirmChannel()
        const returned = new Map<string, number>()
        channel.on('error', ignore)
        channel.on('close', () => this.#connection.renew(opened))
        channel.on('return', ({ fields, properties }) => {
          const key = keyOf(fields.exchange, fields.routingKey, properties.messageId)
          returned.set(key, (returned.get(key) ?? 0) + 1)
        })
        const opened = { channel, returned }
        return opened
      },
    })
  }

  get blocked(): string | undefined {
    return this.#connection.blocked
  }

  open(): Promise<void> {
    return this.#connection.open()
  }

  async close(): Promise<void> {
    await this.#connection.close()
    this.#expire(Infinity)
    this.#alarm.off()
  }

  /**
   * Resolves once the server has stored the message on disk. False: no queue is bound, and nothing
   * was sent. MAILBOX_UNAVAILABLE: the outcome is unknown.
   */
  async publish(
    exchange: string,
    routingKey: string,
    body: Uint8Array,
    options: Options.Publish,
  ): Promise<boolean> {
    const { channel, returned } = this.#connection.current ?? (await this.#connection.get())
    const { blocked } = this.#connection
    if (blocked !== undefined)
      throw this.#unavailable(`the server does not accept messages at present: ${blocked}`)
    const content = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const { clock, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const sent = { expiresMs: clock.mono() + timeoutMs, reject }
      const confirmed = (error: unknown): void => {
        this.#sent.delete(sent)
        const cameBack =
          returned.size > 0 && takeReturn(returned, keyOf(exchange, routingKey, options.messageId))
        if (error) reject(toRedriveError(error, this.#connection.place))
        else resolve(!cameBack)
      }
      try {
        const sure = { ...options, mandatory: true }
        channel.publish(exchange, routingKey, content, sure, confirmed)
        this.#sent.add(sent)
        this.#alarm.by(sent.expiresMs)
      } catch (error) {
        reject(toRedriveError(error, this.#connection.place))
      }
    })
  }

  #expire(nowMs: number): number {
    for (const sent of this.#sent) {
      if (sent.expiresMs > nowMs) return sent.expiresMs
      this.#sent.delete(sent)
      sent.reject(
        this.#unavailable(
          `the server did not confirm a message within ${this.#options.timeoutMs} ms`,
        ),
      )
    }
    return Infinity
  }

  #unavailable(why: string): RedriveError {
    return new RedriveError('MAILBOX_UNAVAILABLE', `rabbitmq ${this.#connection.place}: ${why}`)
  }
}

function takeReturn(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0
  if (count > 1) counts.set(key, count - 1)
  else counts.delete(key)
  return count > 0
}

function keyOf(exchange: string, routingKey: string, messageId: unknown): string {
  return JSON.stringify([exchange, routingKey, messageId])
}
