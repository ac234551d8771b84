import type { LetterFilter } from '../../letter/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { actionCode } from '../rows/codes.ts'
import { isAnyDue, type StoreContext } from './context.ts'
import { erase } from './erase.ts'
import { conditionOf } from './filter.ts'
import { planQuery, scanIds, type Query } from './find.ts'
import { lockLanes } from './locks.ts'
import { joinIds } from './text.ts'
import { settleLanes } from './waits.ts'

const removed = actionCode('remove')

/** Letters removed in one transaction, so that a large removal does not block others. */
const stepLetters = 250

/** Removes matching letters in bounded steps, each in its own transaction. Leased letters stay. */
export async function remove(context: StoreContext, filter: LetterFilter): Promise<number> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  const query = await planQuery(context, filter, order)
  let gone = 0
  for await (const ids of scanIds(context, query, stepLetters))
    for (let start = 0; start < ids.length; start += stepLetters)
      gone += await removeSome(context, query, ids.slice(start, start + stepLetters))
  return gone
}

async function removeSome(context: StoreContext, query: Query, ids: string[]): Promise<number> {
  const { connection } = context
  const { count, dueTimes } = await context.withSlot((slot) =>
    connection.transaction('cold', (tx) => removeIn(context, tx, query, ids, slot)),
  )
  if (isAnyDue(context, dueTimes)) context.wake()
  return count
}

/** Checks the filter again, now that the letters are locked. */
async function removeIn(
  context: StoreContext,
  tx: Transaction,
  { filter, codes }: Query,
  ids: string[],
  slot: number,
): Promise<{ count: number; dueTimes: number[] }> {
  const values: unknown[] = [joinIds(ids)]
  const condition = conditionOf(filter, codes, values)
  lockLanes(tx, context.connection, joinIds(ids))
  const rows = await tx.rows(
    `SELECT l.id FROM @letters l
     WHERE l.id = ANY($1::uuid[]) AND l.state <> 1 AND ${condition} ORDER BY l.id FOR UPDATE`,
    values,
  )
  const lanes = await erase(
    tx,
    rows.map(([id]) => id as string),
    slot,
    removed,
  )
  return { count: rows.length, dueTimes: await settleLanes(tx, lanes) }
}
