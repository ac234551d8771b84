import type { Transaction } from '../../backends/postgres/transaction.ts'
import { isActiveCode } from '../rows/codes.ts'
import { countMoves } from './counters.ts'
import { codeOf } from './rows.ts'
import { joinIds } from './text.ts'
import { expectAgain, type Lane } from './waits.ts'

/** Deletes letters with everything that belongs to them, and counts them. */
const eraseStatement = `WITH e AS (
    DELETE FROM @letters l WHERE l.id = ANY($1::uuid[])
    RETURNING l.id, l.queue, ${codeOf('l')} AS old_code, NULL::int AS new_code, l.fingerprint AS old_group,
      NULL::text AS new_group, l.tags AS old_tags, NULL::text[] AS new_tags, l.priority, l.retries, l.backoff_ms,
      l.lane, l.state, l.depended),
  b AS (DELETE FROM @bodies WHERE id = ANY($1::uuid[])),
  w AS (DELETE FROM @deps WHERE letter = ANY($1::uuid[])),
  t AS (DELETE FROM @tags t USING (SELECT id, unnest(old_tags) AS tag FROM e) AS x
    WHERE t.tag = x.tag AND t.id = x.id AND t.id = ANY($1::uuid[])),
  f AS (DELETE FROM @groups f USING e WHERE f.fingerprint = e.old_group AND f.id = e.id AND f.id = ANY($1::uuid[])),
  ${countMoves({ from: 'e', actions: '$2::int[]', slot: '$3' })}
  SELECT id, queue, lane, state, depended FROM e`

/**
 * Deletes locked letters. Without an action, nothing is added to the totals. Returns the lanes that
 * lost an active letter.
 */
export async function erase(
  tx: Transaction,
  ids: readonly string[],
  slot: number,
  action?: number,
): Promise<Lane[]> {
  if (ids.length === 0) return []
  const actions = action === undefined ? '{}' : `{${action}}`
  const rows = await tx.rows(eraseStatement, [joinIds(ids), actions, slot])
  const gone = rows as [string, number, string | null, number, boolean][]
  expectAgain(
    tx,
    gone.flatMap(([id, , , , depended]) => (depended ? [id] : [])),
  )
  return gone.flatMap(([, queue, lane, state]) =>
    lane !== null && isActiveCode(state) ? [{ queue, lane }] : [],
  )
}
