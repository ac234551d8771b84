import type { StoredLetter } from '../../store.ts'
import { toText, type Reply } from '../../backends/redis/connection.ts'
import { at, columns, type Column, type Row } from '../rows/columns.ts'
import { decodeLetter, decodeOriginal, type LoadedLetter } from '../rows/decode.ts'
import { bytesCrcLength, originCrcLength } from './encode.ts'
import {
  byteNames,
  cells,
  doubleNames,
  doublesAt,
  fieldOfColumn,
  headerLength,
  lengthsAt,
  position,
} from './fields.ts'

/** The fields of a letter in a reply, in the order of `wholeFields`. A summary has fewer. */
export type Fields = (Buffer | null)[]

/** A letter in a reply of the script `fetch`. */
export interface Fetched {
  id: string
  fields: Fields
  /** The ids that the letter waits for. */
  waits: Reply[]
}

/** What an index tells about a letter whose row cannot be read. */
export interface Hint {
  queue?: string
  state?: number
}

const byteIndexes = byteNames.map((name) => at[cells[name]])
const doubleIndexes = doubleNames.map((name) => at[cells[name]])

const fieldIndexes = columns.flatMap((column) => {
  const place = position[fieldOfColumn[column] ?? '']
  return place === undefined ? [] : [{ index: at[column], place }]
})

const fieldIn = (fields: Fields, name: string): Buffer | null => fields[position[name]!] ?? null

/** A letter from its fields. `bytes` are those of the edit, if there was one. */
export function loadLetter(id: string, fields: Fields, hint: Hint = {}): LoadedLetter {
  const row: Row = columns.map(() => null)
  row[at.id] = id
  for (const { index, place } of fieldIndexes) row[index] = fields[place]?.toString() ?? null
  const queue = decodeRow(fieldIn(fields, 'r'), row)
  const origin = fieldIn(fields, 'o')?.toString() ?? null
  return {
    queue: queue ?? hint.queue ?? 'unreadable',
    row: queue === undefined ? unreadableRow(id, hint) : row,
    origin: origin === null ? null : origin.slice(originCrcLength),
    originCrc: origin === null ? 0 : Number.parseInt(origin.slice(0, originCrcLength), 16),
    ...decodeBytes(fieldIn(fields, row[at.edit] === null ? 'b' : 'eb')),
    ...(queue === undefined ? { problem: 'the row cannot be read' } : {}),
  }
}

/** Reads the cells into the row, and returns the queue. Undefined: the row cannot be read. */
function decodeRow(field: Buffer | null, row: Row): string | undefined {
  if (field === null || field.length < headerLength) return undefined
  let offset = 0
  for (const index of byteIndexes) {
    const value = field.readInt8(offset++)
    row[index] = value < 0 ? null : value
  }
  offset = doublesAt
  for (const index of doubleIndexes) {
    const value = field.readDoubleLE(offset)
    row[index] = Number.isNaN(value) ? null : value
    offset += 8
  }
  const group = headerLength + field.readUInt32LE(lengthsAt)
  const worker = group + field.readUInt32LE(lengthsAt + 4)
  row[at.fingerprint] = field.toString('utf8', headerLength, group)
  row[at.worker] = row[at.leased_until] === null ? null : field.toString('utf8', group, worker)
  return needed.every((index) => row[index] !== null) ? field.toString('utf8', worker) : undefined
}

const needed = (['state', 'priority', 'version', 'captured_at', 'updated_at'] as const).map(
  (name) => at[name],
)

/** A placeholder for a row that cannot be read. Its version is 0, which no letter has. */
function unreadableRow(id: string, { state = 4 }: Hint): Row {
  const known = { id, state, priority: 2, category: 9, severity: 1, recoverability: 3, policy: 0 }
  const none = { version: 0, epoch: 0, retries: 0, max_retries: 0, occurrences: 1, replays: 0 }
  const times = { backoff_ms: 0, updated_at: 0, captured_at: 0, omitted: 0, unmet: 0 }
  const values = { ...known, ...none, ...times, fingerprint: 'unreadable', history: '' }
  return columns.map((column) => (values as { [K in Column]?: number | string })[column] ?? null)
}

function decodeBytes(field: Buffer | null): Pick<LoadedLetter, 'bytes' | 'bytesCrc'> {
  if (field === null || field.length < bytesCrcLength) return { bytes: null, bytesCrc: 0 }
  return { bytes: new Uint8Array(field.subarray(bytesCrcLength)), bytesCrc: field.readUInt32LE() }
}

/** The letter with the payload as it was captured. */
export function loadOriginal(id: string, fields: Fields): LoadedLetter {
  return { ...loadLetter(id, fields), ...decodeBytes(fieldIn(fields, 'b')) }
}

/** A letter with what the store has about it. */
export function decodeStored({ id, fields, waits }: Fetched): StoredLetter {
  const letter = decodeLetter(loadLetter(id, fields))
  const waitsFor = waits.map(toText)
  const stored = { letter, ...(waitsFor.length > 0 ? { waitsFor } : {}) }
  if (fieldIn(fields, 'ed') === null) return stored
  const original = decodeOriginal(loadOriginal(id, fields))
  if (original) return { ...stored, original }
  const why = 'the captured payload cannot be read'
  letter.corrupt = letter.corrupt === undefined ? why : `${letter.corrupt}; ${why}`
  return stored
}
