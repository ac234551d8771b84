import type { Clock } from '../../clock/clock.ts'
import type { Delivery } from '../../mailbox.ts'
import { toOutgoingMessage } from '../stored-message.ts'
import type { Cells, Link } from './link.ts'
import type { TakenMessages } from '../shared-receiver.ts'
import { writeReceipt } from './settling.ts'
import { putBack, take } from './statements.ts'

/** As long as there is plenty, what lapsed is put back so often; before anybody hears that there is nothing, always. */
const putBackEveryMs = 250

/** Takes messages for the slots of those who wait. */
export function taker(
  link: Link,
  mailbox: number,
  clock: Clock,
  retentionMs: number,
): (slots: number[]) => Promise<TakenMessages> {
  let lastMs = -Infinity
  const back = async (): Promise<{ moved: number; next: Pick<TakenMessages, 'nextMs'> }> => {
    lastMs = clock.mono()
    const [[row]] = (await link.do([[putBack, [mailbox]]])) as [[unknown]]
    const [moved, nextMs] = row as [number, number | null]
    return { moved, next: nextMs === null ? {} : { nextMs } }
  }
  const some = async (slots: number[]): Promise<Delivery[]> => {
    const [rows] = await link.do([[take, [mailbox, slots.map(Math.ceil), retentionMs]]])
    return rows!.map(deliveryOf)
  }
  return async (slots) => {
    if (clock.mono() - lastMs >= putBackEveryMs) await back()
    const deliveries = await some(slots)
    if (deliveries.length > 0) return { deliveries }
    const { moved, next } = await back()
    return moved > 0 ? { deliveries: await some(slots) } : { deliveries, ...next }
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
