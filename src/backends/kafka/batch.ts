import { crc32c, Writer, type MessageRecord } from '@platformatic/kafka'

/** Whose batch it is, and which of theirs. */
export interface Sent {
  producerId: bigint
  producerEpoch: number
  firstSequence: number
  isTransactional: boolean
}

type Bytes = Buffer | null | undefined

/** Where parts of a batch stand in it. */
const at = {
  length: 8,
  afterLength: 12,
  version: 16,
  checksum: 17,
  attributes: 21,
  lastRecord: 23,
  firstTime: 27,
  lastTime: 35,
  producerId: 43,
  producerEpoch: 51,
  firstSequence: 53,
  count: 57,
  records: 61,
} as const
const version = 2
/** What the attributes of a batch say: its times are the broker's; it belongs to a transaction; it is the broker's own, and says how one ended. */
export const attribute = { brokersTime: 0x08, transactional: 0x10, control: 0x20 } as const

/**
 * Records as a topic keeps them, in one piece of memory. The client's own way makes dozens of objects of each record, and takes several
 * times as long. What has no time of its own has that of the first record, and that one has it.
 */
export function batchOf(records: readonly MessageRecord[], sent: Sent): Buffer {
  const first = records[0]?.timestamp ?? 0n
  const sizes = new Int32Array(records.length)
  let last = first
  let size: number = at.records
  for (let n = 0; n < records.length; n++) {
    const record = records[n]!
    const { timestamp = first } = record
    if (timestamp > last) last = timestamp
    sizes[n] = sizeOfRecord(record, n, afterMs(record, first))
    size += sizeOfVarint(sizes[n]!) + sizes[n]!
  }
  const bytes = Buffer.allocUnsafe(size)
  let end: number = at.records
  for (let n = 0; n < records.length; n++) {
    end = putVarint(bytes, end, sizes[n]!)
    end = putRecord(bytes, end, records[n]!, n, afterMs(records[n]!, first))
  }
  bytes.fill(0, 0, at.records)
  bytes.writeInt32BE(size - at.afterLength, at.length)
  bytes.writeInt8(version, at.version)
  bytes.writeInt16BE(sent.isTransactional ? attribute.transactional : 0, at.attributes)
  bytes.writeInt32BE(records.length - 1, at.lastRecord)
  bytes.writeBigInt64BE(first, at.firstTime)
  bytes.writeBigInt64BE(last, at.lastTime)
  bytes.writeBigInt64BE(sent.producerId, at.producerId)
  bytes.writeInt16BE(sent.producerEpoch, at.producerEpoch)
  bytes.writeInt32BE(sent.firstSequence, at.firstSequence)
  bytes.writeInt32BE(records.length, at.count)
  bytes.writeUInt32BE(checksumOf(bytes.subarray(at.attributes)), at.checksum)
  return bytes
}

function afterMs({ timestamp }: MessageRecord, first: bigint): number {
  return timestamp === undefined || timestamp === first ? 0 : Number(timestamp - first)
}

/** The client copies what does not come in one of its own buffers. */
function checksumOf(bytes: Buffer): number {
  return crc32c(Writer.create().append(bytes).dynamicBuffer)
}

function sizeOfRecord({ key, value, headers }: MessageRecord, n: number, ms: number): number {
  let size = 1 + sizeOfVarint(ms) + sizeOfVarint(n) + sizeOfBytes(key) + sizeOfBytes(value)
  size += sizeOfVarint(headers?.size ?? 0)
  if (headers) for (const [name, text] of headers) size += sizeOfBytes(name) + sizeOfBytes(text)
  return size
}

function putRecord(
  bytes: Buffer,
  from: number,
  { key, value, headers }: MessageRecord,
  n: number,
  ms: number,
): number {
  bytes[from] = 0
  let end = putVarint(bytes, from + 1, ms)
  end = putVarint(bytes, end, n)
  end = putBytes(bytes, end, key)
  end = putBytes(bytes, end, value)
  end = putVarint(bytes, end, headers?.size ?? 0)
  if (headers)
    for (const [name, text] of headers) end = putBytes(bytes, putBytes(bytes, end, name), text)
  return end
}

function sizeOfBytes(some: Bytes): number {
  return some ? sizeOfVarint(some.length) + some.length : 1
}

/** None at all is not the same as none in number: its length is -1. */
function putBytes(bytes: Buffer, from: number, some: Bytes): number {
  if (!some) return putVarint(bytes, from, -1)
  const start = putVarint(bytes, from, some.length)
  bytes.set(some, start)
  return start + some.length
}

/** Numbers near zero are short, on both sides of it. */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value
}

function sizeOfVarint(value: number): number {
  let size = 1
  for (let left = zigzag(value); left > 0x7f; left = Math.floor(left / 128)) size += 1
  return size
}

/** Seven bits with each byte, the lowest first. */
function putVarint(bytes: Buffer, from: number, value: number): number {
  let end = from
  let left = zigzag(value)
  for (; left > 0x7f; left = Math.floor(left / 128)) bytes[end++] = (left % 128) | 0x80
  bytes[end++] = left
  return end
}
