import type { Admin } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import { Batcher } from '../../backends/batcher.ts'
import type { Fetcher } from '../../backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../backends/kafka/record.ts'
import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import { createTopic, countPartitions } from '../../backends/kafka/topics.ts'
import { replaysTopicOf, type NodePlace } from '../graph/topics.ts'

/**
 * Progress of a replay. It is stored in the topic of replays, in one transaction with the records
 * that it counts.
 */
export interface ReplayProgress {
  id: string
  /** Sent to their source. */
  sent: number
  /** Sent to the quarantine topic instead: they have reached their maximum number of replays. */
  quarantined: number
  /** Skipped: they do not match, were replayed or erased before, or belong to another node. */
  passed: number
  /**
   * Cannot be sent: no envelope, without payload, too large, or from a topic that does not exist.
   */
  left: number
  /**
   * Read so far, and to be read, per partition. Records that die later are not part of this replay.
   */
  positions: number[]
  ends: number[]
  startedAt: string
  done: boolean
  /** The parameters of the replay as JSON, for people. */
  request: string
}

/** Offsets per bitmap. */
const chunkSize = 32_768
const chunkKey = /^(\d+):(\d+)$/
const markKey = /^mark:(\d+):(\d+)$/
const replayKey = 'replay:'

/** Reasons of marks other than replayed: such a record was not sent to its source. */
export const quarantinedNote = 'quarantined'
export const erasedNote = 'erased'
/**
 * It was sent as the letter with the id that follows. Copies of it have the same letter, wherever
 * they are.
 */
export const letterNote = 'letter '

export interface ReplayedOptions {
  cluster: Cluster
  /** Both are closed by their owner. */
  fetcher: Fetcher
  admin: Admin
  place: Pick<NodePlace, 'cluster' | 'node'>
  /**
   * They take a hundred bytes each, and only a replay needs them: long-lived users leave them out.
   */
  withLetters?: boolean
}

/**
 * Which dead records of a node were replayed: one bit per offset of its DLQ topic, in a compacted
 * topic of its own. Partition n of it covers partition n of the DLQ topic; the progress of replays
 * is in partition 0. Quarantined and erased records have their bit too, and a mark with the reason;
 * the last mark counts.
 */
