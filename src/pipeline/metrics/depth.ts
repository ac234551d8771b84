import type { Admin } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import { Fetcher } from '../../backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import { unseal } from '../dead/envelope.ts'
import { keyOf } from '../dead/stream.ts'
import { Replayed } from '../replay/replayed.ts'
import type { NodeSettings } from '../graph/settings.ts'
import type { NodePlace } from '../graph/topics.ts'

/** A node, and the topic of its dead records. */
export interface DeadPlace extends NodePlace {
  topic: string
}

/** Where the dead records of a node are. */
export function deadPlaceOf({ cluster, graph, node, dlq }: NodeSettings): DeadPlace {
  return { cluster, graph, node, topic: dlq.topic }
}

export interface Depth {
  depth: number
  /** Undefined if there is none. */
  oldestMs: number | undefined
}

/** An error if the depth is unknown at present. */
export type NodeDepth = DeadPlace & (Depth | { error: RedriveError })

export interface DeadRecordDepthOptions {
  cluster: Cluster
  nodes: readonly DeadPlace[]
  /** Time limit of one call. Unread partitions continue with the next call. */
  longestMs?: number
  /** Maximum number of records per node in memory. */
  maxHeld?: number
}

interface Dead {
  offset: number
  atMs: number
}

/** The state of a partition, as far as it was read. */
interface Part {
  position: number
  /** Open records by key, in the order of their offsets. */
  readonly dead: Map<string, Dead>
  /** Keys of the last replayed or erased records: another copy of one may follow. */
  readonly done: Set<string>
}

interface Known {
  readonly node: DeadPlace
  readonly replayed: Replayed
  parts: Part[]
  measuredMs: number
}

/**
 * Kafka deletes tombstones after a day (delete.retention.ms). After a longer pause some may be
 * missed, and the topic is read again.
 */
const staleMs = 12 * 3600 * 1000
/** A node that dies before its commit writes a record again soon after. */
const maxDone = 10_000

/**
 * Counts the open dead records of each node: those in its DLQ topic that were neither replayed nor
 * erased. Consumer lag does not help, since a replay commits nothing, nor do offset differences:
 * transaction markers take offsets too, and so do compacted, duplicate and erased records. So the
 * topics are read, each record once, and the keys of open records are kept in memory.
 */
export class DeadRecordDepth {
  readonly #options: DeadRecordDepthOptions
  readonly #known: Known[]
  readonly #admin: Admin
  readonly #fetcher: Fetcher
  #measuring: Promise<NodeDepth[]> | undefined

  constructor(options: DeadRecordDepthOptions) {
    this.#options = options
    const { cluster, nodes } = options
    const admin = (this.#admin = cluster.admin())
    const fetcher = (this.#fetcher = new Fetcher(cluster))
    this.#known = nodes.map((node) => {
      const replayed = new Replayed({ cluster, fetcher, admin, place: node })
      return { node, replayed, parts: [], measuredMs: -Infinity }
    })
  }

  /** Concurrent calls share one measurement. Never rejects. */
  measure(): Promise<NodeDepth[]> {
    this.#measuring ??= this.#measureAll().finally(() => (this.#measuring = undefined))
    return this.#measuring
  }

