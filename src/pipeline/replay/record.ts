import { partitionOf } from '../../backends/kafka/partition.ts'
import type { Stored } from '../../backends/kafka/record.ts'
import type { Outgoing } from '../../backends/kafka/sender.ts'
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
  { key: dead, timestampMs }: Pick<Stored, 'key' | 'timestampMs'>,
  found: EnvelopePeek,
  { topic, partitions, id, node, nowMs }: ReplayTarget,
): Outgoing | undefined {
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
    return { topic, partition: partitionOf(key, partitions), written: { value, headers, key } }
  const written = { value, headers }
  const isThere = partition >= 0 && partition < partitions && topic === found.topic
  return isThere ? { topic, partition, written } : { topic, written }
}

/** The dead record with its key, in another topic, where it waits for a person. */
export function asQuarantined(
  { key, value, headers }: Pick<Stored, 'key' | 'value' | 'headers'>,
  topic: string,
  nowMs: number,
): Outgoing {
  const written = { value: quarantined(value, nowMs), headers: new Map(headers) }
  return { topic, written: key ? { ...written, key } : written }
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
