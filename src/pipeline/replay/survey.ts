import type { Cluster } from '../../backends/kafka/cluster.ts'
import type { Fetcher } from '../../backends/kafka/fetcher.ts'
import type { StoredRecord, TopicPartition } from '../../backends/kafka/record.ts'
import { Keys } from './keys.ts'

export interface SurveyOptions {
  place: TopicPartition
  /** Records before this offset are read, and not wanted. */
  start: number
  end: number
}

export interface Surveyed {
  /** Offsets of records that do not count. */
  doubles: ReadonlySet<number>
  /**
   * Offsets of copies of records that count. Compaction keeps the last copy, which is not the one
   * that counts.
   */
  copies: ReadonlyMap<number, readonly number[]>
  /** The first wanted records, as many as fit into memory. */
  held: StoredRecord[][]
  /** The offset of the rest. */
  from: number
}

const maxHeldBytes = 64 * 1024 ** 2

/**
 * Surveys a partition of a DLQ topic for records that do not count: those erased later, and
 * duplicates of a node that died before its commit. Records that fit into memory need not be read
 * again.
 */
export async function survey(
  cluster: Cluster,
  fetcher: Fetcher,
  { place, start, end }: SurveyOptions,
): Promise<Surveyed> {
  const [bounds] = await cluster.call(() => fetcher.bounds([place]))
  const doubles = new Set<number>()
  const copies = new Map<number, number[]>()
  const keys = new Keys()
  const held: StoredRecord[][] = []
  let bytes = 0
  let from = start
  for await (const { records, to } of fetcher.readAll(place, bounds?.first ?? 0, end)) {
    const wanted: StoredRecord[] = []
    held.push(wanted)
    for (const record of records) {
      const { key, value, offset } = record
      if (offset >= start && bytes < maxHeldBytes) {
        wanted.push(record)
        bytes += value.length
        from = offset + 1
      }
      // An empty key is none, as for letters.
      if (!key?.length) continue
      const first = keys.add(key, offset)
      if (first === undefined) continue
      doubles.add(offset)
      if (value.length === 0) doubles.add(first)
      else copies.set(first, [...(copies.get(first) ?? []), offset])
    }
    if (bytes < maxHeldBytes) from = Math.max(start, to)
  }
  return { doubles, copies, held, from }
}
