import type { ConfirmChannel, Options } from 'amqplib'
import type { Clock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import { ignore, linkTo, type Link } from './link.ts'
import { troubleOf } from './trouble.ts'

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

class ConfirmedPublisher implements Publisher {
  readonly #options: PublisherOptions
  readonly #link: Link<Desk>

  constructor(options: PublisherOptions) {
    this.#options = options
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

  close(): Promise<void> {
    return this.#link.close()
  }

  async publish(
    exchange: string,
    routingKey: string,
    body: Uint8Array,
    options: Options.Publish,
  ): Promise<boolean> {
    const { channel, returned } = await this.#link.get()
    const { blocked } = this.#link
    if (blocked !== undefined) throw this.#refused(`the server takes no messages now: ${blocked}`)
    const content = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    const { clock, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const cancel = clock.timer(timeoutMs, () =>
        reject(this.#refused(`the server did not confirm a message within ${timeoutMs} ms`)),
      )
      const confirmed = (error: unknown): void => {
        cancel()
        const cameBack =
          returned.size > 0 && takeOne(returned, keyOf(exchange, routingKey, options.messageId))
        if (error) reject(troubleOf(error, this.#link.place))
        else resolve(!cameBack)
      }
      try {
        const sure = { ...options, mandatory: true, persistent: true }
        channel.publish(exchange, routingKey, content, sure, confirmed)
      } catch (error) {
        cancel()
        reject(troubleOf(error, this.#link.place))
      }
    })
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
