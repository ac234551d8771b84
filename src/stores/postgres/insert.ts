import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { actionCode, parked } from '../rows/codes.ts'
import { at, columns, type Row } from '../rows/columns.ts'
import { Deltas } from '../rows/deltas.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import { addDeltasStatement, countMoves, deltaValues } from './counters.ts'
import { codeOf, encodeValue, isSentAsIs, joinColumn, tableOf, textOf, valueOf } from './rows.ts'
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

const bodyNames = ['id', 'origin', 'origin_crc', 'bytes_crc', 'payload', 'start', 'length']
const letterNames = [...columns, 'queue', 'size', 'depended']
const blob = `$${bodyNames.length + 1}`
const firstOfLetter = bodyNames.length + 2
const slot = `$${firstOfLetter + letterNames.length}`

const [capture, parkAtCapture] = [actionCode('capture'), actionCode('park-at-capture')]
const captured = `CASE WHEN g.new_code / 512 = ${parked} THEN ARRAY[${capture}, ${parkAtCapture}]
  ELSE ARRAY[${capture}] END`

const insertBodies = `INSERT INTO @bodies (id, origin, origin_crc, bytes_crc, payload, bytes)
    SELECT id, origin, origin_crc, bytes_crc, payload, substring(${blob}::bytea FROM start FOR length)
    FROM ${tableOf(bodyNames, 'x')} WHERE id IS NOT NULL`

const insertRows = `INSERT INTO @letters AS l (${letterNames.join(', ')})
    SELECT ${letterNames.map((name) => valueOf(name, `x.${name}`)).join(', ')}
    FROM ${tableOf(letterNames, 'x', firstOfLetter)}`

/**
 * Inserts letters with bodies and counts. Fails if an id is not new. Uses `letters` first: see
 * `excludeOthers` in `partitions.ts`.
 */
const insertPlain = `WITH l AS (${insertRows} WHERE x.id IS NOT NULL), b AS (${insertBodies})
  ${addDeltasStatement(firstOfLetter + letterNames.length)}`

/**
 * Inserts letters with bodies and counts, except those whose id is not new, and returns the new
 * ids. The primary key of `bodies` decides: a letter that others wait for has a body without origin
 * before it is stored, so that whoever stores it learns of them. (`IS TRUE` has the server look up
 * the ids in a hash table.)
 */
const insertNew = (actions: string): string => `WITH
  b AS (${insertBodies} ON CONFLICT DO NOTHING RETURNING id),
  l AS (
    ${insertRows} WHERE (x.id IN (SELECT id FROM b)) IS TRUE ON CONFLICT DO NOTHING
    RETURNING l.id, l.queue, NULL::int AS old_code, ${codeOf('l')} AS new_code, NULL::text AS old_group,
      l.fingerprint AS new_group, NULL::text[] AS old_tags, l.tags AS new_tags, l.priority, l.retries, l.backoff_ms),
  ${countMoves({ from: 'l', actions, slot })}
  SELECT id FROM l`

const statements = { add: insertNew(captured), keep: insertNew(`'{}'::int[]`) }

/** Inserts letters. Returns the ids that are new. `keep` adds nothing to the totals. */
export async function insertLetters(
  tx: Transaction,
  all: readonly NewLetter[],
  counterSlot: number,
  mode: keyof typeof statements,
): Promise<Set<string>> {
  if (all.length === 0) return new Set()
  const values = [...bodyValues(all), ...letterValues(all), counterSlot]
  const rows = await tx.rows(statements[mode], values)
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
  await connection.execute(insertPlain, [...bodyValues(all), ...letterValues(all), ...counts])
}

/**
 * Payloads that are no text are sent as one value and split on the server: an array would be text.
 */
function bodyValues(all: readonly NewLetter[]): unknown[] {
  const binary = all.flatMap(({ bytes }) => bytes ?? [])
  let end = 0
  return [
    joinColumn('id', all, ({ id }) => id),
    joinColumn('origin', all, ({ origin }) => origin),
    joinColumn('origin_crc', all, ({ originCrc }) => originCrc),
    joinColumn('bytes_crc', all, ({ bytesCrc }) => bytesCrc),
    joinColumn('payload', all, ({ payload }) => payload),
    joinColumn('start', all, ({ bytes }) =>
      bytes ? (end += bytes.byteLength) - bytes.byteLength + 1 : null,
    ),
    joinColumn('length', all, ({ bytes }) => bytes?.byteLength ?? null),
    binary.length > 0 ? Buffer.concat(binary) : null,
  ]
}

function letterValues(all: readonly NewLetter[]): unknown[] {
  const own = columns.map((name, index) =>
    isSentAsIs(name)
      ? joinColumn(name, all, ({ row }) => row[index] as number | string | null)
      : joinColumn(name, all, ({ row }) => encodeValue(name, row[index]!)),
  )
  return [
    ...own,
    joinColumn('queue', all, ({ queue }) => queue),
    joinColumn('size', all, ({ size }) => size),
    joinColumn('depended', all, ({ depended }) => depended),
  ]
}

const insertTags = `INSERT INTO @tags SELECT DISTINCT t.tag, l.id FROM @letters l CROSS JOIN LATERAL unnest(l.tags) AS t(tag)
  WHERE l.id = ANY($1::uuid[])`

/** Writes the tags of letters that were just inserted. */
export function writeTags(tx: Transaction, inserted: readonly NewLetter[]): void {
  const tagged = inserted.filter(({ row }) => row[at.tags] !== null).map(({ id }) => id)
  if (tagged.length > 0) void tx.rows(insertTags, [joinIds(tagged)])
}