export class Replayed {
  readonly topic: string
  readonly #cluster: Cluster
  readonly #fetcher: Fetcher
  readonly #admin: Admin
  readonly #chunks = new Map<string, Buffer>()
  readonly #changed = new Set<string>()
  readonly #quarantined = new Set<string>()
  readonly #erased = new Set<string>()
  readonly #letters = new Set<string>()
  readonly #withLetters: boolean
  readonly #replays = new Map<string, ReplayProgress>()
  /** Marks are ordered, so one read runs at a time. */
  readonly #catching = new Batcher<undefined, void>(
    { maxInFlight: 1, maxBatchCost: Infinity },
    async (calls) => {
      await this.#catchUp()
      return calls.map(() => ({ value: undefined }))
    },
  )
  #positions: number[] = []
  #isThere = false
  #lastKey = { partition: -1, number: -1, key: '' }

  constructor({ cluster, fetcher, admin, place, withLetters = false }: ReplayedOptions) {
    this.topic = replaysTopicOf(place)
    this.#cluster = cluster
    this.#fetcher = fetcher
    this.#admin = admin
    this.#withLetters = withLetters
  }

  /** Creates its topic if it does not exist. */
  async create(partitions: number, replicas: number): Promise<void> {
    const { topic } = this
    const configs = { 'cleanup.policy': 'compact' }
    await createTopic(this.#cluster, this.#admin, { topic, partitions, replicas, configs })
    await countPartitions(this.#cluster, this.#admin, topic)
  }

  /** Reads new marks. Without its topic, nothing was replayed yet. */
  catchUp(): Promise<void> {
    return this.#catching.call(undefined)
  }

  async #catchUp(): Promise<void> {
    const count = await this.#partitions()
    const places = Array.from({ length: count }, (_, partition) => ({
      topic: this.topic,
      partition,
    }))
    this.#isThere = count > 0
    if (count === 0) return
    const bounds = await this.#cluster.call(() => this.#fetcher.bounds(places))
    // The topic was recreated, as people are told to do when the DLQ topic was recreated.
    if (this.#positions.some((position, at) => position > (bounds[at]?.next ?? 0))) this.#clear()
    for (const [partition, { first, next }] of bounds.entries()) {
      const from = Math.max(first, this.#positions[partition] ?? 0)
      const place = { topic: this.topic, partition }
      for await (const { records, to } of this.#fetcher.readAll(place, from, next)) {
        for (const record of records) this.#take(record)
        this.#positions[partition] = to
      }
    }
  }

  /** Whether its topic existed at the last check. */
  get isThere(): boolean {
    return this.#isThere
  }

  has(partition: number, offset: number): boolean {
    const chunk = this.#chunks.get(this.#keyOf(partition, offset))
    if (!chunk) return false
    const bit = offset % chunkSize
    return ((chunk[bit >>> 3] ?? 0) & (1 << (bit & 7))) !== 0
  }

  /** The record is in the quarantine topic, and was not sent since. */
  isQuarantined(partition: number, offset: number): boolean {
    return this.#quarantined.has(`${partition}:${offset}`)
  }

  isErased(partition: number, offset: number): boolean {
    return this.#erased.has(`${partition}:${offset}`)
  }

  /** The letters whose records were sent; empty unless constructed with letters. */
  get letters(): ReadonlySet<string> {
    return this.#letters
  }

  /** The last known offset of a partition. -1: none. */
  lastOf(partition: number): number {
    let last = -1
    for (const [key, chunk] of this.#chunks) {
      const [of, number] = key.split(':').map(Number)
      if (of !== partition) continue
      const byte = chunk.findLastIndex((bits) => bits !== 0)
      if (byte < 0) continue
      const bit = 31 - Math.clz32(chunk[byte] ?? 0)
      last = Math.max(last, (number ?? 0) * chunkSize + byte * 8 + bit)
    }
    return last
  }

  progressOf(id: string): ReplayProgress | undefined {
    return this.#replays.get(id)
  }

  add(partition: number, offset: number): void {
    this.#changed.add(this.#set(partition, offset))
  }

  /** Undoes a mark. */
  drop(partition: number, offset: number): void {
    const chunk = this.#chunks.get(this.#keyOf(partition, offset))
    const bit = offset % chunkSize
    if (chunk) chunk[bit >>> 3] = (chunk[bit >>> 3] ?? 0) & ~(1 << (bit & 7))
  }

  /**
   * Marks added since the last call, and the progress of the replay, to be sent in one transaction
   * with the records.
   */
  written(progress: ReplayProgress): OutgoingRecord[] {
    const outgoing = [...this.#changed].map((key) =>
      outgoingOf(
        this.topic,
        Number(key.split(':')[0]),
        key,
        Buffer.from(this.#chunks.get(key) ?? ''),
      ),
    )
    this.#changed.clear()
    const value = Buffer.from(JSON.stringify(progress))
    return [...outgoing, outgoingOf(this.topic, 0, replayKey + progress.id, value)]
  }

  async #partitions(): Promise<number> {
    const there = await this.#cluster.call(() => this.#admin.listTopics())
    return there.includes(this.topic) ? countPartitions(this.#cluster, this.#admin, this.topic) : 0
  }

  #clear(): void {
    this.#positions = []
    for (const known of [this.#chunks, this.#replays]) known.clear()
    for (const marked of [this.#changed, this.#quarantined, this.#erased, this.#letters])
      marked.clear()
  }

  /** The bitmap of an offset. Mostly that of the previous offset. */
  #keyOf(partition: number, offset: number): string {
    const number = Math.floor(offset / chunkSize)
    const last = this.#lastKey
    if (last.partition !== partition || last.number !== number)
      this.#lastKey = { partition, number, key: `${partition}:${number}` }
    return this.#lastKey.key
  }

  #set(partition: number, offset: number): string {
    const key = this.#keyOf(partition, offset)
    const chunk = this.#chunks.get(key) ?? Buffer.alloc(chunkSize / 8)
    const bit = offset % chunkSize
    chunk[bit >>> 3] = (chunk[bit >>> 3] ?? 0) | (1 << (bit & 7))
    this.#chunks.set(key, chunk)
    return key
  }

  #take({ key, value }: StoredRecord): void {
    const name = key?.toString() ?? ''
    const [, partition, offset] = markKey.exec(name) ?? []
    if (offset !== undefined) {
      this.#set(Number(partition), Number(offset))
      this.#note(`${partition}:${offset}`, value.toString())
    } else if (chunkKey.test(name)) this.#unite(name, value)
    else if (name.startsWith(replayKey)) {
      const progress = progressIn(value)
      if (progress) this.#replays.set(name.slice(replayKey.length), progress)
    }
  }

  #note(at: string, note: string): void {
    if (note === erasedNote) this.#erased.add(at)
    if (this.#withLetters && note.startsWith(letterNote))
      this.#letters.add(note.slice(letterNote.length))
    if (note === quarantinedNote) this.#quarantined.add(at)
    else this.#quarantined.delete(at)
  }

  #unite(key: string, bits: Buffer): void {
    const chunk = this.#chunks.get(key) ?? Buffer.alloc(chunkSize / 8)
    for (let at = 0; at < Math.min(chunk.length, bits.length); at++)
      chunk[at] = (chunk[at] ?? 0) | (bits[at] ?? 0)
    this.#chunks.set(key, chunk)
  }
}

/** The error for marks of records that the DLQ topic never had. */
export function ofAnother(known: string, topic: string): RedriveError {
  return new RedriveError(
    'STORE_UNSAFE',
    `${known} has marks of records that ${topic} never had: that topic was deleted and recreated, so delete ${known} too`,
  )
}

/**
 * Marks one dead record as replayed, or with another reason, while others replay at the same time.
 */
export function markOf(
  place: Pick<NodePlace, 'cluster' | 'node'>,
  { partition, offset }: Pick<StoredRecord, 'partition' | 'offset'>,
  note: string,
): OutgoingRecord {
  const key = `mark:${partition}:${offset}`
  return outgoingOf(replaysTopicOf(place), partition, key, Buffer.from(note))
}

function outgoingOf(topic: string, partition: number, key: string, value: Buffer): OutgoingRecord {
  return { topic, partition, record: { key: Buffer.from(key), value, headers: new Map() } }
}

/** Others could write there too. */
function progressIn(bytes: Buffer): ReplayProgress | undefined {
  try {
    const found = JSON.parse(bytes.toString()) as Partial<ReplayProgress> | null
    const counts = [found?.sent, found?.quarantined, found?.passed, found?.left]
    const offsets = [...(found?.positions ?? [NaN]), ...(found?.ends ?? [NaN])]
    const isWhole = [...counts, ...offsets].every(Number.isSafeInteger)
    return isWhole ? (found as ReplayProgress) : undefined
  } catch {
    return undefined
  }
}
