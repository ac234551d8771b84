import type { Clock } from '../../clock/clock.ts'
import type { Total } from '../../store.ts'
import {
  actions,
  actionCode,
  archived,
  codesPerQueue,
  counter,
  partsOf,
  priorities,
  priorityCode,
  type Cell,
} from '../rows/codes.ts'
import { addTo, type Delta } from '../rows/deltas.ts'
import { groupValueSql, type GroupKey } from '../rows/tally.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import type { QueueNames } from './queue-names.ts'
import { fromText, toText } from './text.ts'

const counterColumns = 'kind, queue, name, code, slot, n, retries, max_retries, backoff_ms'

const addToCounter = `ON CONFLICT (kind, queue, name, code, slot) DO UPDATE SET n = c.n + excluded.n,
    retries = c.retries + excluded.retries, max_retries = greatest(c.max_retries, excluded.max_retries),
    backoff_ms = c.backoff_ms + excluded.backoff_ms`

/** What `countMoves` reads of the letters that a statement wrote. */
interface Moves {
  /**
   * A table with `queue`, `old_code` and `new_code` (see `codeOf`; null: none), `old_group`,
   * `new_group`, `old_tags`, `new_tags`, and `priority`, `retries`, `backoff_ms` for the totals.
   */
  from: string
  /** SQL for the codes of the actions that are counted: an array, for rows `g` of `from`. */
  actions: string
  /** The parameter of the counter slot. */
  slot: string
}

/**
 * SQL for the last part of a WITH: adds what a statement wrote to the counters. Letters are grouped
 * first, since most letters of a batch are counted alike.
 */
export function countMoves({ from, actions, slot }: Moves): string {
  return `g AS MATERIALIZED (
    SELECT queue, old_code, new_code, old_group, new_group, priority, count(*) AS n,
      sum(retries::float8)::bigint AS retries, max(retries) AS most, sum(backoff_ms) AS backoff_ms
    FROM ${from} GROUP BY 1, 2, 3, 4, 5, 6),
  d AS (
    SELECT kind, queue, name, code, sum(n)::bigint AS n, sum(retries)::bigint AS retries, max(most) AS most,
      sum(backoff_ms) AS backoff_ms
    FROM (
      SELECT v.kind, g.queue, v.name, v.code, v.n, 0::bigint AS retries, 0::bigint AS most, 0::float8 AS backoff_ms
      FROM g CROSS JOIN LATERAL (VALUES (${counter.cell}, '', g.new_code, g.n), (${counter.cell}, '', g.old_code, -g.n),
        (${counter.group}, g.new_group, g.new_code, g.n), (${counter.group}, g.old_group, g.old_code, -g.n))
        AS v(kind, name, code, n)
      UNION ALL SELECT ${counter.total}, g.queue, '', a * 4 + g.priority, g.n, g.retries, g.most, g.backoff_ms
      FROM g CROSS JOIN LATERAL unnest(${actions}) AS a
      UNION ALL SELECT ${counter.tag}, m.queue, t.tag, v.code, v.n, 0, 0, 0
      FROM ${from} m CROSS JOIN LATERAL (VALUES (m.new_tags, m.new_code, 1), (m.old_tags, m.old_code, -1))
        AS v(tags, code, n) CROSS JOIN LATERAL (SELECT DISTINCT unnest(v.tags) AS tag) AS t
      WHERE m.new_tags IS NOT NULL OR m.old_tags IS NOT NULL) AS s
    WHERE code IS NOT NULL GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0),
  counted AS (
    INSERT INTO @counters AS c (${counterColumns})
    SELECT kind, queue, name, code, ${slot}::bigint, n, retries, most, backoff_ms FROM d ORDER BY 1, 2, 3, 4
    ${addToCounter})`
}

/** SQL that adds deltas to the counters. Their parameters begin at `$first`: see `deltaValues`. */
export function addDeltasStatement(first: number): string {
  const types = ['smallint', 'int', 'text', 'int', 'bigint', 'bigint', 'bigint', 'float8']
  const arrays = types.map((type, index) => `$${first + 1 + index}::${type}[]`)
  return `INSERT INTO @counters AS c (${counterColumns})
  SELECT kind, queue, name, code, $${first}::bigint, n, retries, max_retries, backoff_ms
  FROM unnest(${arrays.join(', ')}) AS d(kind, queue, name, code, n, retries, max_retries, backoff_ms)
  ${addToCounter}`
}

