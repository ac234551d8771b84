import type { AddResult } from '../../store.ts'
import { addIn, candidatesOf, type Wanted } from './add.ts'
import type { Books } from './books.ts'
import { drawSlot } from './counters.ts'
import { rowsOf, type Cells, type Connection, type Link, type Tx } from './link.ts'
import { troubleOf } from './trouble.ts'

/** Adds in the transaction that the caller has begun on this connection. Whoever watches hears of it when it commits. */
export async function addWithin(
  books: Books,
  client: Connection,
  channel: string,
  wanted: readonly Wanted[],
): Promise<AddResult[]> {
  const candidates = await candidatesOf(books, wanted)
  const tx = oneByOne(client, books.link)
  try {
    // A slot of its own: its rows stay locked until the caller commits.
    const { results, woken } = await addIn(books, tx, candidates, drawSlot(books.clock))
    await tx.idle()
    if (await woken) await tx.rows('SELECT pg_notify($1, $2)', [channel, 'a transaction'])
    return results
  } catch (error) {
    throw troubleOf(error, books.link.place)
  }
}

/** Statements on the caller's connection, which takes them one after the other. */
function oneByOne(client: Connection, link: Link): Tx & { idle(): Promise<unknown> } {
  let last: Promise<unknown> = Promise.resolve()
  let trouble: unknown
  const rows = (sql: string, values?: unknown[]): Promise<Cells[]> => {
    const turn = last.then(async () => {
      if (trouble !== undefined) throw trouble
      return rowsOf(client, link.qualified(sql), values)
    })
    last = turn.catch((error: unknown) => (trouble ??= error))
    return turn
  }
  return {
    rows,
    idle: async () => {
      await last
      if (trouble !== undefined) throw trouble
    },
  }
}
