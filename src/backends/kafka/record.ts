import type { fetchV13 } from '@platformatic/kafka'

/** A partition of a topic. */
export interface TopicPartition {
  topic: string
  partition: number
}

/** A key for maps and sets of partitions. */
export function partitionKey({ topic, partition }: TopicPartition): string {
  return `${topic}:${partition}`
}

/** A record that was read from a topic. */
export interface StoredRecord extends TopicPartition {
  offset: number
  timestampMs: number
  key: Buffer | undefined
  /** Empty for a tombstone. */
  value: Buffer
  /** The record is a tombstone: its value is null, which differs from empty. */
  isNull?: true
  headers: Headers
  /** The timestamp is when the broker wrote the record (LogAppendTime), not its creation time. */
  isAppendTime?: true
}

/** In order. A name can occur several times, and a value can be null, which differs from empty. */
export type Headers = readonly (readonly [name: Buffer, value: Buffer | null])[]

/** A record to send. */
export interface NewRecord {
  /** Null: a tombstone, by which a compacted topic removes the records with this key. */
  value: Buffer | null
  /** Names are compared by identity: a name that occurs twice has two buffers. */
  headers: Map<Buffer, Buffer | null>
  key?: Buffer
}

/** The size of a record as the broker counts it, approximately. */
export function recordSize({ value, headers, key }: NewRecord): number {
  let size = (value?.byteLength ?? 0) + (key?.byteLength ?? 0) + 70
  for (const [name, header] of headers) size += name.byteLength + (header?.byteLength ?? 0) + 10
  return size
}

type FetchResponse = ReturnType<typeof fetchV13.parseResponse>
type Records = FetchResponse['responses'][number]['partitions'][number]['records']
export type RecordBatch = NonNullable<Records>[number]

/** Bits in the attributes of a batch. */
export const batchBits = { appendTime: 0x08, transactional: 0x10, control: 0x20 } as const

/** The end of a transaction, if this is the control batch that the broker writes for it. */
export function readTransactionEnd(batch: RecordBatch): 'commit' | 'abort' | undefined {
  if (!(batch.attributes & batchBits.control)) return undefined
  const type = batch.records[0]?.key?.readInt16BE(2)
  return type === 1 ? 'commit' : type === 0 ? 'abort' : undefined
}

const empty = Buffer.alloc(0)

/** Converts the records of a batch from the offset `from` on. */
export function readBatch(
  { topic, partition }: TopicPartition,
  batch: RecordBatch,
  from: number,
): StoredRecord[] {
  const records: StoredRecord[] = []
  const firstOffset = Number(batch.firstOffset)
  const firstMs = Number(batch.firstTimestamp)
  const isAppendTime = Boolean(batch.attributes & batchBits.appendTime)
  for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
    const offset = firstOffset + offsetDelta
    if (offset < from) continue
    const ms = isAppendTime ? Number(batch.maxTimestamp) : firstMs + Number(timestampDelta)
    const record: StoredRecord = {
      topic,
      partition,
      offset,
      timestampMs: Math.max(0, ms),
      key: key ?? undefined,
      value: value ?? empty,
      headers: headers.map(([name, header]) => [name ?? empty, header ?? null]),
    }
    if (!value) record.isNull = true
    if (isAppendTime) record.isAppendTime = true
    records.push(record)
  }
  return records
}
