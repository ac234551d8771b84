import { recordQueryOf } from '../search.ts'
import type { Json } from '../../letter/letter.ts'
import { Batcher } from '../../backends/batcher.ts'
import type { DocumentRecord, Records } from '../../store.ts'
import { runBatch } from './batches.ts'
import { isoOf, nowMs, type StoreContext } from './context.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import { fromText, toText } from './text.ts'

const columns = 'id, version, value, updated_at'

type PutResult = 'written' | 'conflict'

/** One call of `put`, encoded. */
interface Put {
  kind: string
  id: string
  value: string
  expected: number | null
}

/**
 * Writes records with different keys; $4 has the expected versions, or null. Returns the keys of
 * those written. One statement for each expectation, so that one of two writers is rejected.
 */
const putAll = `WITH sent AS (
    SELECT kind, id, value, expected, (SELECT ${isoOf(nowMs('$5'))}) AS at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS s (kind, id, value, expected)),
  updated AS (
    UPDATE @records r SET version = r.version + 1, value = s.value, updated_at = s.at FROM sent s
    WHERE r.kind = s.kind AND r.id = s.id AND r.version = s.expected RETURNING r.kind, r.id),
  created AS (
    INSERT INTO @records (kind, id, version, value, updated_at)
    SELECT kind, id, 1, value, at FROM sent WHERE expected = 0
    ON CONFLICT DO NOTHING RETURNING kind, id),
  replaced AS (
    INSERT INTO @records AS r (kind, id, version, value, updated_at)
    SELECT kind, id, 1, value, at FROM sent WHERE expected IS NULL
    ON CONFLICT (kind, id) DO UPDATE
      SET version = r.version + 1, value = excluded.value, updated_at = excluded.updated_at
    RETURNING kind, id)
  SELECT * FROM updated UNION ALL SELECT * FROM created UNION ALL SELECT * FROM replaced`

/** The maximum cost of a batch. A record costs 1, and 1 more for each 32 KiB of its value. */
const maxCost = 500
const charactersPerCost = 32 * 1024

const selectByIds = `SELECT ${columns} FROM @records WHERE kind = $1 AND id = ANY($2::text[]) ORDER BY id`

/** Records in the database. `use` rejects if the store is not open. */
export function postgresRecords(
  context: StoreContext,
  use: <T>(work: () => Promise<T>) => Promise<T>,
): Records {
  const { connection } = context
  const puts = new Batcher<Put, PutResult>({ maxInFlight: 2, maxBatchCost: maxCost }, (calls) =>
    runBatch(calls, (some) => putBatch(context, some)),
  )
  return {
    get: (kind, id) =>
      use(async () => {
        const sql = `SELECT ${columns} FROM @records WHERE kind = $1 AND id = $2`
        const [row] = await connection.read(sql, [toText(kind), toText(id)])
        return row && recordOf(row)
      }),
    put: (kind, id, value, expectedVersion) =>
      use(() => {
        const text = JSON.stringify(value)
        const put = { kind: toText(kind), id: toText(id), value: text }
        const cost = 1 + Math.floor(text.length / charactersPerCost)
        return puts.call({ ...put, expected: expectedVersion ?? null }, cost)
      }),
    list: (kind, query = {}) =>
      use(async () => {
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
      use(async () => {
        const sql = 'DELETE FROM @records WHERE kind = $1 AND id = $2 RETURNING 1'
        const rows = await connection.transaction('cold', (tx) =>
          tx.rows(sql, [toText(kind), toText(id)]),
        )
        return rows.length > 0
      }),
    kinds: () =>
      use(async () => {
        const kinds = (await connection.read(listKinds)).map(([kind]) => fromText(kind as string))
        return kinds.toSorted()
      }),
  }
}

/**
 * Writes the records of concurrent calls in one transaction. A statement has each record once:
 * calls for the same record follow each other in their order.
 */
function putBatch(context: StoreContext, puts: readonly Put[]): Promise<PutResult[]> {
  const rounds = splitByKey(puts)
  return context.connection.transaction('hot', async (tx) => {
    const written = await Promise.all(
      rounds.map(async (round) => {
        const columnOf = <K extends keyof Put>(name: K): Put[K][] => round.map((put) => put[name])
        const values = [columnOf('kind'), columnOf('id'), columnOf('value'), columnOf('expected')]
        const keys = await tx.rows(putAll, [...values, context.now()])
        const isWritten = new Set(keys.map(([kind, id]) => keyOf(kind as string, id as string)))
        return round.filter(({ kind, id }) => isWritten.has(keyOf(kind, id)))
      }),
    )
    const all = new Set(written.flat())
    return puts.map((put) => (all.has(put) ? 'written' : 'conflict'))
  })
}

/**
 * Lists in which each record occurs once, by key: all writers lock records in the same order, so
 * that they do not deadlock.
 */
function splitByKey(puts: readonly Put[]): Put[][] {
  const rounds: Map<string, Put>[] = []
  for (const put of puts) {
    const key = keyOf(put.kind, put.id)
    let round = rounds.find((one) => !one.has(key))
    if (!round) rounds.push((round = new Map()))
    round.set(key, put)
  }
  return rounds.map((round) => {
    const keys = [...round.keys()].toSorted()
    return keys.map((key) => round.get(key)!)
  })
}

const keyOf = (kind: string, id: string): string => `${kind}\0${id}`

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
