import { Batcher } from '../../backends/batcher.ts'
import type { OutgoingMessage } from '../../mailbox.ts'
import { aboutOf } from '../stored-message.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import { expireIds, send } from './statements.ts'

interface Sent {
  parcel: OutgoingMessage
  delayMs: number
}

/** One at a time, so that messages stand in the order in which they were given. */
const batches = { maxInFlight: 1, maxBatchCost: 512 }
/** So many bytes weigh as much as a parcel without any. */
const bytesOfWeight = 16 * 1024

/** Sends parcels: many at once share a transaction. Repeating it adds nothing, as long as the message is there. */
export interface Sending {
  call(sent: Sent): Promise<void>
  idle(): Promise<void>
}

export function sending(options: {
  connection: PostgresConnection
  mailbox: number
  /** 0: nothing expires. */
  retentionMs: number
  /** Receives how many expired messages were replaced. */
  report: (count: number) => void
}): Sending {
  const { connection, mailbox, retentionMs, report } = options
  const add = async (some: Sent[]): Promise<number> => {
    let start = 1
    const values = [
      mailbox,
      some.map(({ parcel }) => parcel.id),
      some.map(({ parcel }) => aboutOf(parcel)),
      // As one: an array of them would go as text, twice as long.
      Buffer.concat(some.map(({ parcel }) => parcel.bytes)),
      some.map(({ parcel }) => (start += parcel.bytes.byteLength) - parcel.bytes.byteLength),
      some.map(({ parcel }) => parcel.bytes.byteLength),
      some.map(({ delayMs }) => Math.ceil(delayMs)),
    ]
    const added = await connection.execute(send, values, { repeatable: true })
    return added.length
  }
  /** Some ids are taken. A message that has expired must not be in the way. */
  const addInPlaceOfOld = async (some: Sent[]): Promise<void> => {
    const ids = some.map(({ parcel }) => parcel.id)
    const rows = await connection.execute(expireIds, [mailbox, ids, retentionMs])
    report(rows.length)
    const gone = new Set(rows.map(([id]) => id))
    const rest = some.filter(({ parcel }) => gone.has(parcel.id))
    if (rest.length > 0) await add(rest)
  }
  const calls: Batcher<Sent, null> = new Batcher(batches, async (some) => {
    if ((await add(some)) < some.length && retentionMs > 0) await addInPlaceOfOld(some)
    return some.map(() => ({ value: null }))
  })
  return {
    async call(sent) {
      await calls.call(sent, 1 + sent.parcel.bytes.byteLength / bytesOfWeight)
    },
    idle: () => calls.idle(),
  }
}
