import type { Admin } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import { Fetcher } from '../../backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import { unseal } from '../dead/envelope.ts'
import { keyOf } from '../dead/stream.ts'
import { Replayed } from '../replay/replayed.ts'
import type { NodePlace } from '../graph/topics.ts'

/** A node, and where its dead records lie. */
export interface DeadPlace extends NodePlace {
  topic: string
}

export interface Depth {
  depth: number
  /** Undefined: there is none. */
  oldestMs: number | undefined
}

/** An error: nobody knows at present. */
export type NodeStanding = DeadPlace & (Depth | { error: RedriveError })

export interface StandingOptions {
  cluster: Cluster
  nodes: readonly DeadPlace[]
  /** How long one question may read on. Whatever is not at its end by then goes on with the next. */
  longestMs?: number
  /** So many records of a node are kept in mind. */
  maxHeld?: number
}

interface Dead {
  offset: number
  atMs: number
}

/** What is known of a partition, as far as it was read. */
interface Part {
  position: number
  /** Those that stand, by key, in the order of their offsets. */
  readonly dead: Map<string, Dead>
  /** Keys of those that were replayed or erased, the last of them: another copy of one may come yet. */
  readonly done: Set<string>
}

interface Known {
  readonly node: DeadPlace
  readonly replayed: Replayed
  parts: Part[]
  askedMs: number
}

/** Kafka forgets tombstones after a day (delete.retention.ms). Whoever was away for so long may have missed some, and reads anew. */
const staleMs = 12 * 3600 * 1000
/** A node that ended before it could say that a record is done writes it again soon after. */
const maxDone = 10_000

/**
 * How many dead records of each node stand: they lie in its DLQ topic, and were neither replayed nor erased. Lag would not say it, since
 * replay commits nothing, nor would a difference of offsets: the broker's own marks of transactions take offsets too, and so does what was
 * compacted away, written twice or erased. So the topics are read, each record once, and the keys of those that stand are kept in mind.
 *
 * A node with more than `maxHeld` is read no further until some are replayed: what lies behind is then counted by its offsets, which is
 * too many rather than too few. Records that name another node, in a topic that several share, are not counted.
 */
export class Standing {
  readonly #options: StandingOptions
  readonly #known: Known[]
  readonly #admin: Admin
  readonly #fetcher: Fetcher
  #asking: Promise<NodeStanding[]> | undefined

  constructor(options: StandingOptions) {
    this.#options = options
    const { cluster, nodes } = options
    const admin = (this.#admin = cluster.admin())
    const fetcher = (this.#fetcher = new Fetcher(cluster))
    this.#known = nodes.map((node) => {
      const replayed = new Replayed({ cluster, fetcher, admin, place: node })
      return { node, replayed, parts: [], askedMs: -Infinity }
    })
  }

  /** Whoever asks while others do gets the same answer. Never rejects. */
  ask(): Promise<NodeStanding[]> {
    this.#asking ??= this.#askAll().finally(() => (this.#asking = undefined))
    return this.#asking
  }

  async close(): Promise<void> {
    await this.#asking
    await Promise.all([this.#admin.close().catch(() => {}), this.#fetcher.close()])
  }

  /** Those that were asked longest ago come first, so that none is kept from its turn by another. */
  async #askAll(): Promise<NodeStanding[]> {
    const { cluster, longestMs = 3000 } = this.#options
    const endMs = cluster.clock.mono() + longestMs
    const found: NodeStanding[] = []
    for (const known of this.#known.toSorted((one, other) => one.askedMs - other.askedMs)) {
      const { node } = known
      try {
        found.push({ ...node, ...(await this.#ask(known, endMs)) })
      } catch (error) {
        found.push({ ...node, error: cluster.toRedriveError(error) })
      }
    }
    return found
  }

  async #ask(known: Known, endMs: number): Promise<Depth> {
    const { cluster, maxHeld = 100_000 } = this.#options
    const { node, replayed } = known
    this.#checkTime(node.topic, endMs)
    const nowMs = cluster.clock.mono()
    if (nowMs - known.askedMs > staleMs) known.parts = []
    known.askedMs = nowMs
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
    const ask = (): ReturnType<Admin['metadata']> => this.#admin.metadata({ topics: [topic] })
    const { topics } = await this.#options.cluster.call(ask)
    const found = topics.get(topic)
    if (!found) throw new Error(`there is no topic ${topic}`)
    return Array.from({ length: found.partitionsCount }, (_, partition) => ({ topic, partition }))
  }

  #checkTime(topic: string, endMs: number): void {
    const { cluster } = this.#options
    if (cluster.clock.mono() <= endMs) return
    throw new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `kafka ${cluster.hosts}: there was no time to read ${topic} to its end; ask again, and it goes on from there`,
    )
  }
}

/** As it was known, without what is gone from the topic. One that ends before our position is another topic of the same name. */
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

/** Of several records with one key the first counts, as it does for replays. One without a value erases it. */
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

/** What names no node is taken for one of this, and so is what erases. */
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
