import { isUtf8 } from 'node:buffer'
import type { Cells } from '../../backends/postgres/query.ts'
import { at, columns, type Column, type Row, type SqlValue } from '../rows/columns.ts'
import type { LoadedLetter } from '../rows/decode.ts'
import {
  fromJsonText,
  fromText,
  isListable,
  joinNumbers,
  joinTexts,
  splitTexts,
  toJsonText,
  toText,
} from './text.ts'

type NumberType = 'smallint' | 'integer' | 'bigint' | 'float8' | 'uuid' | 'boolean'

/** The types of the columns that are sent as arrays; all others are text. */
const numberTypes: { [name: string]: NumberType } = {
  ...typesOf('smallint', 'state priority category severity recoverability policy reason wait'),
  ...typesOf('smallint', 'archived_from'),
  ...typesOf('integer', 'occurrences replays omitted unmet queue'),
  ...typesOf('bigint', 'version epoch retries updated_at retry_at settled_at expires_at'),
  ...typesOf('bigint', 'budget_since deferred_since due_at leased_until captured_at size'),
  ...typesOf('bigint', 'origin_crc bytes_crc edit_crc lease_ms'),
  ...typesOf('float8', 'max_retries backoff_ms'),
  id: 'uuid',
  depended: 'boolean',
}

function typesOf(type: NumberType, names: string): { [name: string]: NumberType } {
  return Object.fromEntries(names.split(' ').map((name) => [name, type]))
}

/** The type of a column, as a parameter that `encodeValue` made. */
export const typeOf = (column: string): string => numberTypes[column] ?? 'text'

/** SQL for the value of a column from a parameter. */
export function valueOf(column: string, source: string): string {
  if (column === 'dedupe') return `decode(${source}, 'hex')`
  if (column === 'bytes') return `decode(${source}, 'base64')`
  if (column !== 'tags') return source
  return `CASE WHEN ${source} IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(${source}::json)) END`
}

/** Columns with names, which are escaped. */
const names = new Set<string>(['fingerprint', 'lane', 'tenant', 'source_id'])

/** A value of a column before it is encoded. */
export type SentValue = SqlValue | boolean

/** A value as it is sent. */
export function encodeValue(column: string, value: SentValue): number | string | boolean | null {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value !== 'string')
    return Buffer.from(value).toString(column === 'bytes' ? 'base64' : 'hex')
  if (names.has(column)) return toText(value)
  if (column === 'worker') return toJsonText(value)
  return column === 'tags' ? JSON.stringify((JSON.parse(value) as string[]).map(toText)) : value
}

/** SQL for columns of a batch as a table. By default the first parameters are its columns. */
export function tableOf(
  names: readonly string[],
  alias: string,
  place: (name: string) => number = (name) => names.indexOf(name) + 1,
  withOrdinality = false,
): string {
  const arrays = names.map((name) => {
    const type = arrayType(name)
    return type ? `$${place(name)}::${type}[]` : splitTexts(`$${place(name)}`)
  })
  const ordinality = withOrdinality ? ' WITH ORDINALITY' : ''
  const all = withOrdinality ? [...names, 'n'] : names
  return `unnest(${arrays.join(', ')})${ordinality} AS ${alias}(${all.join(', ')})`
}

/** Columns of guards have the type of the column that they are compared with. */
const arrayType = (name: string): NumberType | undefined => numberTypes[name.replace('guard_', '')]

/** The parameter of a column of a batch. */
export function joinColumn<T>(
  name: string,
  items: readonly T[],
  value: (item: T) => SentValue,
): string | null {
  const encoded = isSentAsIs(name) ? value : (item: T) => encodeValue(name, value(item))
  return arrayType(name)
    ? joinNumbers(items, encoded as (item: T) => number | string | boolean | null)
    : joinTexts(items, encoded as (item: T) => string | null)
}

const isSentAsIs = (column: string): boolean =>
  !names.has(column) && !['worker', 'tags', 'dedupe', 'bytes'].includes(column)

/**
 * SQL for what a letter is counted by, except its queue: see `cellOf` in `rows/codes.ts`. With
 * `state`, as if it were in that state.
 */
export const codeOf = (alias: string, state = `${alias}.state`): string =>
  `(${state} * 512 + ${alias}.category * 32 + ${alias}.priority * 8 + ${alias}.policy)`

/** SQL for whether a letter is resolved, or archived from that state. */
export const isDone = (alias: string): string =>
  `(${alias}.state = 2 OR ${alias}.state = 5 AND coalesce(${alias}.archived_from = 2, false))`

/** Which parts of a letter are read: those in lists, all, or all as captured. */
export type Extent = 'summary' | 'whole' | 'captured'

/** Columns that only the server needs. */
const unread = new Set<Column>(['wait', 'due_at', 'unmet', 'source_id', 'dedupe'])
const read = columns.filter((column) => !unread.has(column))
const positions = read.map((column) => at[column])
const textPositions = [at.fingerprint, at.lane, at.tenant]

/** The columns of a letter that `loadLetter` reads. */
export const readColumns = (alias: string): string =>
  [...read, 'queue'].map((column) => `${alias}.${column}`).join(', ')

/** The columns that `loadLetter` reads, for letters and bodies with these aliases. */
export function loadedColumns(letter: string, body: string, extent: Extent): string {
  const own = readColumns(letter)
  const parts = ['origin', 'origin_crc']
  if (extent !== 'summary') parts.push('payload', 'bytes', 'bytes_crc')
  if (extent === 'whole') parts.push('edit', 'edit_crc')
  return [own, ...parts.map((column) => `${body}.${column}`)].join(', ')
}

/** The queue number of a row that was selected by `loadedColumns`. */
export const queueIn = (cells: Cells, first = 0): number => cells[first + read.length] as number

const encoder = new TextEncoder()
const emptyRow: Row = columns.map(() => null)

/** A letter that was selected by `loadedColumns`, from the cell `first` on. */
export function loadLetter(cells: Cells, queue: string, first = 0): LoadedLetter {
  const row = emptyRow.slice()
  for (let index = 0; index < positions.length; index++)
    row[positions[index]!] = cells[first + index] as SqlValue
  for (const position of textPositions) {
    const text = row[position]
    if (typeof text === 'string') row[position] = fromText(text)
  }
  if (row[at.worker] !== null) row[at.worker] = fromJsonText(row[at.worker] as string)
  const tags = row[at.tags] as unknown as string[] | null
  if (tags) row[at.tags] = JSON.stringify(tags.map(fromText))
  const body = first + read.length + 1
  const [origin, payload, edit] = [cells[body], cells[body + 2], cells[body + 5]]
  const captured = typeof payload === 'string' ? encoder.encode(payload) : (cells[body + 3] ?? null)
  return {
    queue,
    row,
    origin: origin === '' ? null : (origin as string | null),
    originCrc: cells[body + 1] as number,
    bytes: (edit ?? captured) as Uint8Array | null,
    bytesCrc: (edit ? cells[body + 6] : cells[body + 4]) as number,
  }
}

/** Payload bytes as text, if they are UTF-8 that a list can hold. */
export function textOf(bytes: Uint8Array): string | null {
  if (!isUtf8(bytes) || !isListable(bytes)) return null
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
