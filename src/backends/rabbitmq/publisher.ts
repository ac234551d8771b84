import type { ConfirmChannel, Options } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Alarm } from '../../clock/alarm.ts'
import { ignore, linkTo, type Link } from './connection.ts'
import { toRedriveError } from './errors.ts'

export interface PublisherOptions {
  url: string
  title: string
  clock: Clock
  timeoutMs: number
}

/** Sends messages, and knows what became of each. It has a connection of its own: the server stops reading from those that send too much. */
export interface Publisher {
  readonly blocked: string | undefined
  open(): Promise<void>
  close(): Promise<void>
  /**
   * Resolves once the server has it on its disks. False: no queue would have got it, and nothing was sent. MAILBOX_UNAVAILABLE: nobody knows.
   */
  publish(
    exchange: string,
    routingKey: string,
    body: Uint8Array,
    options: Options.Publish,
  ): Promise<boolean>
}

export function publisherTo(options: PublisherOptions): Publisher {
  return new ConfirmedPublisher(options)
}

interface Desk {
  channel: ConfirmChannel
  /** How often messages came back, by where they went and who they are. The server says it just before it confirms them. */
  returned: Map<string, number>
}

/** A message that is not confirmed yet. */
interface Sent {
  /** On the monotonic clock. */
  lapsesMs: number
  reject: (error: unknown) => void
}

class ConfirmedPublisher implements Publisher {
  readonly #options: PublisherOptions
  readonly #link: Link<Desk>
  readonly #alarm: Alarm
  /** The first one lapses first. */
  readonly #sent = new Set<Sent>()

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#alarm = new Alarm(options.clock, (nowMs) => this.#lapse(nowMs))
    this.#link = linkTo<Desk>({
      ...options,
      setup: async (model) => {
        const channel = await model.createConfirmChannel()
        const returned = new Map<string, number>()
        channel.on('error', ignore)
        channel.on('close', () => this.#link.renew(desk))
        channel.on('return', ({ fields, properties }) => {
          const key = keyOf(fields.exchange, fields.routingKey, properties.messageId)
          returned.set(key, (returned.get(key) ?? 0) + 1)
        })
        const desk = { channel, returned }
        return desk
      },
    })
  }

  get blocked(): string | undefined {
    return this.#link.blocked
  }

  open(): Promise<void> {
    return this.#link.open()
  }

  async close(): Promise<void> {
    await this.#link.close()
    this.#lapse(Infinity)
    this.#alarm.off()
  }

  async publish(
    exchange: string,
    routingKey: string,
    body: Uint8Array,
    options: Options.Publish,
  ): Promise<boolean> {
    const { channel, returned } = this.#link.current ?? (await this.#link.get())
    const { blocked } = this.#link
    if (blocked !== undefined) throw this.#refused(`the server takes no messages now: ${blocked}`)
    const content = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const { clock, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const sent = { lapsesMs: clock.mono() + timeoutMs, reject }
      const confirmed = (error: unknown): void => {
        this.#sent.delete(sent)
        const cameBack =
          returned.size > 0 && takeOne(returned, keyOf(exchange, routingKey, options.messageId))
        if (error) reject(toRedriveError(error, this.#link.place))
        else resolve(!cameBack)
      }
      try {
        const sure = { ...options, mandatory: true }
        channel.publish(exchange, routingKey, content, sure, confirmed)
        this.#sent.add(sent)
        this.#alarm.by(sent.lapsesMs)
      } catch (error) {
        reject(toRedriveError(error, this.#link.place))
      }
    })
  }

  #lapse(nowMs: number): number {
    for (const sent of this.#sent) {
      if (sent.lapsesMs > nowMs) return sent.lapsesMs
      this.#sent.delete(sent)
      sent.reject(
        this.#refused(`the server did not confirm a message within ${this.#options.timeoutMs} ms`),
      )
    }
    return Infinity
  }

  #refused(why: string): RedriveError {
    return new RedriveError('MAILBOX_UNAVAILABLE', `rabbitmq ${this.#link.place}: ${why}`)
  }
}

function takeOne(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0
  if (count > 1) counts.set(key, count - 1)
  else counts.delete(key)
  return count > 0
}

function keyOf(exchange: string, routingKey: string, messageId: unknown): string {
  return JSON.stringify([exchange, routingKey, messageId])
}
