import { clone, create, fromBinary, toBinary, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import {
  HistoryEntrySchema,
  PipeStreamSchema,
  StreamErrorSchema,
  StreamMetadataSchema,
  type Document,
  type DocumentRef,
  type PipeStream,
} from './proto/redrive/pipeline/v1/stream_pb.ts'

/** Maximum length of the history of a stream. */
const maxHistory = 100
const maxTextLength = 2000

export type { Document, DocumentRef, PipeStream }

/** A stream of any sender. Undefined if the bytes are not a stream; a stream has at least an id. */
export function readStream(bytes: Uint8Array): PipeStream | undefined {
  try {
    const stream = fromBinary(PipeStreamSchema, bytes)
    return stream.streamId === '' ? undefined : stream
  } catch {
    return undefined
  }
}

export function writeStream(stream: PipeStream): Buffer {
  const bytes = toBinary(PipeStreamSchema, stream)
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export function aStream(init: MessageInitShape<typeof PipeStreamSchema>): PipeStream {
  return create(PipeStreamSchema, init)
}

export interface Happened {
  atMs: number
  node: string
  event: 'processed' | 'failed' | 'replayed'
  message?: string
}

/**
 * Adds an entry to the history of a stream. Mutates the stream. The first entry is kept when others
 * must be removed.
 */
export function log(stream: PipeStream, { atMs, node, event, message = '' }: Happened): void {
  const metadata = (stream.metadata ??= create(StreamMetadataSchema))
  const at = timestampFromMs(atMs)
  const text = message.slice(0, maxTextLength).toWellFormed()
  const { history } = metadata
  if (history.length >= maxHistory) history.splice(1, history.length - maxHistory + 1)
  history.push(create(HistoryEntrySchema, { at, nodeId: node, event, message: text }))
  if (event === 'failed')
    metadata.streamError = create(StreamErrorSchema, { nodeId: node, message: text, at })
}

/** The stream as it leaves a node: one hop further. A copy. */
export function passed(stream: PipeStream, node: string): PipeStream {
  const further = clone(PipeStreamSchema, stream)
  further.hopCount += 1
  further.processingPath.push(node)
  return further
}
