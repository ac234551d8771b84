import { crc32 } from 'node:zlib'
import type { Argument } from '../../backends/redis/connection.ts'
import type { ColumnValues } from '../rows/change.ts'
import { at, columns, type Body, type Column, type Row } from '../rows/columns.ts'
import type { EncodedLetter } from '../rows/encode.ts'
import { defaults, fieldNames } from './fields.ts'

/** Hexadecimal digits of the checksum before an origin. */
export const originCrcLength = 8
/** Bytes of the checksum before a payload. */
export const bytesCrcLength = 4

const stored = columns.flatMap((column) => {
  const name = fieldNames[column]
  const value = (defaults as { [K in Column]?: number })[column] ?? null
  return name === undefined ? [] : [{ index: at[column], name, value }]
})

/** The fields of a letter for HSET: names and values in turn. */
export function encodeFields({ queue, row, body }: EncodedLetter): Argument[] {
  const fields: Argument[] = ['q', queue]
  for (const { index, name, value: absent } of stored) {
    const value = row[index]!
    if (value !== null && value !== absent) fields.push(name, String(value))
  }
  encodeIndexed(row, fields)
  fields.push('o', encodeOrigin(body), 'b', encodeBytes(body.bytes, body.bytesCrc))
  return fields
}

/** The forms of columns that indexes have. */
function encodeIndexed(row: Row, fields: Argument[]): void {
  const tags = row[at.tags] as string | null
  const dedupe = row[at.dedupe] as Buffer | null
  if (tags !== null) fields.push('tg', encodeTags(tags))
  if (dedupe !== null) fields.push('dk', dedupe.toString('base64url'))
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

/** New values of columns as fields to set (names and values in turn), and fields to clear. */
export function encodeValues(
  values: ColumnValues,
  bytes?: Uint8Array,
): { set: Argument[]; clear: string[] } {
  const set: Argument[] = []
  const clear: string[] = []
  for (const [column, value] of Object.entries(values)) {
    const name = fieldNames[column as Column]
    if (name === undefined || value === undefined) continue
    if (value === null) clear.push(name)
    else set.push(name, String(value))
    if (column !== 'tags') continue
    if (value === null) clear.push('tg')
    else set.push('tg', encodeTags(value as string))
  }
  if (bytes) set.push('eb', encodeBytes(bytes))
  return { set, clear }
}
