import { isActiveCode } from '../rows/codes.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { Entry } from './rows.ts'
import { toText } from './text.ts'
import type { WriteSet } from './write-set.ts'

const drop = `WITH a AS (DELETE FROM @bodies WHERE id = ANY($1::text[])),
    b AS (DELETE FROM @edits WHERE id = ANY($1::text[])),
    c AS (DELETE FROM @history WHERE id = ANY($1::text[])),
    d AS (DELETE FROM @deps WHERE letter = ANY($1::text[]))
  DELETE FROM @letters WHERE id = ANY($1::text[])`

/**
 * Deletes locked letters with everything that belongs to them. Without an action, nothing is added
 * to the totals.
 */
export function erase(
  tx: Transaction,
  writes: WriteSet,
  going: readonly Entry[],
  action?: number,
): void {
  if (going.length === 0) return
  void tx.rows(drop, [going.map(({ row }) => toText(row.id))])
  for (const { row, queue } of going) {
    const tags = tagsOf(row)
    for (const tag of tags) writes.untag(tag, row.id)
    writes.deltas.count(queue, row, tags, -1)
    if (action !== undefined) writes.deltas.total(queue, action, row)
    if (row.lane !== null && isActiveCode(row.state)) writes.changeLane(queue, row.lane)
  }
}
