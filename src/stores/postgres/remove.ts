import type { LetterFilter } from '../../letter/query.ts'
import { actionCode } from '../rows/codes.ts'
import type { Place } from '../search.ts'
import { matches } from '../../letter/query.ts'
import { unpackSummary } from '../rows/unpack.ts'
import { needsReading } from '../rows/source-key.ts'
import type { StoreContext } from './context.ts'
import { erase } from './erase.ts'
import { codesOf, conditionOf } from './filter.ts'
import { searchStep, resolveFilter } from './find.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lockLanes } from './locks.ts'
import { readLetters } from './read-letters.ts'
import { entryColumns, entryOf } from './rows.ts'
import { toText } from './text.ts'
import { WriteSet } from './write-set.ts'

const removed = actionCode('remove')

/** Letters removed in one transaction, so that a large removal does not block others. */
const stepLetters = 250

/** Removes matching letters in bounded steps, each in its own transaction. Leased letters stay. */
export async function remove(context: StoreContext, filter: LetterFilter): Promise<number> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  const query = await resolveFilter(context, { filter, order })
  let gone = 0
  let after: Place | undefined
  do {
    const step = await searchStep(context, query, stepLetters, after)
    const ids = await matching(
      context,
      filter,
      step.entries.map(({ id }) => id),
    )
    for (let start = 0; start < ids.length; start += stepLetters)
      gone += await removeSome(context, filter, ids.slice(start, start + stepLetters))
    after = step.next
  } while (after)
  return gone
}

/** The letters that match, where columns only narrow the search. */
async function matching(
  context: StoreContext,
  filter: LetterFilter,
  ids: string[],
): Promise<string[]> {
  if (!needsReading(filter)) return ids
  const letters = await readLetters(context, ids, 'summary')
  return ids.filter((id) => {
    const kept = letters.get(id)
    return kept && matches(unpackSummary(kept), filter)
  })
}

/** Checks again, now that the letters are locked. */
async function removeSome(
  context: StoreContext,
  filter: LetterFilter,
  ids: string[],
): Promise<number> {
  const codes = await codesOf(context, filter)
  const work = async (
    tx: Transaction,
    slot: number,
  ): Promise<{ count: number; shouldWake: Promise<boolean> }> => {
    const writes = new WriteSet()
    const values: unknown[] = [ids.map(toText)]
    const condition = conditionOf(filter, codes, values)
    lockLanes(tx, context.connection, ids.map(toText))
    const rows = await tx.rows(
      `SELECT ${entryColumns('l')} FROM @letters l
       WHERE l.id = ANY($1::text[]) AND l.state <> 1 AND ${condition} ORDER BY l.id FOR UPDATE`,
      values,
    )
    erase(tx, writes, rows.map(entryOf), removed)
    const { shouldWake } = await writes.flush(context, tx, slot, [])
    return { count: rows.length, shouldWake }
  }
  const { count, shouldWake } = await context.withSlot((slot) =>
    context.connection.transaction('cold', (tx) => work(tx, slot)),
  )
  if (await shouldWake) context.wake()
  return count
}
