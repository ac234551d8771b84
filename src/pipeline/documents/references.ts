import { clone } from '@bufbuild/protobuf'
import type { DocumentStore } from './documents.ts'
import {
  PipeStreamSchema,
  type Document,
  type PipeStream,
} from '../proto/redrive/pipeline/v1/stream_pb.ts'

/**
 * The document of a stream, fetched if it travels by reference. Undefined if there is none, or no
 * document store.
 */
export async function documentOf(
  { content }: PipeStream,
  documents: DocumentStore | undefined,
): Promise<Document | undefined> {
  if (content.case === 'document') return content.value
  if (content.case === 'documentRef') return documents?.get(content.value)
  return undefined
}

/** Stores a document that is too large, and replaces it by a reference. Mutates the stream. */
export async function putAway(
  stream: PipeStream,
  documents: DocumentStore | undefined,
  maxInlineBytes: number,
): Promise<void> {
  const { content, streamId, metadata } = stream
  if (!documents || content.case !== 'document' || content.value.body.length <= maxInlineBytes)
    return
  const owner = JSON.stringify([metadata?.accountId ?? '', streamId])
  stream.content = { case: 'documentRef', value: await documents.put(content.value, owner) }
}

/**
 * The stream without its document. A reference is preserved, or created if possible: then the
 * record can be replayed.
 */
export async function withoutDocument(
  stream: PipeStream,
  documents: DocumentStore | undefined,
): Promise<{ stream: PipeStream; replayable: boolean }> {
  const bare = clone(PipeStreamSchema, stream)
  if (bare.content.case !== 'document') return { stream: bare, replayable: true }
  await putAway(bare, documents, -1)
  if (documents) return { stream: bare, replayable: true }
  bare.content = { case: undefined }
  return { stream: bare, replayable: false }
}
