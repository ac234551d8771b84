import type { OutgoingMessage } from '../../mailbox.ts'

type Packed = Omit<OutgoingMessage, 'id'>

/** The header of a packed message: this byte, and four bytes with the length of the JSON. */
const mark = 1
const headLength = 5

/** Packs a message: its properties as JSON, and the body. */
export function pack({ contentType, headers, replyTo, bytes }: Packed): Buffer {
  const about = Buffer.from(JSON.stringify({ contentType, headers, replyTo }))
  const packed = Buffer.allocUnsafe(headLength + about.length + bytes.length)
  packed.writeUInt8(mark, 0)
  packed.writeUInt32BE(about.length, 1)
  packed.set(about, headLength)
  packed.set(bytes, headLength + about.length)
  return packed
}

/** Unpacks a message. Other bytes are delivered unchanged: the receiver must handle them. */
export function unpack(packed: Buffer): Packed {
  const { buffer, byteOffset, length } = packed
  const bytesFrom = (start: number): Uint8Array =>
    new Uint8Array(buffer, byteOffset + start, length - start)
  const foreign: Packed = {
    bytes: bytesFrom(0),
    contentType: 'application/octet-stream',
    headers: {},
  }
  if (length < headLength || packed[0] !== mark) return foreign
  const start = headLength + packed.readUInt32BE(1)
  if (start > length) return foreign
  const about = aboutIn(packed.subarray(headLength, start))
  return about ? { ...about, bytes: bytesFrom(start) } : foreign
}

function aboutIn(json: Buffer): Omit<Packed, 'bytes'> | undefined {
  try {
    const { contentType, headers, replyTo } = JSON.parse(json.toString()) as Record<string, unknown>
    if (typeof contentType !== 'string' || !isHeaders(headers)) return undefined
    return typeof replyTo === 'string'
      ? { contentType, headers, replyTo }
      : { contentType, headers }
  } catch {
    return undefined
  }
}

function isHeaders(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((one) => typeof one === 'string')
}
