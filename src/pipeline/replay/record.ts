import { partitionForKey } from '../../backends/kafka/sender.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import { quarantined } from '../dead/envelope.ts'
import type { EnvelopePeek } from './peek.ts'
import { withLineage, type Lineage } from '../dead/lineage.ts'
import { log, readStream, writeStream } from '../stream.ts'

/** How a dead record returns to its source. */
export interface ReplayTarget {
  topic: string
  /** The number of partitions of the topic. */
  partitions: number
  /** The id of the replay. */
  id: string
  node: string
  nowMs: number
}

/**
 * The original record with its key and headers, plus our lineage header. The value is byte for byte
 * what died; only a stream with too many hops gets its hop count reset, which is added to its
 * history. Undefined if that is needed and the value is not a stream.
 */
export function asReplayed(
  { key: dead, timestampMs }: Pick<StoredRecord, 'key' | 'timestampMs'>,
  found: EnvelopePeek,
  { topic, partitions, id, node, nowMs }: ReplayTarget,
): OutgoingRecord | undefined {
  const value =
    found.errorType === 'MAX_HOPS' ? withHops(found.value, { id, node, nowMs }) : found.value
  if (!value) return undefined
  const lineage: Lineage = {
    reprocessed: Math.max(0, found.reprocessed) + 1,
    firstFailedMs: found.firstFailedMs || found.failedMs || timestampMs,
    replay: id,
  }
  if (dead) lineage.dead = dead.toString('latin1')
  const headers = new Map<Buffer, Buffer | null>()
  for (const [name, text] of withLineage(found.headers, lineage)) headers.set(name, text)
  const { key, partition } = found
  if (key)
    return { topic, partition: partitionForKey(key, partitions), record: { value, headers, key } }
  const keyless = { value, headers }
  const isThere = partition >= 0 && partition < partitions && topic === found.topic
  return isThere ? { topic, partition, record: keyless } : { topic, record: keyless }
}

/** The dead record with its key, in another topic, where it waits for a person. */
export function asQuarantined(
  { key, value, headers }: Pick<StoredRecord, 'key' | 'value' | 'headers'>,
  topic: string,
  nowMs: number,
): OutgoingRecord {
  const copy = { value: quarantined(value, nowMs), headers: new Map(headers) }
  return { topic, record: key ? { ...copy, key } : copy }
}

function withHops(
  bytes: Buffer,
  { id, node, nowMs }: Pick<ReplayTarget, 'id' | 'node' | 'nowMs'>,
): Buffer | undefined {
  const stream = readStream(bytes)
  if (!stream) return undefined
  const message = `hop count set from ${stream.hopCount} to 0 by replay ${id}`
  stream.hopCount = 0
  log(stream, { atMs: nowMs, node, event: 'replayed', message })
  return writeStream(stream)
}
