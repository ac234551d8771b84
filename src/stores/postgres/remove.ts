import type { LetterFilter } from '../../letter/query.ts'
import { actionCode } from '../rows/codes.ts'
import type { Place } from '../search.ts'
import { matches } from '../../letter/query.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { needsReading } from '../rows/source-key.ts'
import type { Books } from './books.ts'
import { erase } from './erase.ts'
import { codesOf, conditionOf } from './filter.ts'
import { searchStride, soughtBy } from './find.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lockLanes } from './locks.ts'
import { lettersById } from './reading.ts'
import { entryColumns, entryOf } from './rows.ts'
import { toText } from './text.ts'
import { Writing } from './writing.ts'

const removed = actionCode('remove')

/** Letters that go in one transaction, so that a large removal does not keep others waiting. */
const strideLetters = 250

/** Removes what matches, in bounded steps, each its own transaction. What is leased stays. */
export async function remove(books: Books, filter: LetterFilter): Promise<number> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  const sought = await soughtBy(books, { filter, order })
  let gone = 0
  let after: Place | undefined
  do {
    const stride = await searchStride(books, sought, strideLetters, after)
    const ids = await matching(
      books,
      filter,
      stride.spots.map(({ id }) => id),
    )
    for (let start = 0; start < ids.length; start += strideLetters)
      gone += await removeSome(books, filter, ids.slice(start, start + strideLetters))
    after = stride.next
  } while (after)
  return gone
}

/** Those of the letters found that match, where columns only narrow the search. */
async function matching(books: Books, filter: LetterFilter, ids: string[]): Promise<string[]> {
  if (!needsReading(filter)) return ids
  const letters = await lettersById(books, ids, 'summary')
  return ids.filter((id) => {
    const kept = letters.get(id)
    return kept && matches(unpackSummary(kept), filter)
  })
}

/** What matched a moment ago must match still, now that it is locked. */
async function removeSome(books: Books, filter: LetterFilter, ids: string[]): Promise<number> {
  const codes = await codesOf(books, filter)
  const work = async (
    tx: Transaction,
    slot: number,
  ): Promise<{ count: number; woken: Promise<boolean> }> => {
    const writing = new Writing()
    const values: unknown[] = [ids.map(toText)]
    const condition = conditionOf(filter, codes, values)
    lockLanes(tx, books.connection, ids.map(toText))
    const rows = await tx.rows(
      `SELECT ${entryColumns('l')} FROM @letters l
       WHERE l.id = ANY($1::text[]) AND l.state <> 1 AND ${condition} ORDER BY l.id FOR UPDATE`,
      values,
    )
    erase(tx, writing, rows.map(entryOf), removed)
    const { woken } = await writing.flush(books, tx, slot, [])
    return { count: rows.length, woken }
  }
  const { count, woken } = await books.withSlot((slot) =>
    books.connection.transaction('cold', (tx) => work(tx, slot)),
  )
  if (await woken) books.wake()
  return count
}
