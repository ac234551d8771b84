import { dueOf } from '../rows/due.ts'
import { crc32 } from 'node:zlib'
import { isActiveCode, retrying, states, wait } from '../rows/codes.ts'
import type { LoadedLetter } from '../rows/form.ts'
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

/** A letter in the database, decoded. */
export interface Entry {
  row: Row
  queue: number
  /** Its wait state: see `wait` in `rows/codes.ts`. */
  wait: number | null
  /** The size of the current payload in bytes. */
  size: number
  /** Whether the checksum of the row is correct. */
  sound: boolean
}

/** The columns of an entry, for a table or alias. */
export function entryColumns(table: string): string {
  return `${rowColumns}, queue, wait, size`
    .split(', ')
    .map((column) => `${table}.${column}`)
    .join(', ')
}

export const entryWidth = rowWidth + 3

/** Positions of the columns with names: id, reason, fingerprint, worker, lane, tenant. */
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

/** The values of a row in the order of `rowColumns`. */
export function cellsOf(row: Row): SqlValue[] {
  const values = valuesOf(row)
  for (const at of named) {
    const text = values[at]
    if (typeof text === 'string') values[at] = toText(text)
  }
  return values
}

/**
 * The checksum of a row. Claims and renewals are single statements, and Postgres has no CRC-32: the
 * checksum covers the columns that they do not change.
 */
export function sealOf(row: Row): number {
  return crc32(
    `${row.id}|${row.priority}|${row.category}|${row.policy}|${row.reason}|${row.fingerprint}|${row.backoffMs}|` +
      `${row.settledAt}|${row.expiresAt}|${row.deadLetteredAt}|${row.lane}|${row.tenant}|${row.dependent}|${row.tagged}|${row.rest}`,
  )
}

/**
 * The row with its checksum. The checksum of a corrupt row stays wrong, so that a write does not
 * hide the damage.
 */
export function withChecksum(row: Row, sound: boolean): Row {
  return { ...row, crc: sound ? sealOf(row) : ~sealOf(row) >>> 0 }
}

/**
 * The wait state of a letter, except for lane and dependencies: `held` says that one of them holds
 * it.
 */
export function waitOf(row: Row, held: boolean): number | null {
  if (dueOf(row) === null) return null
  if (!isActiveCode(row.state)) return wait.resting
  if (row.state === retrying) return wait.leased
  return held ? wait.held : wait.ready
}

/** Which parts of a letter are read: those in lists, all, or all as captured. */
export type Extent = 'summary' | 'whole' | 'captured'

/** The separator of history entries. JSON never contains this character unescaped. */
const separator = '\u001e'

/**
 * The columns after those of the entry, as `keptOf` reads them, for letters `l` with bodies `b`.
 */
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
 * The tables for `bodyColumns`. `ids` is SQL for the list of ids: with partitions by month, other
 * months are not read.
 */
export function bodyTables(extent: Extent, ids: string): string {
  const bodies = `LEFT JOIN @bodies b ON b.id = l.id AND b.id = ANY(${ids})`
  return extent === 'whole'
    ? `${bodies} LEFT JOIN @edits e ON e.id = l.id AND e.id = ANY(${ids}) AND left(l.rest, 11) = '{"payload":'`
    : bodies
}

/** A letter in the form that `rows/unpack.ts` reads. */
export function keptOf(entry: Entry, queue: string, body: Cells): LoadedLetter {
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
    origin === null ? 'its body is missing' : null,
  ]
}
