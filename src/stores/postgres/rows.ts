import { dueOf } from '../rows/due.ts'
import { crc32 } from 'node:zlib'
import { isActiveCode, retrying, states, wait } from '../rows/codes.ts'
import type { KeptLetter } from '../rows/form.ts'
import {
  rowColumns,
  rowOf,
  rowWidth,
  seal,
  valuesOf,
  type Row,
  type SqlValue,
} from '../rows/row.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import { fromText, toText } from './text.ts'

/** A letter in the database, as the driver works on it. */
export interface Entry {
  row: Row
  queue: number
  /** Where it waits. See `wait` in `kept/codes.ts`. */
  wait: number | null
  /** Bytes of its payload as it now is. */
  size: number
  /** Whether the row is as it was written. */
  sound: boolean
}

/** The columns of an entry, of the table or alias given. */
export function entryColumns(table: string): string {
  return `${rowColumns}, queue, wait, size`
    .split(', ')
    .map((column) => `${table}.${column}`)
    .join(', ')
}

export const entryWidth = rowWidth + 3

/** Places of the columns that hold names: id, reason, fingerprint, worker, lane, tenant. */
const named = [0, 5, 6, 16, 18, 19]

export function entryOf(cells: Cells): Entry {
  const values = cells.slice(0, rowWidth) as SqlValue[]
  for (const at of named) {
    const text = values[at]
    if (typeof text === 'string') values[at] = fromText(text)
  }
  const row = rowOf(values)
  const [queue, place, size] = cells.slice(rowWidth) as [number, number | null, number]
  return { row, queue, wait: place, size, sound: row.crc === sealOf(row) && row.state in states }
}

/** The values of a row as they are written, in the order of `rowColumns`. */
export function cellsOf(row: Row): SqlValue[] {
  const values = valuesOf(row)
  for (const at of named) {
    const text = values[at]
    if (typeof text === 'string') values[at] = toText(text)
  }
  return values
}

/**
 * The checksum of a row in this database. Claims and renewals are single statements, and Postgres has no CRC-32: it covers
 * what they leave alone.
 */
export function sealOf(row: Row): number {
  return crc32(
    `${row.id}|${row.priority}|${row.category}|${row.policy}|${row.reason}|${row.fingerprint}|${row.backoffMs}|` +
      `${row.settledAt}|${row.expiresAt}|${row.deadLetteredAt}|${row.lane}|${row.tenant}|${row.dependent}|${row.tagged}|${row.rest}`,
  )
}

/** The row with the checksum that it must carry. One that was not sound is never made good by writing over it. */
export function sealed(row: Row, sound: boolean): Row {
  return { ...row, crc: sound ? sealOf(row) : ~sealOf(row) >>> 0 }
}

/** Where a letter waits, lane and dependencies aside: `held` says that one of them keeps it. */
export function waitOf(row: Row, held: boolean): number | null {
  if (dueOf(row) === null) return null
  if (!isActiveCode(row.state)) return wait.resting
  if (row.state === retrying) return wait.leased
  return held ? wait.held : wait.ready
}

/** How much of a letter is read: what lists show, all of it, or all of it as it was captured. */
export type Extent = 'summary' | 'whole' | 'captured'

/** What parts entries of a history in one text. JSON has no such character unescaped. */
const separator = '\u001e'

/** The columns behind those of the entry that `keptOf` reads, for letters of `l` with bodies of `b`. */
export function bodyColumns(extent: Extent): string {
  if (extent === 'summary') return 'b.origin, b.origin_crc'
  const captured = 'b.origin, b.origin_crc, b.bytes, b.bytes_crc'
  if (extent === 'captured') return captured
  return `${captured},
    CASE WHEN l.entries - l.omitted > CASE WHEN left(b.origin, 9) = '{"entry":' THEN 1 ELSE 0 END THEN
      (SELECT string_agg(h.entry, chr(30) ORDER BY h.n) FROM @history h WHERE h.id = l.id) END,
    e.bytes, e.bytes_crc`
}

/**
 * What `bodyColumns` reads from, after letters. `ids` is the list of their ids, in SQL: where letters are kept by month, the others are
 * not looked at.
 */
export function bodyTables(extent: Extent, ids: string): string {
  const bodies = `LEFT JOIN @bodies b ON b.id = l.id AND b.id = ANY(${ids})`
  return extent === 'whole'
    ? `${bodies} LEFT JOIN @edits e ON e.id = l.id AND e.id = ANY(${ids}) AND left(l.rest, 11) = '{"payload":'`
    : bodies
}

/** A letter in the form in which `kept/unpack.ts` takes it. */
export function keptOf(entry: Entry, queue: string, body: Cells): KeptLetter {
  const [origin, originCrc, bytes, bytesCrc, history, edit, editCrc] = body as [
    string | null,
    number,
    Uint8Array | null | undefined,
    number | undefined,
    string | null | undefined,
    Uint8Array | null | undefined,
    number | null | undefined,
  ]
  const crc = seal(entry.row)
  const row = { ...entry.row, crc: entry.sound ? crc : ~crc >>> 0 }
  return [
    valuesOf(row),
    queue,
    origin,
    originCrc,
    edit ?? bytes ?? null,
    edit ? editCrc! : (bytesCrc ?? 0),
    history ? history.split(separator) : [],
    origin === null ? 'its body is gone' : null,
  ]
}
