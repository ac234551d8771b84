import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { actionCode, parked } from '../rows/codes.ts'
import { at, columns, type Row } from '../rows/columns.ts'
import { Deltas } from '../rows/deltas.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import { addDeltasStatement, countMoves, deltaValues } from './counters.ts'
import {
  codeOf,
  encodeValue,
  joinColumn,
  tableOf,
  textOf,
  typeOf,
  valueOf,
  type SentValue,
} from './rows.ts'
import { joinIds } from './text.ts'

/** A letter to insert, encoded when the call was made. */
export interface NewLetter {
  id: string
  queue: number
  row: Row
  origin: string
  originCrc: number
  bytesCrc: number
  /** The payload: as text where its bytes allow, since that is sent and read faster. */
  payload: string | null
  bytes: Uint8Array | null
  size: number
  /** Whether other letters depend on it. */
  depended: boolean
}

/** The letter as it is now: its queue gets a number when it is stored. */
export function newLetterOf({ row, body }: EncodedLetter): NewLetter {
  const { origin, originCrc, bytes, bytesCrc } = body
  const payload = textOf(bytes)
  return {
    id: row[at.id] as string,
    queue: 0,
    row,
    origin,
    originCrc,
    bytesCrc,
    payload,
    // A copy, since the caller may change its bytes before they are sent.
    bytes: payload === null ? bytes.slice() : null,
    size: bytes.byteLength,
    depended: false,
  }
}

/** The columns that are sent, with their values. */
const sentColumns: readonly [name: string, value: (letter: NewLetter) => SentValue][] = [
  ...columns.map((name, index): (typeof sentColumns)[number] => [name, ({ row }) => row[index]!]),
  ['queue', ({ queue }) => queue],
  ['size', ({ size }) => size],
  ['depended', ({ depended }) => depended],
  ['origin', ({ origin }) => origin],
  ['origin_crc', ({ originCrc }) => originCrc],
  ['bytes_crc', ({ bytesCrc }) => bytesCrc],
  ['payload', ({ payload }) => payload],
  ['bytes', ({ bytes }) => bytes],
]

const letterNames = [...columns, 'queue', 'size', 'depended']
const bodyNames = ['id', 'origin', 'origin_crc', 'bytes_crc', 'payload', 'bytes']

/**
 * Columns that differ in most batches. Of the others, most are the same in all letters of a batch,
 * and are then sent once.
 */
const differing = new Set(
  ['captured_at', 'updated_at', 'due_at', 'history', 'size'].concat(bodyNames.slice(0, -1)),
)

/** Each shape of a batch is a prepared statement. If there are many, new ones send only lists. */
const maxShapes = 64

type Mode = 'plain' | 'add' | 'keep'

const statements = new Map<string, string>()

/** The statement that inserts letters, and the parameters of the columns. */
function insertOf(mode: Mode, all: readonly NewLetter[]): { sql: string; values: unknown[] } {
  let lists = differingColumns(all)
  let key = [mode, ...lists].join(' ')
  if (!statements.has(key) && statements.size >= maxShapes) {
    lists = new Set(sentColumns.map(([name]) => name))
    key = [mode, ...lists].join(' ')
  }
  let sql = statements.get(key)
  if (sql === undefined) statements.set(key, (sql = statementOf(mode, lists)))
  const values = sentColumns.map(([name, value]) => {
    return lists.has(name) ? joinColumn(name, all, value) : encodeValue(name, value(all[0]!))
  })
  return { sql, values }
}

/** The columns that are sent as lists. */
function differingColumns(all: readonly NewLetter[]): Set<string> {
  if (all.length === 1) return new Set()
  const isSame = (value: (letter: NewLetter) => SentValue): boolean => {
    const first = value(all[0]!)
    return all.every((letter) => value(letter) === first)
  }
  return new Set(
    sentColumns.flatMap(([name, value]) => (differing.has(name) || !isSame(value) ? [name] : [])),
  )
}

/** SQL for a selection of columns from the parameters. */
function selectSent(names: readonly string[], lists: ReadonlySet<string>): string {
  const place = (name: string): number => sentColumns.findIndex(([one]) => one === name) + 1
  const cells = names.map((name) =>
    valueOf(name, lists.has(name) ? `x.${name}` : `$${place(name)}::${typeOf(name)}`),
  )
  const listed = names.filter((name) => lists.has(name))
  const source =
    listed.length > 0 ? tableOf(listed, 'x', place) : `(SELECT $${place('id')}::uuid AS id) AS x`
  return `SELECT ${cells.join(', ')} FROM ${source} WHERE x.id IS NOT NULL`
}