/** The parameters of `addDeltasStatement`, in the order of the keys. */
export function deltaValues(slot: number, deltas: readonly Delta[]): unknown[] {
  const all = deltas.toSorted(byKey)
  return [
    slot,
    all.map(({ kind }) => kind),
    all.map(({ queue }) => queue),
    all.map(({ name }) => toText(name)),
    all.map(({ code }) => code),
    all.map(({ n }) => n),
    all.map(({ retries }) => retries),
    all.map(({ maxRetries }) => maxRetries),
    all.map(({ backoffMs }) => backoffMs),
  ]
}

const growCounters = addDeltasStatement(1)

/** Writes the deltas, right before the commit. */
export function writeDeltas(tx: Transaction, slot: number, deltas: readonly Delta[]): void {
  if (deltas.length > 0) void tx.rows(growCounters, deltaValues(slot, deltas))
}

function byKey(a: Delta, b: Delta): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  return a.kind - b.kind || a.queue - b.queue || a.code - b.code
}

/** The counter cells that are not zero. */
export async function readCells(
  read: (sql: string, values: unknown[]) => Promise<unknown[][]>,
): Promise<[Cell, number][]> {
  const sql = `SELECT queue, code, sum(n)::bigint FROM @counters WHERE kind = $1 GROUP BY 1, 2 HAVING sum(n) <> 0`
  const rows = (await read(sql, [counter.cell])) as [number, number, number][]
  return rows.map(([queue, code, n]) => [partsOf(queue * codesPerQueue + code), n])
}

/** The number of letters, excluding archived ones. */
export function countStored(cells: readonly [Cell, number][]): number {
  return cells.reduce((sum, [{ state }, n]) => (state === archived ? sum : sum + n), 0)
}

/** The number of letters of each group or tag, in counters of these codes and queues. */
export async function readNamedCounts(
  connection: PostgresConnection,
  by: GroupKey | 'tag',
  codes: string,
  queues: readonly number[] | undefined,
): Promise<Map<string, number>> {
  const value = by === 'tag' ? 'name' : groupValueSql(by, 'code >> 9', 'name')
  const sql = `SELECT ${value}, sum(n)::bigint FROM @counters
    WHERE kind = $1 AND ${codes} AND ($2::int[] IS NULL OR queue = ANY($2)) GROUP BY 1 HAVING sum(n) <> 0`
  const kind = by === 'tag' ? counter.tag : counter.group
  const rows = (await connection.read(sql, [kind, queues ?? null])) as [string, number][]
  return new Map(rows.map(([name, n]) => [fromText(name), n]))
}

/** The counters of some groups in these queues, or in all: one index lookup for each pair. */
export async function readGroupCells(
  connection: PostgresConnection,
  groups: readonly string[],
  queues: readonly number[] | undefined,
): Promise<{ group: string; cell: Cell; n: number }[]> {
  // OFFSET 0 keeps the planner from joining the whole table instead.
  const sql = `SELECT c.queue, c.name, c.code, sum(c.n)::bigint
    FROM unnest(coalesce($2::int[], ARRAY(SELECT id FROM @queues))) AS q(id)
    CROSS JOIN unnest($3::text[]) AS g(name) CROSS JOIN LATERAL (
      SELECT queue, name, code, n FROM @counters
      WHERE kind = $1 AND queue = q.id AND name = g.name COLLATE "C" OFFSET 0) AS c
    GROUP BY 1, 2, 3 HAVING sum(c.n) <> 0`
  const names = [...new Set(groups)].map(toText)
  const among = queues ? [...new Set(queues)] : null
  const rows = await connection.read(sql, [counter.group, among, names])
  return (rows as [number, string, number, number][]).map(([queue, name, code, n]) => ({
    group: fromText(name),
    cell: partsOf(queue * codesPerQueue + code),
    n,
  }))
}

export async function readTotals(
  connection: PostgresConnection,
  queues: QueueNames,
): Promise<Total[]> {
  const sql = `SELECT queue, code, sum(n)::bigint, sum(retries)::bigint, max(max_retries), sum(backoff_ms)
    FROM @counters WHERE kind = $1 GROUP BY 1, 2 ORDER BY 1, 2`
  const rows = (await connection.read(sql, [counter.total])) as number[][]
  const nameOf = await queues.names(rows.map(([queue]) => queue!))
  return rows.map(([queue, code, count, retries, maxRetries, backoffMs]) => ({
    action: actions[code! >> 2]!,
    queue: nameOf(queue!),
    priority: priorities[code! & 3]!,
    count: count!,
    retries: retries!,
    maxRetries: maxRetries!,
    backoffMs: backoffMs!,
  }))
}

