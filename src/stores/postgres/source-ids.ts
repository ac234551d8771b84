import { sourceKeyIn } from '../rows/source-key.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { toText } from './text.ts'

/** Letters read by one statement. */
const fillLetters = 500

/** Only these origins can have a source id; others are not sent. */
const sourced = `b.origin LIKE ANY (ARRAY['%"taskId":%', '%"messageId":%', '%"streamId":%', '%"task":{%'])`

/**
 * Fills the source ids of letters that were stored before the column existed. A few at a time, each
 * in its own transaction, so that workers continue. May be repeated, and run in several processes;
 * `meta` records when it is done.
 */
export async function fillSourceIds(connection: PostgresConnection): Promise<void> {
  const done = await connection.read(`SELECT 1 FROM @meta WHERE key = 'source_ids'`)
  if (done.length > 0) return
  let after = ''
  for (;;) {
    const rows = (await connection.read(
      `SELECT b.id, CASE WHEN ${sourced} THEN b.origin END FROM @bodies b
       WHERE b.id > $1::text ORDER BY b.id LIMIT $2`,
      [after, fillLetters],
    )) as [string, string | null][]
    const filled = rows.flatMap(([id, origin]) => {
      const key = origin === null ? undefined : sourceKeyIn(origin)
      return key === undefined ? [] : [{ id, key: toText(key) }]
    })
    if (filled.length > 0) await fill(connection, filled)
    if (rows.length < fillLetters) break
    after = rows.at(-1)![0]
  }
  const set = `INSERT INTO @meta VALUES ('source_ids', 'filled') ON CONFLICT DO NOTHING`
  const note = (tx: Transaction): Promise<unknown> => tx.rows(set)
  await connection.transaction('cold', note, { repeatable: true })
}

async function fill(
  connection: PostgresConnection,
  filled: readonly { id: string; key: string }[],
): Promise<void> {
  const sql = `UPDATE @letters l SET source_id = f.key FROM unnest($1::text[], $2::text[]) AS f(id, key)
    WHERE l.id = f.id AND l.id = ANY($1::text[])`
  const values = [filled.map(({ id }) => id), filled.map(({ key }) => key)]
  const work = (tx: Transaction): Promise<unknown> => tx.rows(sql, values)
  await connection.transaction('cold', work, { repeatable: true })
}
