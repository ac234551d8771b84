import { toMs, toTimestamp } from '../../letter/time.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lock } from './locks.ts'
import { migrations } from './schema.ts'

/*
 * Tables that grow with letters can be partitioned by month, so that a month is dropped at once.
 * The id decides the month: a UUIDv7 begins with its time. An id that begins with no time of a
 * partitioned month, as a caller may choose it, goes to the partition `other`.
 */

/** Tables that are partitioned, each by the id of the letter. */
export const partitionedTables = ['letters', 'bodies', 'tags', 'groups'] as const

/** Months that are created in advance, so that there is time for many tries. */
const monthsAhead = 3

/** The pause before a failed try is repeated. */
const retryPauseMs = 3_600_000

export const partitionsLock = 'partitions'

const tableMade = /^(\s*CREATE TABLE @(\w+) \(.*?\))( WITH \([^()]*\))?\s*$/s

const splitCreateTable = (
  statement: string,
): [head: string, table: string, storage: string] | undefined => {
  const [, head, table, storage = ''] = tableMade.exec(statement) ?? []
  return head !== undefined &&
    (partitionedTables as readonly (string | undefined)[]).includes(table)
    ? [head, table!, storage]
    : undefined
}

/**
 * Rewrites a statement of the schema for partitions: the partitions have the storage settings, the
 * parent table has none.
 */
export function toPartitioned(statement: string): string {
  const parts = splitCreateTable(statement)
  return parts ? `${parts[0]} PARTITION BY RANGE (id)` : statement
}

const storageOf = new Map(
  migrations
    .flatMap((migration) => migration.split(';'))
    .flatMap((statement) => {
      const parts = splitCreateTable(statement)
      return parts ? [[parts[1], parts[2]] as const] : []
    }),
)

export const isMonth = (text: string): boolean => /^\d{4}-(0[1-9]|1[0-2])$/.test(text)

export const monthOf = (ms: number): string => toTimestamp(ms).slice(0, 7)

/** The month that follows after this number of months. */
function addMonths(month: string, months: number): string {
  const [year, place] = month.split('-').map(Number) as [number, number]
  return monthOf(Date.UTC(year, place - 1 + months))
}

const startOf = (month: string): number => toMs(`${month}-01T00:00:00.000Z`)

/** The lowest id of a month. */
function firstId(month: string): string {
  const time = startOf(month).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

/** The inclusive lower bound and exclusive upper bound of the ids of a month. */
export const boundsOf = (month: string): [string, string] => [
  firstId(month),
  firstId(addMonths(month, 1)),
]

/** The table name of a month, without the schema. */
export const tableOf = (table: string, month: string): string =>
  `${table}_${month.replace('-', '_')}`

function statementsOf(month: string): string[] {
  const [from, to] = boundsOf(month)
  return partitionedTables.map(
    (table) => `CREATE TABLE @${tableOf(table, month)} PARTITION OF @${table}
      FOR VALUES FROM ('${from}') TO ('${to}')${storageOf.get(table)}`,
  )
}

const upcomingMonths = (nowMs: number): string[] =>
  Array.from({ length: monthsAhead + 1 }, (_, n) => addMonths(monthOf(nowMs), n))

/** Statements for a partitioned schema; see `drop-months.ts` for the trigger. */
export const partitionSetup = (nowMs: number): string[] => [
  `INSERT INTO @meta VALUES ('partitions', 'month')`,
  ...partitionedTables.map(
    (table) => `CREATE TABLE @${table}_other PARTITION OF @${table} DEFAULT${storageOf.get(table)}`,
  ),
  ...upcomingMonths(nowMs).flatMap(statementsOf),
  'CREATE SEQUENCE @changes',
  `CREATE FUNCTION @note_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM nextval(format('%I.changes', TG_TABLE_SCHEMA)::regclass); RETURN NULL; END $$`,
]

type Send = (sql: string, values?: unknown[]) => Promise<Cells[]>

/** How the schema is partitioned; undefined if it is not. */
export async function readPartitions(read: Send): Promise<string | undefined> {
  const [row] = await read(`SELECT value FROM @meta WHERE key = 'partitions'`)
  return row?.[0] as string | undefined
}

const children = `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass($1) ORDER BY 1`

/** The months that have partitions, oldest first. */
export async function listMonths(read: Send, { schema }: PostgresConnection): Promise<string[]> {
  const rows = await read(children, [`"${schema}".letters`])
  return rows.flatMap(([name]) => {
    const month = /^letters_(\d{4}_\d\d)$/.exec(name as string)?.[1]?.replace('_', '-')
    return month !== undefined && isMonth(month) ? [month] : []
  })
}

/**
 * Locks out all others. Every transaction uses `letters` before the other tables, so that holding
 * its lock causes no deadlock. A transaction that waits for the lock makes all others wait, so the
 * wait is short. The server needs a second to cancel its own vacuum.
 */
export async function excludeOthers(tx: Transaction): Promise<void> {
  void tx.rows('SET LOCAL lock_timeout = 300')
  await tx.rows('LOCK TABLE ONLY @letters IN ACCESS EXCLUSIVE MODE')
  void tx.rows('SET LOCAL lock_timeout = 2000')
}

async function createMonth(
  tx: Transaction,
  connection: PostgresConnection,
  month: string,
): Promise<void> {
  await lock(tx, connection, [partitionsLock])
  if ((await listMonths((sql, values) => tx.rows(sql, values), connection)).includes(month)) return
  await excludeOthers(tx)
  for (const statement of statementsOf(month)) void tx.rows(statement)
}

/**
 * Creates missing partitions of the current month and the next ones. If `other` already has letters
 * of a month, its partition cannot be created; those letters stay in `other`. Returns whether no
 * partition is missing.
 */
async function createMonths(connection: PostgresConnection, nowMs: number): Promise<boolean> {
  const read: Send = (sql, values) => connection.read(sql, values)
  const there = await listMonths(read, connection).catch(() => undefined)
  let all = there !== undefined
  for (const month of there ? upcomingMonths(nowMs) : []) {
    if (there?.includes(month)) continue
    const make = (tx: Transaction): Promise<void> => createMonth(tx, connection, month)
    await connection.transaction('cold', make, { repeatable: true }).catch(() => (all = false))
  }
  return all
}

/**
 * Creates partitions, at open and addMonths. Called at every capture, it queries the server once a
 * month.
 */
export function monthCreator(
  connection: PostgresConnection,
  now: () => number,
): () => Promise<void> {
  let nextCheckMs = Number.NEGATIVE_INFINITY
  return async () => {
    const nowMs = now()
    if (nowMs < nextCheckMs) return
    nextCheckMs = nowMs + retryPauseMs
    if (await createMonths(connection, nowMs)) nextCheckMs = startOf(addMonths(monthOf(nowMs), 1))
  }
}