const [capture, parkAtCapture] = [actionCode('capture'), actionCode('park-at-capture')]
const captured = `CASE WHEN g.new_code / 512 = ${parked} THEN ARRAY[${capture}, ${parkAtCapture}]
  ELSE ARRAY[${capture}] END`

/** The parameter after those of the columns. */
const next = sentColumns.length + 1

function statementOf(mode: Mode, lists: ReadonlySet<string>): string {
  const letters = `INSERT INTO @letters AS l (${letterNames.join(', ')}) ${selectSent(letterNames, lists)}`
  const bodies = `INSERT INTO @bodies (${bodyNames.join(', ')}) ${selectSent(bodyNames, lists)}`
  if (mode !== 'plain') return insertNew(letters, bodies, mode)
  return insertPlain(letters, bodies, selectSent(['fingerprint', 'id'], lists))
}

/**
 * Inserts letters with bodies and counts. Fails if an id is not new. Uses `letters` first: see
 * `excludeOthers` in `partitions.ts`.
 */
const insertPlain = (letters: string, bodies: string, groups: string): string =>
  `WITH l AS (${letters}), b AS (${bodies}), f AS (INSERT INTO @groups ${groups}) ${addDeltasStatement(next)}`

/**
 * Inserts letters with bodies and counts, except those whose id is not new, and returns the new
 * ids. The primary key of `bodies` decides: a letter that others wait for has a body without origin
 * before it is stored, so that whoever stores it learns of them. (`IS TRUE` has the server look up
 * the ids in a hash table.)
 */
const insertNew = (letters: string, bodies: string, mode: Exclude<Mode, 'plain'>): string => `WITH
  b AS (${bodies} ON CONFLICT DO NOTHING RETURNING id),
  l AS (
    ${letters} AND (x.id IN (SELECT id FROM b)) IS TRUE ON CONFLICT DO NOTHING
    RETURNING l.id, l.queue, NULL::int AS old_code, ${codeOf('l')} AS new_code, NULL::text AS old_group,
      l.fingerprint AS new_group, NULL::text[] AS old_tags, l.tags AS new_tags, l.priority, l.retries, l.backoff_ms),
  f AS (INSERT INTO @groups SELECT new_group, id FROM l),
  ${countMoves({ from: 'l', actions: mode === 'add' ? captured : `'{}'::int[]`, slot: `$${next}` })}
  SELECT id FROM l`

/** Inserts letters. Returns the ids that are new. `keep` adds nothing to the totals. */
export async function insertLetters(
  tx: Transaction,
  all: readonly NewLetter[],
  counterSlot: number,
  mode: Exclude<Mode, 'plain'>,
): Promise<Set<string>> {
  if (all.length === 0) return new Set()
  const { sql, values } = insertOf(mode, all)
  const rows = await tx.rows(sql, [...values, counterSlot])
  return new Set(rows.map(([id]) => id as string))
}

/** Inserts letters without tags whose ids are new, in a single statement. */
export async function insertPlainLetters(
  connection: PostgresConnection,
  all: readonly NewLetter[],
  counterSlot: number,
): Promise<void> {
  const deltas = new Deltas()
  for (const { row, queue } of all) {
    const [state, priority, retries] = [at.state, at.priority, at.retries].map(
      (index) => row[index] as number,
    ) as [number, number, number]
    const [category, policy] = [row[at.category] as number, row[at.policy] as number]
    const fingerprint = row[at.fingerprint] as string
    deltas.count(queue, { state, category, priority, policy, fingerprint }, [], 1)
    const sums = { n: 1, retries, maxRetries: retries, backoffMs: row[at.backoff_ms] as number }
    deltas.totals(queue, capture, priority, sums)
    if (state === parked) deltas.totals(queue, parkAtCapture, priority, sums)
  }
  const counts = deltaValues(counterSlot, deltas.changed())
  const { sql, values } = insertOf('plain', all)
  await connection.execute(sql, [...values, ...counts])
}

const insertTags = `INSERT INTO @tags SELECT DISTINCT t.tag, l.id FROM @letters l CROSS JOIN LATERAL unnest(l.tags) AS t(tag)
  WHERE l.id = ANY($1::uuid[])`

/** Writes the tags of letters that were just inserted. */
export function writeTags(tx: Transaction, inserted: readonly NewLetter[]): void {
  const tagged = inserted.filter(({ row }) => row[at.tags] !== null).map(({ id }) => id)
  if (tagged.length > 0) void tx.rows(insertTags, [joinIds(tagged)])
}
