import { isActiveCode } from '../rows/codes.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { Entry } from './rows.ts'
import { toText } from './text.ts'
import type { Writing } from './writing.ts'

const drop = `WITH a AS (DELETE FROM @bodies WHERE id = ANY($1::text[])),
    b AS (DELETE FROM @edits WHERE id = ANY($1::text[])),
    c AS (DELETE FROM @history WHERE id = ANY($1::text[])),
    d AS (DELETE FROM @deps WHERE letter = ANY($1::text[]))
  DELETE FROM @letters WHERE id = ANY($1::text[])`

/** Takes letters that are locked out of the database, with all that belongs to them. Without an action nothing is counted as having happened. */
export function erase(
  tx: Transaction,
  writing: Writing,
  going: readonly Entry[],
  action?: number,
): void {
  if (going.length === 0) return
  void tx.rows(drop, [going.map(({ row }) => toText(row.id))])
  for (const { row, queue } of going) {
    const tags = tagsOf(row)
    for (const tag of tags) writing.untag(tag, row.id)
    writing.deltas.count(queue, row, tags, -1)
    if (action !== undefined) writing.deltas.total(queue, action, row)
    if (row.lane !== null && isActiveCode(row.state)) writing.changeLane(queue, row.lane)
  }
}
