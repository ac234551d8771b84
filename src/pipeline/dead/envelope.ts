import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { createHash } from 'node:crypto'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import {
  DlqMessageSchema,
  HeaderSchema,
  type DlqMessage,
} from '../proto/redrive/pipeline/v1/dlq_pb.ts'

export type { DlqMessage }

/** A record that a node gives up on, and why. */
export interface DeadRecord {
  /** As stored in the input topic. */
  record: StoredRecord
  /** Whether the value is a stream at all. */
  isStream: boolean
  /** Replaces the value, if the value must not be stored. */
  value?: Uint8Array
  cluster: string
  graph: string
  node: string
  errorType: string
  message: string
  code?: string
  stack?: string
  failedMs: number
  /** Before any replay. */
  firstFailedMs: number
  /** Calls after the first one. */
  retries: number
  /** The number of earlier replays. */
  reprocessed: number
  quarantined: boolean
  replayable: boolean
}

/** An envelope of any sender, and the value in it, byte for byte. */
export interface Envelope {
  message: DlqMessage
  value: Uint8Array
  isStream: boolean
}

const streamField = 1
const rawField = 19
const maxMessage = 10_000
const maxStack = 20_000

/**
 * Wraps a dead record in an envelope. The value is copied unchanged, without decoding. It comes
 * last, so that a truncated envelope has no value and is recognised.
 */
export function seal(dead: DeadRecord): Buffer {
  const { record, value = record.value, isStream } = dead
  const message = create(DlqMessageSchema, {
    errorType: dead.errorType,
    errorMessage: dead.message.slice(0, maxMessage).toWellFormed(),
    failedAt: timestampFromMs(dead.failedMs),
    retryCount: dead.retries,
    failedNodeId: dead.node,
    originalTopic: record.topic,
    originalOffset: BigInt(record.offset),
    originalPartition: record.partition,
    dlqReprocessCount: dead.reprocessed,
    quarantined: dead.quarantined,
    ...(dead.quarantined ? { quarantinedAt: timestampFromMs(dead.failedMs) } : {}),
    firstFailedAt: timestampFromMs(dead.firstFailedMs),
    clusterId: dead.cluster,
    graphId: dead.graph,
    ...(record.key ? { originalKey: record.key } : {}),
    originalHeaders: record.headers.map(([name, text]) =>
      create(HeaderSchema, text ? { name, value: text } : { name }),
    ),
    originalTimestamp: timestampFromMs(record.timestampMs),
    errorStack: (dead.stack ?? '').slice(0, maxStack).toWellFormed(),
    errorCode: (dead.code ?? '').slice(0, 200).toWellFormed(),
    ...(dead.replayable ? {} : { replayable: false }),
  })
  const field = isStream ? streamField : rawField
  const last = new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(value).finish()
  return Buffer.concat([toBinary(DlqMessageSchema, message), last])
}

/**
 * Undefined if the bytes are not an envelope, or truncated. The stream in it is not decoded, and
 * `message` does not contain it.
 */
export function unseal(bytes: Uint8Array): Envelope | undefined {
  try {
    const { streams, rest } = parted(bytes)
    const message = fromBinary(DlqMessageSchema, rest)
    if (message.errorType === '' && message.failedNodeId === '') return undefined
    const { raw } = message
    const [stream] = streams
    const value = raw ?? (streams.length > 1 ? Buffer.concat(streams) : stream)
    return value && { message, value, isStream: raw === undefined }
  } catch {
    return undefined
  }
}

/** The same envelope, marked as quarantined: the last occurrence of a field counts. */
export function quarantined(bytes: Uint8Array, atMs: number): Buffer {
  const said = create(DlqMessageSchema, { quarantined: true, quarantinedAt: timestampFromMs(atMs) })
  return Buffer.concat([bytes, toBinary(DlqMessageSchema, said)])
}

/**
 * Separates the stream, unchanged, from all other fields. A stream that occurs several times is one
 * message in parts.
 */
function parted(bytes: Uint8Array): { streams: Uint8Array[]; rest: Uint8Array } {
  const streams: Uint8Array[] = []
  const rest: Uint8Array[] = []
  const reader = new BinaryReader(bytes)
  let restFrom = 0
  while (reader.pos < reader.len) {
    const from = reader.pos
    const [field, type] = reader.tag()
    if (field === streamField && type === WireType.LengthDelimited) {
      if (from > restFrom) rest.push(bytes.subarray(restFrom, from))
      streams.push(reader.bytes())
      restFrom = reader.pos
    } else reader.skip(type, field)
  }
  const last = bytes.subarray(restFrom)
  return { streams, rest: rest.length === 0 ? last : Buffer.concat([...rest, last]) }
}

/**
 * The key of a dead record in the DLQ topic. A record has the same key however often it is written:
 * a node that dies before its commit writes the same one again. A topic that was deleted and
 * recreated has other records at the same offsets; their timestamps distinguish them.
 */
export function keyOfDead({
  topic,
  partition,
  offset,
  timestampMs,
}: Pick<StoredRecord, 'topic' | 'partition' | 'offset' | 'timestampMs'>): Buffer {
  const hash = createHash('sha256')
    .update(JSON.stringify([topic, partition, offset, timestampMs]))
    .digest('hex')
  const variant = ((Number.parseInt(hash.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return Buffer.from(
    `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`,
  )
}

export function msOf(at: DlqMessage['failedAt'], otherwise: number): number {
  return at ? timestampMs(at) : otherwise
}
