import type { Transaction } from '../../backends/postgres/transaction.ts'
import { actionCode, parked } from '../rows/codes.ts'
import { at, columns, type Row } from '../rows/columns.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import { countMoves } from './counters.ts'
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

const newOnly = '(x.id IN (SELECT id FROM b)) IS TRUE ON CONFLICT DO NOTHING'

/**
 * Inserts letters with bodies and counts, in one statement. The primary key of `bodies` decides
 * whether an id is new: a letter that others wait for has a body without origin before it is
 * stored, so that whoever stores it learns of them. `plain` fails if an id is not new; otherwise
 * such letters are left out, and the new ids are returned. (`IS TRUE` has the server look up the
 * ids in a hash table.)
 */
function insertStatement(isPlain: boolean, actions: string): string {
  const source = tableOf(letterNames, 'x', firstOfLetter)
  return `WITH b AS (
    INSERT INTO @bodies (id, origin, origin_crc, bytes_crc, payload, bytes)
    SELECT id, origin, origin_crc, bytes_crc, payload, substring(${blob}::bytea FROM start FOR length)
    FROM ${tableOf(bodyNames, 'x')} WHERE id IS NOT NULL
    ${isPlain ? '' : 'ON CONFLICT DO NOTHING RETURNING id'}),
  l AS (
    INSERT INTO @letters AS l (${letterNames.join(', ')})
    SELECT ${letterNames.map((name) => valueOf(name, `x.${name}`)).join(', ')}
    FROM ${source} WHERE ${isPlain ? 'x.id IS NOT NULL' : newOnly}
    RETURNING l.id, l.queue, NULL::int AS old_code, ${codeOf('l')} AS new_code, NULL::text AS old_group,
      l.fingerprint AS new_group, NULL::text[] AS old_tags, l.tags AS new_tags, l.priority, l.retries, l.backoff_ms),
  ${countMoves({ from: 'l', actions, slot })}
  SELECT id FROM l${isPlain ? ' LIMIT 0' : ''}`
}

const statements = {
  plain: insertStatement(true, captured),
  add: insertStatement(false, captured),
  keep: insertStatement(false, `'{}'::int[]`),
}

type Send = (sql: string, values: unknown[]) => Promise<unknown[][]>

/** Inserts letters. Returns the ids that are new. `keep` adds nothing to the totals. */
export async function insertLetters(
  send: Send,
  all: readonly NewLetter[],
  counterSlot: number,
  mode: keyof typeof statements,
): Promise<Set<string>> {
  if (all.length === 0) return new Set()
  const rows = await send(statements[mode], [...bodyValues(all), ...letterValues(all), counterSlot])
  return new Set(rows.map(([id]) => id as string))
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
