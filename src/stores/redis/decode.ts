import type { StoredLetter } from '../../store.ts'
import { toText, type Reply } from '../../backends/redis/connection.ts'
import { at, columns, type Column, type Row } from '../rows/columns.ts'
import { decodeLetter, decodeOriginal, type LoadedLetter } from '../rows/decode.ts'
import { crcLength } from './encode.ts'
import {
  byteCells,
  doubleCells,
  doublesAt,
  fieldOfColumn,
  headerLength,
  kindAt,
  lengthsAt,
  originAt,
  position,
} from './fields.ts'

/** A letter in a reply: row, body, and the fields of `wholeFields`. A summary has fewer. */
export type Parts = [row: Buffer | null, body: Buffer | null, fields: (Buffer | null)[] | null]

/** A letter in a reply of the script `fetch`. */
export interface Fetched {
  id: string
  parts: Parts
  /** The ids that the letter waits for. */
  waits: Reply[]
}

/** What an index tells about a letter whose row cannot be read. */
export interface Hint {
  queue?: string
  state?: number
}

const byteIndexes = byteCells.map((column) => at[column])
const doubleIndexes = doubleCells.map((column) => at[column])

const fieldIndexes = columns.flatMap((column) => {
  const place = position[fieldOfColumn[column] ?? '']
  return place === undefined ? [] : [{ index: at[column], place }]
})

/** A letter from its parts. `bytes` are those of the edit, if there was one. */
export function loadLetter(id: string, parts: Parts, hint: Hint = {}): LoadedLetter {
  const [field, , fields] = parts
  const row: Row = columns.map(() => null)
  row[at.id] = id
  if (fields)
    for (const { index, place } of fieldIndexes) row[index] = fields[place]?.toString() ?? null
  const queue = decodeRow(field, row)
  const loaded = {
    queue: queue ?? hint.queue ?? 'unreadable',
    row: queue === undefined ? unreadableRow(id, hint) : row,
    ...decodeBody(parts),
    ...(queue === undefined ? { problem: 'the row cannot be read' } : {}),
  }
  return row[at.edit] === null ? loaded : { ...loaded, ...decodeEdit(fields) }
}

/** Reads the cells and strings into the row, and returns the queue. Undefined: it is unreadable. */
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
    row[index] = value === -Infinity ? null : value
    offset += 8
  }
  const group = field.readUInt32LE(kindAt)
  const queue = group + field.readUInt32LE(kindAt + 4)
  const policy = queue + field.readUInt32LE(kindAt + 8)
  const worker = policy + field.readUInt32LE(lengthsAt)
  const slice = slicer(field.subarray(headerLength))
  row[at.fingerprint] = slice(0, group)
  row[at.policy_json] = queue === policy ? null : slice(queue, policy)
  row[at.worker] = row[at.leased_until] === null ? null : slice(policy, worker)
  row[at.history] = slice(worker)
  return needed.every((index) => row[index] !== null) ? slice(group, queue) : undefined
}

/** Strings by their bytes. ASCII, as most are, is decoded once. */
function slicer(bytes: Buffer): (start: number, end?: number) => string {
  const text = bytes.toString()
  if (text.length === bytes.length) return (start, end) => text.slice(start, end)
  return (start, end) => bytes.toString('utf8', start, end)
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

type Body = Pick<LoadedLetter, 'origin' | 'originCrc' | 'bytes' | 'bytesCrc'>

/** The origin, and the payload as it was captured. */
function decodeBody([row, body]: Parts): Body {
  const end = originAt + (row && row.length >= headerLength ? row.readUInt32LE(lengthsAt + 4) : 0)
  if (body === null || body.length < end)
    return { origin: null, originCrc: 0, bytes: null, bytesCrc: 0 }
  return {
    origin: body.toString('utf8', originAt, end),
    originCrc: body.readUInt32LE(),
    bytes: new Uint8Array(body.subarray(end)),
    bytesCrc: body.readUInt32LE(4),
  }
}

/** The payload of the newest edit. */
function decodeEdit(fields: Parts[2]): Pick<LoadedLetter, 'bytes' | 'bytesCrc'> {
  const field = fields?.[position['eb']!] ?? null
  if (field === null || field.length < crcLength) return { bytes: null, bytesCrc: 0 }
  return { bytes: new Uint8Array(field.subarray(crcLength)), bytesCrc: field.readUInt32LE() }
}

/** The letter with the payload as it was captured. */
export function loadOriginal(id: string, parts: Parts): LoadedLetter {
  return { ...loadLetter(id, parts), ...decodeBody(parts) }
}

/** A letter with what the store has about it. */
export function decodeStored({ id, parts, waits }: Fetched): StoredLetter {
  const letter = decodeLetter(loadLetter(id, parts))
  const waitsFor = waits.map(toText)
  const stored = { letter, ...(waitsFor.length > 0 ? { waitsFor } : {}) }
  if (!parts[2]?.[position['ed']!]) return stored
  const original = decodeOriginal(loadOriginal(id, parts))
  if (original) return { ...stored, original }
  const why = 'the captured payload cannot be read'
  letter.corrupt = letter.corrupt === undefined ? why : `${letter.corrupt}; ${why}`
  return stored
}
