import { Batcher } from '../../backends/batcher.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { OutgoingMessage } from '../../mailbox.ts'
import { aboutOf } from '../stored-message.ts'
import { expireIds, send } from './statements.ts'

interface SendRequest {
  message: OutgoingMessage
  delayMs: number
}

export interface SenderOptions {
  connection: PostgresConnection
  mailbox: number
  /** 0: nothing expires. */
  retentionMs: number
  /** Receives the number of expired messages that were replaced. */
  report: (count: number) => void
}

/** One batch at a time, so that messages are stored in the order in which they were sent. */
const limits = { maxInFlight: 1, maxBatchCost: 512 }
/** Payload bytes that cost as much as one more message. */
const bytesPerMessage = 16 * 1024

/** Sends messages in batches. Sending an id again adds nothing while the message exists. */
export class Sender {
  readonly #options: SenderOptions
  readonly #calls: Batcher<SendRequest, null>

  constructor(options: SenderOptions) {
    this.#options = options
    this.#calls = new Batcher(limits, async (requests) => {
      const added = await this.#add(requests)
      if (added < requests.length && options.retentionMs > 0) await this.#replaceExpired(requests)
      return requests.map(() => ({ value: null }))
    })
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    await this.#calls.call({ message, delayMs }, 1 + message.bytes.byteLength / bytesPerMessage)
  }

  idle(): Promise<void> {
    return this.#calls.idle()
  }

  async #add(requests: SendRequest[]): Promise<number> {
    const messages = requests.map(({ message }) => message)
    let start = 1
    const values = [
      this.#options.mailbox,
      messages.map(({ id }) => id),
      messages.map(aboutOf),
      // As one value: an array would be sent as text, twice as long.
      Buffer.concat(messages.map(({ bytes }) => bytes)),
      messages.map(({ bytes }) => (start += bytes.byteLength) - bytes.byteLength),
      messages.map(({ bytes }) => bytes.byteLength),
      requests.map(({ delayMs }) => Math.ceil(delayMs)),
    ]
    const added = await this.#options.connection.execute(send, values, { repeatable: true })
    return added.length
  }

  /** Some ids exist already: removes expired messages with these ids, and adds the new ones. */
  async #replaceExpired(requests: SendRequest[]): Promise<void> {
    const { connection, mailbox, retentionMs, report } = this.#options
    const ids = requests.map(({ message }) => message.id)
    const rows = await connection.execute(expireIds, [mailbox, ids, retentionMs])
    report(rows.length)
    const removed = new Set(rows.map(([id]) => id))
    const rest = requests.filter(({ message }) => removed.has(message.id))
    if (rest.length > 0) await this.#add(rest)
  }
}
