import { readStream, type PipeStream } from './stream.ts'

/** A stream of a topic, decoded on demand. */
export interface Incoming {
  readonly streamId: string
  readonly hopCount: number
  readonly stream: PipeStream
  /** The document travels by reference. */
  readonly isElsewhere: boolean
}

/**
 * Undefined if the bytes are not a stream. A node may pass on or give up on a stream without
 * reading it, so not every record is decoded: it is enough to know that it could be. In doubt, it
 * is decoded.
 */
export function incoming(bytes: Buffer): Incoming | undefined {
  const seen: Seen = { streamId: '', hopCount: 0 }
  if (isPlain(bytes, 0, bytes.length, pipeStream, seen) && seen.streamId !== '')
    return new Outlined(bytes, seen)
  const stream = readStream(bytes)
  if (!stream) return undefined
  const { streamId, hopCount, content } = stream
  return { streamId, hopCount, stream, isElsewhere: content.case === 'documentRef' }
}

class Outlined implements Incoming {
  readonly streamId: string
  readonly hopCount: number
  readonly isElsewhere = false
  readonly #bytes: Buffer
  #stream: PipeStream | undefined

  constructor(bytes: Buffer, { streamId, hopCount }: Seen) {
    this.streamId = streamId
    this.hopCount = hopCount
    this.#bytes = bytes
  }

  get stream(): PipeStream {
    return (this.#stream ??= readStream(this.#bytes)!)
  }
}

interface Seen {
  streamId: string
  hopCount: number
}

/** The fields of a message by number: a string, bytes, a number, or another message. */
type Shape = Readonly<Record<number, 'text' | 'bytes' | 'number' | { shape: Shape }>>

const moment: Shape = { 1: 'number', 2: 'number' }
const entry: Shape = { 1: 'text', 2: 'text' }
const event: Shape = { 1: { shape: moment }, 2: 'text', 3: 'text', 4: 'text' }
const error: Shape = { 1: 'text', 2: 'text', 3: { shape: moment } }
const metadata: Shape = {
  1: 'text',
  2: 'text',
  3: { shape: event },
  4: { shape: error },
  5: { shape: entry },
}
const document: Shape = { 1: 'text', 2: 'bytes', 3: 'text', 4: { shape: entry } }
/** Without a reference to a document, which must be fetched. */
const pipeStream: Shape = {
  1: 'text',
  2: { shape: metadata },
  3: { shape: document },
  5: 'text',
  6: 'text',
  7: 'number',
  8: 'text',
  9: 'text',
}

/**
 * Whether the bytes are certainly such a message: with known fields only, small numbers, and ASCII
 * strings.
 */
function isPlain(bytes: Buffer, from: number, to: number, shape: Shape, seen?: Seen): boolean {
  let at = from
  while (at < to) {
    const tag = bytes[at++]!
    const kind = shape[tag >> 3]
    // Tags of more than one byte belong to unknown fields.
    if (tag > 0x7f || kind === undefined || (tag & 7) !== (kind === 'number' ? 0 : 2)) return false
    if (at >= to) return false
    let value = 0
    let shift = 0
    for (; at < to && shift < 28; shift += 7) {
      const byte = bytes[at++]!
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    if (shift >= 28 || bytes[at - 1]! > 0x7f) return false
    if (kind === 'number') {
      if (seen) seen.hopCount = value
      continue
    }
    const end = at + value
    if (end > to) return false
    if (kind === 'text') {
      for (let one = at; one < end; one++) if (bytes[one]! > 0x7f) return false
      if (seen && tag >> 3 === 1) seen.streamId = bytes.toString('latin1', at, end)
    } else if (kind !== 'bytes' && !isPlain(bytes, at, end, kind.shape)) return false
    at = end
  }
  return true
}
