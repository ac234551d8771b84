import type { StoredLetter } from '../../store.ts'
import { toText } from '../../backends/redis/connection.ts'
import { columns, type Column, type Row } from '../rows/columns.ts'
import { decodeLetter, decodeOriginal, type LoadedLetter } from '../rows/decode.ts'
import type { Fetched } from './fetch-letters.ts'
import { bytesCrcLength, originCrcLength } from './encode.ts'
import { defaults, fieldNames, numberColumns, position } from './fields.ts'

/** The fields of a letter in a reply, in the order of `wholeFields`. A summary has fewer. */
export type Fields = (Buffer | null)[]

/** What an index tells about a letter whose row cannot be read. */
export interface Hint {
  queue?: string
  state?: number
}

interface Cell {
  position: number
  isNumber: boolean
  absent: number | null
}

const cells = columns.map((column): Cell | undefined => {
  const name = fieldNames[column]
  if (name === undefined) return undefined
  const isNumber = (numberColumns as readonly Column[]).includes(column)
  const absent = (defaults as { [K in Column]?: number })[column] ?? null
  return { position: position[name]!, isNumber, absent }
})

const needed = ['q', 's', 'p', 'c', 'y', 'v', 'g', 't', 'u'].map((name) => position[name]!)
const idIndex = columns.indexOf('id')

/** A letter from its fields. `bytes` are those of the edit, if there was one. */
export function loadLetter(id: string, fields: Fields, hint: Hint = {}): LoadedLetter {
  const row: Row = cells.map((cell) => (cell ? valueOf(cell, fields[cell.position]) : null))
  row[idIndex] = id
  const isReadable =
    needed.every((index) => fields[index]) && row.every((value) => !Number.isNaN(value))
  const origin = fields[position['o']!]?.toString() ?? null
  const edited = fields[position['eb']!] ?? null
  return {
    queue: isReadable ? fields[position['q']!]!.toString() : (hint.queue ?? 'unreadable'),
    row: isReadable ? row : unreadableRow(id, hint),
    origin: origin === null ? null : origin.slice(originCrcLength),
    originCrc: origin === null ? 0 : Number.parseInt(origin.slice(0, originCrcLength), 16),
    ...decodeBytes(fields[position['ed']!] ? edited : (fields[position['b']!] ?? null)),
    ...(isReadable ? {} : { problem: 'the row cannot be read' }),
  }
}

function valueOf({ isNumber, absent }: Cell, field: Buffer | null | undefined): number | string | null {
  if (field === null || field === undefined) return absent
  return isNumber ? decodeNumber(field) : field.toString()
}

/** NaN if it is not a number. */
function decodeNumber(field: Buffer): number {
  let value = 0
  for (const digit of field) {
    if (digit < 48 || digit > 57) return Number(field.toString() || NaN)
    value = value * 10 + digit - 48
  }
  return field.length === 0 ? NaN : value
}

/** A placeholder for a row that cannot be read. Its version is 0, which no letter has. */
function unreadableRow(id: string, { state = 4 }: Hint): Row {
  const known = { id, state, priority: 2, category: 9, severity: 1, recoverability: 3, policy: 0 }
  const none = { version: 0, max_retries: 0, updated_at: 0, captured_at: 0, history: '' }
  const values = { ...defaults, ...known, ...none, fingerprint: 'unreadable' }
  return columns.map((column) => (values as { [K in Column]?: number | string })[column] ?? null)
}

function decodeBytes(field: Buffer | null): Pick<LoadedLetter, 'bytes' | 'bytesCrc'> {
  if (field === null || field.length < bytesCrcLength) return { bytes: null, bytesCrc: 0 }
  return { bytes: new Uint8Array(field.subarray(bytesCrcLength)), bytesCrc: field.readUInt32LE() }
}

/** The letter with the payload as it was captured. */
export function loadOriginal(id: string, fields: Fields): LoadedLetter {
  return { ...loadLetter(id, fields), ...decodeBytes(fields[position['b']!] ?? null) }
}

/** A letter with what the store has about it. */
export function decodeStored({ id, fields, waits }: Fetched): StoredLetter {
  const letter = decodeLetter(loadLetter(id, fields))
  const waitsFor = waits.map(toText)
  const stored = { letter, ...(waitsFor.length > 0 ? { waitsFor } : {}) }
  if (!fields[position['ed']!]) return stored
  const original = decodeOriginal(loadOriginal(id, fields))
  if (original) return { ...stored, original }
  const why = 'the captured payload cannot be read'
  letter.corrupt = letter.corrupt === undefined ? why : `${letter.corrupt}; ${why}`
  return stored
}