  async close(): Promise<void> {
    await this.#measuring
    await Promise.all([this.#admin.close().catch(() => {}), this.#fetcher.close()])
  }

  /** The node that was read longest ago comes first, so that none is starved. */
  async #measureAll(): Promise<NodeDepth[]> {
    const { cluster, longestMs = 3000 } = this.#options
    const endMs = cluster.clock.mono() + longestMs
    const found: NodeDepth[] = []
    for (const known of this.#known.toSorted((one, other) => one.measuredMs - other.measuredMs)) {
      const { node } = known
      try {
        found.push({ ...node, ...(await this.#measureNode(known, endMs)) })
      } catch (error) {
        found.push({ ...node, error: cluster.toRedriveError(error) })
      }
    }
    return found
  }

  async #measureNode(known: Known, endMs: number): Promise<Depth> {
    const { cluster, maxHeld = 100_000 } = this.#options
    const { node, replayed } = known
    this.#checkTime(node.topic, endMs)
    const nowMs = cluster.clock.mono()
    if (nowMs - known.measuredMs > staleMs) known.parts = []
    known.measuredMs = nowMs
    const places = await this.#placesOf(node.topic)
    const bounds = await cluster.call(() => this.#fetcher.bounds(places))
    await replayed.catchUp()
    let unread = 0
    for (const [partition, { first, next }] of bounds.entries()) {
      const part = seated(known.parts[partition], first, next)
      known.parts[partition] = part
      const isReplayed = (offset: number): boolean => replayed.has(partition, offset)
      dropReplayed(part, isReplayed)
      while (part.position < next && heldOf(known) < maxHeld) {
        this.#checkTime(node.topic, endMs)
        const place = { topic: node.topic, partition }
        const { records, to } = await cluster.call(() => this.#fetcher.read(place, part.position))
        if (to === part.position) break
        for (const record of records) if (isOf(node, record)) take(part, record, isReplayed)
        part.position = to
      }
      for (let offset = part.position; offset < next; offset++)
        unread += Number(!isReplayed(offset))
    }
    return { depth: heldOf(known) + unread, oldestMs: oldestOf(known) }
  }

  async #placesOf(topic: string): Promise<{ topic: string; partition: number }[]> {
    const read = (): ReturnType<Admin['metadata']> => this.#admin.metadata({ topics: [topic] })
    const { topics } = await this.#options.cluster.call(read)
    const found = topics.get(topic)
    if (!found) throw new Error(`the topic ${topic} does not exist`)
    return Array.from({ length: found.partitionsCount }, (_, partition) => ({ topic, partition }))
  }

  #checkTime(topic: string, endMs: number): void {
    const { cluster } = this.#options
    if (cluster.clock.mono() <= endMs) return
    throw new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `kafka ${cluster.hosts}: not enough time to read ${topic} to its end; the next call continues from there`,
    )
  }
}

/**
 * The known state, without records that the topic no longer has. A topic that ends before our
 * position was recreated.
 */
function seated(part: Part | undefined, first: number, next: number): Part {
  if (!part || next < part.position) return { position: first, dead: new Map(), done: new Set() }
  for (const [key, { offset }] of part.dead) {
    if (offset >= first) break
    part.dead.delete(key)
  }
  part.position = Math.max(part.position, first)
  return part
}

function dropReplayed(part: Part, isReplayed: (offset: number) => boolean): void {
  for (const [key, { offset }] of part.dead) if (isReplayed(offset)) finish(part, key)
}

/**
 * Of several records with one key the first counts, as for replays. A record without a value erases
 * it.
 */
function take(part: Part, record: StoredRecord, isReplayed: (offset: number) => boolean): void {
  const { value, offset, timestampMs } = record
  const key = keyOf(record)
  if (value.length === 0 || isReplayed(offset)) finish(part, key)
  else if (!part.dead.has(key) && !part.done.has(key))
    part.dead.set(key, { offset, atMs: timestampMs })
}

function finish({ dead, done }: Part, key: string): void {
  dead.delete(key)
  done.add(key)
  if (done.size > maxDone) for (const oldest of done) return void done.delete(oldest)
}

/** A record without a node counts for this one, and so does a tombstone. */
function isOf({ node, graph }: NodePlace, { value }: StoredRecord): boolean {
  const { failedNodeId = '', graphId = '' } = unseal(value)?.message ?? {}
  return [node, ''].includes(failedNodeId) && [graph, ''].includes(graphId)
}

function heldOf({ parts }: Known): number {
  return parts.reduce((sum, { dead }) => sum + dead.size, 0)
}

function oldestOf({ parts }: Known): number | undefined {
  let oldestMs = Infinity
  for (const { dead } of parts)
    for (const { atMs } of dead.values()) oldestMs = Math.min(oldestMs, atMs)
  return oldestMs === Infinity ? undefined : oldestMs
}
