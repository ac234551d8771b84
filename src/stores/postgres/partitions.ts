import { toMs, toTimestamp } from '../../letter/time.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lock } from './locks.ts'
import { migrations } from './schema.ts'

/*
 * What grows with letters can be kept in a table for each month, so that a month goes at once. Letters are told apart by their ids: a UUIDv7 begins
 * with its time. An id that begins with no time of a month that has tables, as a caller may choose it, goes to the table `other`.
 */

/** Tables that have parts, each by the id of the letter. */
export const parted = ['letters', 'bodies', 'edits', 'history', 'tags'] as const

/** Months that are made ahead of the present one. There is time for many tries. */
const monthsAhead = 3

/** A try that failed is repeated after this time. */
const againMs = 3_600_000

export const partitionsLock = 'partitions'

const tableMade = /^(\s*CREATE TABLE @(\w+) \(.*?\))( WITH \([^()]*\))?\s*$/s

const partsOf = (statement: string): [head: string, table: string, storage: string] | undefined => {
  const [, head, table, storage = ''] = tableMade.exec(statement) ?? []
  return head !== undefined && (parted as readonly (string | undefined)[]).includes(table)
    ? [head, table!, storage]
    : undefined
}

/** A statement of the schema as it is for a schema with parts: those have the storage settings, the whole has none. */
export function inParts(statement: string): string {
  const parts = partsOf(statement)
  return parts ? `${parts[0]} PARTITION BY RANGE (id)` : statement
}

const storageOf = new Map(
  migrations
    .flatMap((migration) => migration.split(';'))
    .flatMap((statement) => {
      const parts = partsOf(statement)
      return parts ? [[parts[1], parts[2]] as const] : []
    }),
)

export const isMonth = (text: string): boolean => /^\d{4}-(0[1-9]|1[0-2])$/.test(text)

export const monthOf = (ms: number): string => toTimestamp(ms).slice(0, 7)

/** The month that many months later. */
function later(month: string, months: number): string {
  const [year, place] = month.split('-').map(Number) as [number, number]
  return monthOf(Date.UTC(year, place - 1 + months))
}

const startOf = (month: string): number => toMs(`${month}-01T00:00:00.000Z`)

/** How the first id of a month begins. */
function firstId(month: string): string {
  const time = startOf(month).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}`
}

/** Ids of a month are not below the first of these, and below the second. */
export const boundsOf = (month: string): [string, string] => [
  firstId(month),
  firstId(later(month, 1)),
]

/** The table of a month, without its schema. */
export const tableOf = (table: string, month: string): string =>
  `${table}_${month.replace('-', '_')}`

function statementsOf(month: string): string[] {
  const [from, to] = boundsOf(month)
  return parted.map(
    (table) => `CREATE TABLE @${tableOf(table, month)} PARTITION OF @${table}
      FOR VALUES FROM ('${from}') TO ('${to}')${storageOf.get(table)}`,
  )
}

const coming = (nowMs: number): string[] =>
  Array.from({ length: monthsAhead + 1 }, (_, n) => later(monthOf(nowMs), n))

/** What a schema with parts has beyond the others; see `drop-months.ts` for the trigger. */
export const firstParts = (nowMs: number): string[] => [
  `INSERT INTO @meta VALUES ('partitions', 'month')`,
  ...parted.map(
    (table) => `CREATE TABLE @${table}_other PARTITION OF @${table} DEFAULT${storageOf.get(table)}`,
  ),
  ...coming(nowMs).flatMap(statementsOf),
  'CREATE SEQUENCE @changes',
  `CREATE FUNCTION @note_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM nextval(format('%I.changes', TG_TABLE_SCHEMA)::regclass); RETURN NULL; END $$`,
]

type Send = (sql: string, values?: unknown[]) => Promise<Cells[]>

/** How the schema was made: undefined, or by what it has parts. */
export async function partitionsOf(read: Send): Promise<string | undefined> {
  const [row] = await read(`SELECT value FROM @meta WHERE key = 'partitions'`)
  return row?.[0] as string | undefined
}

const children = `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass($1) ORDER BY 1`

/** The months that have tables, from the oldest. */
export async function monthsThere(read: Send, { schema }: PostgresConnection): Promise<string[]> {
  const rows = await read(children, [`"${schema}".letters`])
  return rows.flatMap(([name]) => {
    const month = /^letters_(\d{4}_\d\d)$/.exec(name as string)?.[1]?.replace('_', '-')
    return month !== undefined && isMonth(month) ? [month] : []
  })
}

/**
 * Keeps everybody out for a moment. Whoever touches any of the tables touches `letters` first, so that holding it leads to no deadlock. Who
 * waits for it makes all others wait: it is not waited for long. The server takes a second to send its own vacuum away.
 */
export async function keepOut(tx: Transaction): Promise<void> {
  void tx.rows('SET LOCAL lock_timeout = 300')
  await tx.rows('LOCK TABLE ONLY @letters IN ACCESS EXCLUSIVE MODE')
  void tx.rows('SET LOCAL lock_timeout = 2000')
}

async function makeMonth(
  tx: Transaction,
  connection: PostgresConnection,
  month: string,
): Promise<void> {
  await lock(tx, connection, [partitionsLock])
  if ((await monthsThere((sql, values) => tx.rows(sql, values), connection)).includes(month)) return
  await keepOut(tx)
  for (const statement of statementsOf(month)) void tx.rows(statement)
}

/**
 * Makes what is missing of the present month and the next ones. A month of which `other` has letters already cannot be made; nothing is lost,
 * as they stand there as well. Answers whether nothing is missing.
 */
async function makeMonths(connection: PostgresConnection, nowMs: number): Promise<boolean> {
  const read: Send = (sql, values) => connection.read(sql, values)
  const there = await monthsThere(read, connection).catch(() => undefined)
  let all = there !== undefined
  for (const month of there ? coming(nowMs) : []) {
    if (there?.includes(month)) continue
    const make = (tx: Transaction): Promise<void> => makeMonth(tx, connection, month)
    await connection.transaction('cold', make, { repeatable: true }).catch(() => (all = false))
  }
  return all
}

/** Makes months, at open and as time goes on. Asked for at every capture, it looks at the server once a month. */
export function monthKeeper(
  connection: PostgresConnection,
  now: () => number,
): () => Promise<void> {
  let lookAt = Number.NEGATIVE_INFINITY
  return async () => {
    const nowMs = now()
    if (nowMs < lookAt) return
    lookAt = nowMs + againMs
    if (await makeMonths(connection, nowMs)) lookAt = startOf(later(monthOf(nowMs), 1))
  }
}