const dropTotals = `DELETE FROM @counters c USING unnest($2::int[], $3::int[]) AS t(queue, code)
  WHERE c.kind = $1 AND c.queue = t.queue AND c.name = '' AND c.code = t.code`

/** Replaces totals in all slots. */
export async function writeTotals(
  connection: PostgresConnection,
  queues: QueueNames,
  totals: readonly Total[],
  slot: number,
): Promise<void> {
  const numbers = await queues.numbers(totals.map(({ queue }) => queue))
  const deltas = new Map<string, Delta>()
  for (const { action, queue, priority, count, ...sums } of totals) {
    const code = actionCode(action) * 4 + priorityCode(priority)
    const number = numbers.get(queue)!
    const place = { kind: counter.total, queue: number, name: '', code }
    deltas.set(`${number} ${code}`, { ...place, n: count, ...sums })
  }
  const all = [...deltas.values()]
  const work = async (tx: Transaction): Promise<void> => {
    const keys = [counter.total, all.map(({ queue }) => queue), all.map(({ code }) => code)]
    void tx.rows(dropTotals, keys)
    writeDeltas(tx, slot, all)
  }
  await connection.transaction('cold', work, { repeatable: true })
}

/** Rows that one step of `tidyCounters` reads. */
const tidyRows = 2000

type Key = [kind: number, queue: number, name: string, code: number]

const nextRows = `SELECT kind, queue, name, code, slot, n FROM @counters
  WHERE (kind, queue, name, code) > ($1::smallint, $2::int, $3::text, $4::int)
  ORDER BY kind, queue, name, code, slot LIMIT $5`

const takeRows = `WITH taken AS MATERIALIZED (
    SELECT c.kind, c.queue, c.name, c.code, c.slot FROM @counters c
    JOIN unnest($1::smallint[], $2::int[], $3::text[], $4::int[]) AS k(kind, queue, name, code)
      ON c.kind = k.kind AND c.queue = k.queue AND c.name = k.name AND c.code = k.code
    FOR UPDATE OF c SKIP LOCKED)
  DELETE FROM @counters c USING taken t
  WHERE c.kind = t.kind AND c.queue = t.queue AND c.name = t.name AND c.code = t.code AND c.slot = t.slot
  RETURNING c.kind, c.queue, c.name, c.code, c.n, c.retries, c.max_retries, c.backoff_ms`

/**
 * Merges the slots of each counter, and deletes counters that are zero; otherwise the rows of
 * former writers would accumulate. Bounded: returns where the next step continues, or undefined at
 * the end.
 */
export async function tidyCounters(
  connection: PostgresConnection,
  slot: number,
  after?: Key,
): Promise<Key | undefined> {
  const from = after ?? [-1, 0, '', 0]
  const rows = (await connection.read(nextRows, [...from, tidyRows])) as [...Key, number, number][]
  const many = new Map<string, { key: Key; count: number }>()
  for (const [kind, queue, name, code, , n] of rows) {
    const key: Key = [kind, queue, name, code]
    const seen = many.get(key.join(' ')) ?? { key, count: 0 }
    seen.count += n === 0 ? 2 : 1
    many.set(key.join(' '), seen)
  }
  const split = [...many.values()].filter(({ count }) => count > 1).map(({ key }) => key)
  if (split.length > 0) await connection.transaction('cold', (tx) => merge(tx, slot, split))
  return rows.length < tidyRows ? undefined : (rows.at(-1)!.slice(0, 4) as Key)
}

async function merge(tx: Transaction, slot: number, keys: Key[]): Promise<void> {
  const columns = [0, 1, 2, 3].map((at) => keys.map((key) => key[at]))
  const sums = new Map<string, Delta>()
  for (const cells of await tx.rows(takeRows, columns)) {
    const [kind, queue, name, code, n, retries, maxRetries, backoffMs] = cells as [
      ...Key,
      number,
      number,
      number,
      number,
    ]
    const id = `${kind} ${queue} ${code} ${name}`
    const sum = sums.get(id)
    if (!sum)
      sums.set(id, { kind, queue, name: fromText(name), code, n, retries, maxRetries, backoffMs })
    else addTo(sum, { n, retries, maxRetries, backoffMs })
  }
  const left = [...sums.values()].filter(({ n }) => n !== 0)
  writeDeltas(tx, slot, left)
}

/**
 * A random slot, most likely unused. Two transactions with the same slot only wait for each other.
 */
export function drawSlot(clock: Clock): number {
  return Math.floor(clock.random() * 2 ** 48)
}
