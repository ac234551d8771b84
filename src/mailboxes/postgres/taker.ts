import type { Clock } from '../../clock/clock.ts'
import type { Delivery } from '../../mailbox.ts'
import { toOutgoingMessage } from '../stored-message.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { TakenMessages } from '../shared-receiver.ts'
import { writeReceipt } from './settler.ts'
import { putBack, take } from './statements.ts'

/**
 * How often lapsed messages are put back while others wait. Before a receiver gets nothing, always.
 */
const putBackEveryMs = 250

/** Takes messages for the slots of waiting receivers. */
export class Taker {
  readonly #connection: PostgresConnection
  readonly #mailbox: number
  readonly #clock: Clock
  readonly #retentionMs: number
  #lastMs = -Infinity

  constructor(connection: PostgresConnection, mailbox: number, clock: Clock, retentionMs: number) {
    this.#connection = connection
    this.#mailbox = mailbox
    this.#clock = clock
    this.#retentionMs = retentionMs
  }

  async take(slots: number[]): Promise<TakenMessages> {
    if (this.#clock.mono() - this.#lastMs >= putBackEveryMs) await this.#putBack()
    const deliveries = await this.#receive(slots)
    if (deliveries.length > 0) return { deliveries }
    const { moved, nextMs } = await this.#putBack()
    if (moved > 0) return { deliveries: await this.#receive(slots) }
    return nextMs === null ? { deliveries } : { deliveries, nextMs }
  }

  async #receive(slots: number[]): Promise<Delivery[]> {
    const values = [this.#mailbox, slots.map(Math.ceil), this.#retentionMs]
    return (await this.#connection.execute(take, values)).map(deliveryOf)
  }

  async #putBack(): Promise<{ moved: number; nextMs: number | null }> {
    this.#lastMs = this.#clock.mono()
    const [row] = await this.#connection.execute(putBack, [this.#mailbox])
    const [moved, nextMs] = row as [number, number | null]
    return { moved, nextMs }
  }
}

export function deliveryOf(row: Cells): Delivery {
  const [seq, deliveries, released, id, about, bytes, failures, enqueuedMs, firstMs, untilMs] =
    row as [
      number,
      number,
      number,
      string,
      string,
      Uint8Array,
      number,
      number,
      number | null,
      number | null,
    ]
  return {
    ...toOutgoingMessage(id, about, bytes),
    receipt: writeReceipt({ seq, deliveries, untilMs: untilMs ?? 0 }),
    deliveries: deliveries - released,
    failures,
    enqueuedMs,
    firstReceivedMs: firstMs ?? enqueuedMs,
  }
}
