import type { DeadStream } from './capture.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import { toTimestamp } from '../../letter/time.ts'
import { msOf, unseal, type Envelope } from './envelope.ts'
import { readStream } from '../stream.ts'

const streamType = 'application/x-protobuf;messageType=redrive.pipeline.v1.PipeStream'
const bytesType = 'application/octet-stream'

/** Where a record was found, for fields that it lacks. */
export interface Found {
  cluster: string
  node: string
  isQuarantine: boolean
}

/**
 * Converts a record of a DLQ or quarantine topic. A record without an envelope is stored unchanged.
 */
export function deadStreamOf(record: StoredRecord, found: Found): DeadStream {
  const envelope = unseal(record.value)
  const metadata = {
    dlqTopic: record.topic,
    dlqPartition: record.partition,
    dlqOffset: record.offset,
  }
  const deadKey = keyOf(record)
  if (!envelope) {
    const { cluster, node } = found
    return {
      deadKey,
      source: {
        kind: 'pipeline',
        cluster,
        node,
        topic: record.topic,
        partition: record.partition,
        offset: String(record.offset),
        streamId: '',
        hops: 0,
      },
      body: bodyOf(record.value, false),
      errorType: 'MALFORMED',
      message: `a record of ${record.topic} is not an envelope of a dead record, or is truncated`,
      retries: 0,
      firstFailedAt: toTimestamp(record.timestampMs),
      headers: textsOf(record.headers),
      quarantined: found.isQuarantine,
      metadata: { ...metadata, reprocessed: 0, envelope: false },
    }
  }
  const { message, value, isStream } = envelope
  const stream = isStream ? readStream(value) : undefined
  const failedMs = msOf(message.failedAt, record.timestampMs)
  const { graphId, originalKey, errorCode, errorStack } = message
  return {
    deadKey,
    source: {
      kind: 'pipeline',
      cluster: found.cluster,
      ...(graphId ? { graph: graphId } : {}),
      node: message.failedNodeId || found.node,
      topic: message.originalTopic,
      partition: message.originalPartition,
      offset: String(message.originalOffset),
      streamId: stream?.streamId ?? '',
      hops: stream?.hopCount ?? 0,
    },
    body: bodyOf(value, stream !== undefined),
    errorType: message.errorType,
    message: message.errorMessage,
    ...(errorCode ? { code: errorCode } : {}),
    ...(errorStack ? { stack: errorStack } : {}),
    retries: message.retryCount,
    firstFailedAt: toTimestamp(msOf(message.firstFailedAt, failedMs)),
    headers: headersOf(envelope),
    quarantined: message.quarantined || found.isQuarantine,
    metadata: {
      ...metadata,
      reprocessed: message.dlqReprocessCount,
      lastFailedAt: toTimestamp(failedMs),
      ...(originalKey ? { key: Buffer.from(originalKey).toString('base64') } : {}),
      ...(message.replayable === false ? { replayable: false } : {}),
    },
  }
}

/** Foreign records may have no key: they are identified by their offset. */
export function keyOf({ key, topic, partition, offset }: StoredRecord): string {
  return key && key.length > 0 ? key.toString('latin1') : `${topic}:${partition}:${offset}`
}

function bodyOf(value: Uint8Array, isStream: boolean): DeadStream['body'] {
  return {
    bytes: Uint8Array.from(value),
    size: value.byteLength,
    contentType: isStream ? streamType : bytesType,
  }
}

function headersOf({ message: { originalHeaders } }: Envelope): Record<string, string> {
  return textsOf(originalHeaders.map(({ name, value = null }) => [name, value] as const))
}

function textsOf(
  headers: readonly (readonly [Uint8Array, Uint8Array | null])[],
): Record<string, string> {
  const text = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString()
  return Object.fromEntries(headers.map(([name, value]) => [text(name), text(value)]))
}
