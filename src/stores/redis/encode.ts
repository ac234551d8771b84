import { crc32 } from 'node:zlib'
import type { Argument } from '../../backends/redis/connection.ts'
import type { ColumnValues } from '../rows/change.ts'
import { at, columns, type Body, type Column, type Row } from '../rows/columns.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import {
  byteNames,
  cellOfColumn,
  cells,
  doubleNames,
  doublesAt,
  fieldOfColumn,
  headerLength,
  lengthsAt,
  nullArgument,
} from './fields.ts'

/** Hexadecimal digits of the checksum before an origin. */
export const originCrcLength = 8
/** Bytes of the checksum before a payload. */
export const bytesCrcLength = 4

const byteIndexes = byteNames.map((name) => at[cells[name]])
const doubleIndexes = doubleNames.map((name) => at[cells[name]])

const fieldIndexes = columns.flatMap((column) => {
  const name = fieldOfColumn[column]
  return name === undefined ? [] : [{ index: at[column], name }]
})

/** The fields of a letter for HSET: names and values in turn. The first pair is the row. */
export function encodeFields({ queue, row, body }: EncodedLetter): Argument[] {
  const fields: Argument[] = []
  for (const { index, name } of fieldIndexes)
    if (row[index] !== null) fields.push(name, row[index] as string)
  const hasExtras = encodeExtras(row, fields)
  const bytes = encodeBytes(body.bytes, body.bytesCrc)
  return ['r', encodeRow(row, queue, hasExtras), 'o', encodeOrigin(body), 'b', bytes, ...fields]
}

/** See `byteNames` for the parts of a row. */
function encodeRow(row: Row, queue: string, hasExtras: boolean): Buffer {
  const group = row[at.fingerprint] as string
  const worker = (row[at.worker] as string | null) ?? ''
  const strings = group + worker + queue
  const encoded = Buffer.allocUnsafe(headerLength + Buffer.byteLength(strings))
  let offset = 0
  for (const index of byteIndexes)
    offset = encoded.writeInt8((row[index] as number | null) ?? -1, offset)
  encoded.writeInt8(hasExtras ? 1 : 0, offset)
  offset = doublesAt
  for (const index of doubleIndexes)
    offset = encoded.writeDoubleLE((row[index] as number | null) ?? NaN, offset)
  encoded.writeUInt32LE(Buffer.byteLength(group), lengthsAt)
  encoded.writeUInt32LE(Buffer.byteLength(worker), lengthsAt + 4)
  encoded.write(strings, headerLength)
  return encoded
}

/** Adds the forms of columns that indexes have. Returns whether the letter has extra fields. */
function encodeExtras(row: Row, fields: Argument[]): boolean {
  const tags = row[at.tags] as string | null
  const dedupe = row[at.dedupe] as Buffer | null
  if (tags !== null) fields.push('tg', encodeTags(tags))
  if (dedupe !== null) fields.push('dk', dedupe.toString('base64url'))
  const extras = [tags, dedupe, row[at.lane], row[at.tenant], row[at.source_id]]
  return extras.some((value) => value !== null)
}

/** Tags without duplicates, each with the number of its bytes and a colon before it. */
function encodeTags(json: string): string {
  const tags = (JSON.parse(json) as string[]).map((tag) => tag.toWellFormed())
  return [...new Set(tags)].map((tag) => `${Buffer.byteLength(tag)}:${tag}`).join('')
}

function encodeOrigin({ origin, originCrc }: Body): string {
  return originCrc.toString(16).padStart(originCrcLength, '0') + origin
}

export function encodeBytes(bytes: Uint8Array, crc = crc32(bytes)): Buffer {
  const whole = Buffer.allocUnsafe(bytes.length + bytesCrcLength)
  whole.writeUInt32LE(crc)
  whole.set(bytes, bytesCrcLength)
  return whole
}

/** The short strings of a row, by the names that scripts use. */
const stringNames: { readonly [K in Column]?: string } = { fingerprint: 'g', worker: 'w' }

/**
 * New values of columns as arguments: names and values of cells, the numbers of arguments that
 * follow, short strings, fields to set (names and values in turn), and fields to clear.
 */
export function encodeValues(values: ColumnValues, bytes?: Uint8Array): Argument[] {
  let [names, numbers] = ['', '']
  const [strings, set, clear]: [string[], Argument[], string[]] = [[], [], []]
  for (const [column, value] of Object.entries(values) as [Column, ColumnValues[Column]][]) {
    const cell = cellOfColumn[column]
    const field = fieldOfColumn[column]
    if (value === undefined) continue
    if (cell !== undefined) {
      names += `${cell} `
      numbers += `${(value as number | null) ?? nullArgument} `
    } else if (stringNames[column] !== undefined) {
      if (value !== null) strings.push(stringNames[column], value as string)
    } else if (field !== undefined) {
      if (value === null) clear.push(field)
      else set.push(field, value as string)
    }
    if (column === 'tags') encodeTagsChange(value as string | null, strings, set, clear)
  }
  if (bytes) set.push('eb', encodeBytes(bytes))
  const lengths = `${strings.length} ${set.length} ${clear.length}`
  return [names, numbers, lengths, ...strings, ...set, ...clear]
}

/** Tags are a string of the letter to scripts, and a field. */
function encodeTagsChange(
  tags: string | null,
  strings: string[],
  set: Argument[],
  clear: string[],
): void {
  const encoded = tags === null ? '' : encodeTags(tags)
  strings.push('tg', encoded)
  if (tags === null) clear.push('tg')
  else set.push('tg', encoded)
}
