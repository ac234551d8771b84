import { partitionForKey } from '../../backends/kafka/sender.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import { quarantined } from '../dead/envelope.ts'
import type { Glance } from './glance.ts'
import { withLineage, type Lineage } from '../dead/lineage.ts'
import { log, readStream, writeStream } from '../stream.ts'

/** How a dead record travels home. */
export interface Homeward {
  topic: string
  /** How many the topic has. */
  partitions: number
  /** The replay. */
  id: string
  node: string
  nowMs: number
}

/**
 * The record as it was, with its key and headers, and with its past in headers of ours. The value is what died, byte for byte; only a stream
 * that went too far gets its hops back, and that stands in its history. Undefined: it should, and is no stream.
 */
export function asReplayed(
  { key: dead, timestampMs }: Pick<StoredRecord, 'key' | 'timestampMs'>,
  found: Glance,
  { topic, partitions, id, node, nowMs }: Homeward,
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
  { id, node, nowMs }: Pick<Homeward, 'id' | 'node' | 'nowMs'>,
): Buffer | undefined {
  const stream = readStream(bytes)
  if (!stream) return undefined
  const message = `hop count set from ${stream.hopCount} to 0 by replay ${id}`
  stream.hopCount = 0
  log(stream, { atMs: nowMs, node, event: 'replayed', message })
  return writeStream(stream)
}
