import { crc32 } from 'node:zlib'
import type { Argument } from '../../backends/redis/connection.ts'
import type { RowChange } from '../rows/change.ts'
import { at, columns, type Column, type Row } from '../rows/columns.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import {
  byteCells,
  cell,
  doubleCells,
  fieldOfColumn,
  headerLength,
  nullArgument,
  originAt,
} from './fields.ts'

const byteIndexes = byteCells.map((column) => at[column])
const doubleIndexes = doubleCells.map((column) => at[column])

const fieldIndexes = columns.flatMap((column) => {
  const name = fieldOfColumn[column]
  return name === undefined ? [] : [{ index: at[column], name }]
})

/** A letter for the scripts `add` and `keep`. */
export interface LetterRecord {
  id: string
  /** What the script decides by, as JSON, or empty. */
  extras: string
  letter: EncodedLetter
  /** The bytes of an edited payload. */
  edit?: Uint8Array | undefined
}

/**
 * Letters as one argument, since each argument in binary costs the client a write of its own. Each
 * letter has id, extras, row, body, the number of values that follow, and the names and values of
 * other fields in turn. The length of a string is in the four bytes before it.
 */
export function encodeLetters(records: readonly LetterRecord[]): Buffer {
  const parts = records.map(partsOf)
  const encoded = Buffer.allocUnsafe(parts.reduce((sum, { size }) => sum + size, 0))
  let offset = 0
  for (const part of parts) offset = writeLetter(encoded, offset, part)
  return encoded
}

/** What is written of a letter, and lengths in bytes. */
function partsOf({ id, extras, letter, edit }: LetterRecord) {
  const { row, queue, body } = letter
  const fields: Argument[] = []
  for (const { index, name } of fieldIndexes)
    if (row[index] !== null) fields.push(name, row[index] as string)
  const isIndexed = encodeIndexed(row, fields)
  if (edit) fields.push('eb', encodeBytes(edit))
  const text = (index: number): string => (row[index] as string | null) ?? ''
  const [group, policy, worker] = [at.fingerprint, at.policy_json, at.worker].map(text)
  const strings = group! + queue + policy! + worker! + text(at.history)
  const lengths = [worker!, body.origin, group!, queue, policy!].map((one) =>
    Buffer.byteLength(one),
  )
  const rowLength = headerLength + Buffer.byteLength(strings)
  const bodyLength = originAt + lengths[1]! + body.bytes.length
  const parts = isIndexed ? 2 : fields.length > 0 ? 1 : 0
  let size = 20 + Buffer.byteLength(id) + Buffer.byteLength(extras) + rowLength + bodyLength
  for (const field of fields) size += 4 + Buffer.byteLength(field)
  return { id, extras, row, body, fields, strings, lengths, rowLength, bodyLength, parts, size }
}

function writeLetter(encoded: Buffer, start: number, letter: ReturnType<typeof partsOf>): number {
  const { row, body, lengths, rowLength, bodyLength } = letter
  let offset = writeString(encoded, start, letter.id)
  offset = writeString(encoded, offset, letter.extras)
  const rowAt = encoded.writeUInt32LE(rowLength, offset)
  offset = rowAt
  for (const index of byteIndexes)
    offset = encoded.writeInt8((row[index] as number | null) ?? -1, offset)
  offset = encoded.writeInt8(letter.parts, offset)
  for (const index of doubleIndexes)
    offset = encoded.writeDoubleLE((row[index] as number | null) ?? -Infinity, offset)
  for (const length of lengths) offset = encoded.writeUInt32LE(length, offset)
  encoded.write(letter.strings, offset)
  offset = encoded.writeUInt32LE(bodyLength, rowAt + rowLength)
  offset = encoded.writeUInt32LE(body.originCrc, offset)
  offset = encoded.writeUInt32LE(body.bytesCrc, offset)
  offset += encoded.write(body.origin, offset)
  encoded.set(body.bytes, offset)
  offset = encoded.writeUInt32LE(letter.fields.length, offset + body.bytes.length)
  for (const field of letter.fields) offset = writeString(encoded, offset, field)
  return offset
}

function writeString(encoded: Buffer, offset: number, value: Argument): number {
  const start = offset + 4
  const length =
    typeof value === 'string' ? encoded.write(value, start) : value.copy(encoded, start)
  encoded.writeUInt32LE(length, offset)
  return start + length
}

/** Adds the forms of columns that indexes have. Returns whether the letter has any. */
function encodeIndexed(row: Row, fields: Argument[]): boolean {
  const tags = row[at.tags] as string | null
  const dedupe = row[at.dedupe] as Buffer | null
  if (tags !== null) fields.push('tg', encodeTags(tags))
  if (dedupe !== null) fields.push('dk', dedupe.toString('base64url'))
  const indexed = [tags, dedupe, row[at.lane], row[at.tenant], row[at.source_id]]
  return indexed.some((value) => value !== null)
}

/** Tags without duplicates, each with the number of its bytes and a colon before it. */
function encodeTags(json: string): string {
  const tags = (JSON.parse(json) as string[]).map((tag) => tag.toWellFormed())
  return [...new Set(tags)].map((tag) => `${Buffer.byteLength(tag)}:${tag}`).join('')
}

/** Bytes of the checksum before an edited payload. */
export const crcLength = 4

function encodeBytes(bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(bytes.length + crcLength)
  whole.writeUInt32LE(crc32(bytes))
  whole.set(bytes, crcLength)
  return whole
}

/** The short strings of a row, by the names that scripts use. */
const stringNames: { readonly [K in Column]?: string } = {
  fingerprint: 'g',
  worker: 'w',
  policy_json: 'y',
}

/**
 * A change as arguments: its shape (totals to add to, indexes of cells, the numbers of arguments
 * that follow), values of cells, short strings, fields to set (names and values in turn), and
 * fields to clear.
 */
export function encodeValues({ set: values, counts, bytes }: RowChange): Argument[] {
  let [cells, numbers] = ['', '']
  const [strings, set, clear]: [string[], Argument[], string[]] = [[], [], []]
  for (const column of Object.keys(values) as Column[]) {
    const value = values[column]
    const field = fieldOfColumn[column]
    if (value === undefined) continue
    if (stringNames[column] !== undefined) {
      if (value !== null || column === 'policy_json')
        strings.push(stringNames[column], (value as string | null) ?? '')
    } else if (cell[column] !== undefined) {
      cells += `${cell[column]} `
      numbers += `${(value as number | null) ?? nullArgument} `
    } else if (field !== undefined) {
      if (value === null) clear.push(field)
      else set.push(field, value as string)
    }
    if (column === 'tags') encodeTagsChange(value as string | null, strings, set, clear)
  }
  if (bytes) set.push('eb', encodeBytes(bytes))
  const shape = `${counts.join(' ')}|${cells}|${strings.length} ${set.length} ${clear.length}`
  return [shape, numbers, ...strings, ...set, ...clear]
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
