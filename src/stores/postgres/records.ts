import { recordQueryOf } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { isoOf, nowMs, type StoreContext } from './context.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import { fromText, toText } from './text.ts'

const columns = 'id, version, value, updated_at'

/** $5 is the expected version, or null. One statement, so that one of two writers is rejected. */
const put = `WITH t AS (SELECT ${isoOf(nowMs('$4'))} AS at)
  INSERT INTO @records AS r (kind, id, version, value, updated_at) SELECT $1, $2, 1, $3, t.at FROM t
    WHERE $5::bigint IS NULL OR $5 = 0 OR EXISTS (SELECT 1 FROM @records WHERE kind = $1 AND id = $2)
  ON CONFLICT (kind, id) DO UPDATE SET version = r.version + 1, value = excluded.value, updated_at = excluded.updated_at
    WHERE $5::bigint IS NULL OR r.version = $5
  RETURNING version`

const selectByIds = `SELECT ${columns} FROM @records WHERE kind = $1 AND id = ANY($2::text[]) ORDER BY id`

/** Records in the database. `use` rejects if the store is not open. */
export function postgresRecords(
  use: <T>(work: (context: StoreContext) => Promise<T>) => Promise<T>,
): Records {
  return {
    get: (kind, id) =>
      use(async ({ connection }) => {
        const sql = `SELECT ${columns} FROM @records WHERE kind = $1 AND id = $2`
        const [row] = await connection.read(sql, [toText(kind), toText(id)])
        return row && recordOf(row)
      }),
    put: (kind, id, value, expectedVersion) =>
      use(async (context) => {
        const values = [
          toText(kind),
          toText(id),
          JSON.stringify(value),
          context.now(),
          expectedVersion,
        ]
        const rows = await context.connection.transaction('cold', (tx) => tx.rows(put, values))
        return rows.length > 0 ? 'written' : 'conflict'
      }),
    list: (kind, query = {}) =>
      use(async ({ connection }) => {
        const { prefix = '', after, limit, ids } = recordQueryOf(query)
        if (ids) {
          const values = [toText(kind), ids.map(toText)]
          return (await connection.read(selectByIds, values)).map(recordOf)
        }
        const sql = `SELECT ${columns} FROM @records
          WHERE kind = $1 AND id >= $2 AND starts_with(id, $2) AND ($3::text IS NULL OR id > $3) ORDER BY id LIMIT $4`
        const from = [toText(prefix), after === undefined ? null : toText(after), limit ?? null]
        return (await connection.read(sql, [toText(kind), ...from])).map(recordOf)
      }),
    remove: (kind, id) =>
      use(async ({ connection }) => {
        const sql = 'DELETE FROM @records WHERE kind = $1 AND id = $2 RETURNING 1'
        const rows = await connection.transaction('cold', (tx) =>
          tx.rows(sql, [toText(kind), toText(id)]),
        )
        return rows.length > 0
      }),
    kinds: () =>
      use(async ({ connection }) => {
        const kinds = (await connection.read(listKinds)).map(([kind]) => fromText(kind as string))
        return kinds.toSorted()
      }),
  }
}

/** One index lookup per kind, however many records it has. */
const listKinds = `WITH RECURSIVE kinds AS (
    (SELECT kind FROM @records ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (SELECT r.kind FROM @records r WHERE r.kind > kinds.kind ORDER BY r.kind LIMIT 1) FROM kinds WHERE kinds.kind IS NOT NULL)
  SELECT kind FROM kinds WHERE kind IS NOT NULL`

function recordOf([id, version, value, updatedAt]: Cells): DocumentRecord {
  return {
    id: fromText(id as string),
    version: version as number,
    value: JSON.parse(value as string) as Json,
    updatedAt: updatedAt as string,
  }
}
