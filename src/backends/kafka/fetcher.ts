import { FetchIsolationLevels, type Consumer } from '@platformatic/kafka'
import { nextTurn, sleep } from '../../clock/clock.ts'
import { Backoff, retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'
import { fetchCommitted } from './fetch-committed.ts'
import { partitionKey, readBatch, type StoredRecord, type TopicPartition } from './record.ts'

/** A partition that is read from `position` on, as long as `hasRoom` returns true. */
export interface FetchedPartition extends TopicPartition {
  position: number
  hasRoom: () => boolean
  /** All records from one offset up to another one. Records before `logStart` are deleted. */
  onRecords: (records: StoredRecord[], from: number, to: number, logStart: number) => void
  /** The topic was recreated, or the broker lost the records from this offset on. */
  onReset: (from: number) => void
  /** The id of the topic. Set by the first fetch. */
  topicId?: string
}

export interface FetcherEvents {
  onError: (error: RedriveError) => void
  /** A broker answers. */
  onHealthy: () => void
}

/** The records from the requested offset up to `to`. */
export interface Page {
  records: StoredRecord[]
  to: number
  /** The last stable offset: the start of the first open transaction, or the next offset. */
  stableEnd: number
}

type Topics = Awaited<ReturnType<Consumer['metadata']>>['topics']

/** One partition of a response. */
interface Fetched extends Page {
  target: FetchedPartition
  topicId: string
  logStart: number
}

/** How long a broker waits for the first record. A partition that is added waits as long. */
const waitMs = 500
/** The same while other partitions of the broker have no room: they can get room at any time. */
const shortWaitMs = 50
const maxBytes = 4 * 1024 ** 2
const epochs = { currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: 1024 ** 2 }
const transactionPollMs = 50
const ignore = (): void => {}

/**
 * Reads partitions: added ones continuously, with one request at a time to each broker, others on
 * demand. It has its own connections, because a waiting fetch blocks the requests behind it.
 */
export class Fetcher {
  readonly #cluster: Cluster
  readonly #events: FetcherEvents
  readonly #consumer: Consumer
  readonly #partitions = new Map<string, FetchedPartition>()
  readonly #busyNodes = new Set<number>()
  readonly #closing = new AbortController()
  #isPlanning = false
  readonly #backoff: Backoff

  constructor(cluster: Cluster, events: FetcherEvents = { onError: ignore, onHealthy: ignore }) {
    this.#cluster = cluster
    this.#events = events
    this.#backoff = new Backoff(cluster.clock, { firstMs: 100, maxMs: 2000 })
    const requestTimeout = waitMs + cluster.timeoutMs
    this.#consumer = cluster.consumer({ groupId: 'redrive', requestTimeout, retries: 1 })
  }

  add(partition: FetchedPartition): void {
    this.#partitions.set(partitionKey(partition), partition)
    this.wake()
  }

  remove(partition: FetchedPartition): void {
    const key = partitionKey(partition)
    if (this.#partitions.get(key) === partition) this.#partitions.delete(key)
  }

  /** Starts requests to brokers that have none in flight. */
  wake(): void {
    if (this.#isPlanning || this.#closing.signal.aborted) return
    this.#isPlanning = true
    void this.#plan()
  }

  /** The first and the next offset of each partition. Open transactions do not limit `next`. */
  async bounds(partitions: readonly TopicPartition[]): Promise<{ first: number; next: number }[]> {
    const topics = [...new Set(partitions.map(({ topic }) => topic))]
    const isolationLevel = FetchIsolationLevels.READ_UNCOMMITTED
    const [first, next] = await Promise.all([
      this.#consumer.listOffsets({ topics, timestamp: -2n }),
      this.#consumer.listOffsets({ topics, timestamp: -1n, isolationLevel }),
    ])
    return partitions.map(({ topic, partition }) => ({
      first: Number(first.get(topic)?.[partition] ?? 0),
      next: Number(next.get(topic)?.[partition] ?? 0),
    }))
  }

  /** Reads as many records as one request returns. */
  async read({ topic, partition }: TopicPartition, position: number): Promise<Page> {
    const events = { hasRoom: () => true, onRecords: ignore, onReset: ignore }
    const target = { topic, partition, position, ...events }
    const [page] = await this.#tryTwice(() => this.#fetch([target], 0))
    return page ?? { records: [], to: position, stableEnd: 0 }
  }

  /**
   * Reads a partition up to `end` or a little further, one request ahead of the caller. Waits for
   * an open transaction, which hides the records after it, and rejects when the transaction does
   * not end in time: no record is left out.
   */
  async *readAll(partition: TopicPartition, start: number, end: number): AsyncGenerator<Page> {
    const read = (from: number): Promise<Page> => {
      const page = this.#readCommitted(partition, from, end)
      // The error is thrown when the caller asks for this page.
      page.catch(ignore)
      return page
    }
    let at = start
    for (let ahead = at < end ? read(at) : undefined; ahead;) {
      const page = await ahead
      // A page without progress is the last one: compaction removed the rest.
      ahead = page.to > at && page.to < end ? read(page.to) : undefined
      at = page.to
      yield page
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#cluster.call(() => this.#consumer.close(true)).catch(ignore)
  }

  async #readCommitted(partition: TopicPartition, from: number, end: number): Promise<Page> {
    const { clock, timeoutMs, hosts } = this.#cluster
    const endMs = clock.mono() + timeoutMs
    for (;;) {
      const page = await this.#cluster.call(() => this.read(partition, from))
      if (page.to > from || page.stableEnd >= end) return page
      if (clock.mono() > endMs)
        throw new RedriveError(
          'MAILBOX_UNAVAILABLE',
          `kafka ${hosts}: an open transaction hides the records of ${partitionKey(partition)} from offset ${from} on; try again when it has ended (the broker aborts transactions of dead producers, ours within a minute)`,
        )
      await sleep(clock, transactionPollMs)
    }
  }

  async #plan(): Promise<void> {
    const all = [...this.#partitions.values()]
    try {
      if (!all.some((partition) => partition.hasRoom())) return
      const topics = await this.#metadata(all)
      for (const [node, assigned] of Map.groupBy(all, (one) => leaderOf(topics, one))) {
        if (node < 0 || this.#busyNodes.has(node)) continue
        const wanted = assigned.filter((partition) => partition.hasRoom())
        const ms = wanted.length < assigned.length ? shortWaitMs : waitMs
        if (wanted.length > 0) void this.#poll(node, wanted, ms)
      }
    } catch (error) {
      void this.#backOff(error)
    } finally {
      this.#isPlanning = false
    }
  }

  async #poll(node: number, wanted: FetchedPartition[], ms: number): Promise<void> {
    const limitMs = waitMs + this.#cluster.timeoutMs
    const request = (): Promise<Fetched[]> => this.#fetch(wanted, ms)
    this.#busyNodes.add(node)
    try {
      const fetched = await this.#cluster.call(() => this.#tryTwice(request), limitMs)
      this.#backoff.reset()
      this.#events.onHealthy()
      for (const one of fetched) deliver(one)
    } catch (error) {
      if (isRefusal(error, 'OFFSET_OUT_OF_RANGE')) await this.#reposition(wanted)
      else await this.#backOff(error)
    } finally {
      this.#busyNodes.delete(node)
      // Let the consumers of the records run first.
      void nextTurn().then(() => this.wake())
    }
  }

  /** Mostly answered from the cache of the client. */
  async #metadata(partitions: readonly TopicPartition[]): Promise<Topics> {
    const topics = [...new Set(partitions.map(({ topic }) => topic))]
    return (await this.#consumer.metadata({ topics })).topics
  }

  /** Retries once, since the cached metadata or the connection can be stale. */
  #tryTwice<T>(act: () => Promise<T>): Promise<T> {
    const { clock } = this.#cluster
    const { signal } = this.#closing
    const shouldRetry = (error: unknown, attempt: number): boolean =>
      attempt < 2 && !isRefusal(error, 'OFFSET_OUT_OF_RANGE')
    const onError = (): void => this.#consumer.clearMetadata()
    return retry({ clock, signal, firstMs: 200, maxMs: 200, shouldRetry, onError }, act)
  }

  /** Fetches partitions that have the same leader. */
  async #fetch(wanted: readonly FetchedPartition[], maxWaitTime: number): Promise<Fetched[]> {
    const known = await this.#metadata(wanted)
    const node = leaderOf(known, wanted[0]!)
    const idOf = (topic: string): string => known.get(topic)?.id ?? ''
    const byKey = new Map(wanted.map((one) => [`${idOf(one.topic)}:${one.partition}`, one]))
    const topics = [...Map.groupBy(wanted, ({ topic }) => topic)].map(([topic, partitions]) => ({
      topicId: idOf(topic),
      partitions: partitions.map(({ partition, position }) => ({
        partition,
        fetchOffset: BigInt(position),
        ...epochs,
      })),
    }))
    const request = { node, topics, maxWaitTime, maxBytes }
    const { responses } = await fetchCommitted(this.#consumer, request)
    return responses.flatMap(({ topicId, partitions }) =>
      partitions.flatMap(({ partitionIndex, records: batches, ...found }) => {
        const target = byKey.get(`${topicId}:${partitionIndex}`)
        if (!target) return []
        const from = target.position
        const records = batches?.flatMap((batch) => readBatch(target, batch, from)) ?? []
        const last = batches?.at(-1)
        const to = last ? Number(last.firstOffset) + last.lastOffsetDelta + 1 : from
        const stableEnd = Number(found.lastStableOffset)
        return [{ target, topicId, records, to, stableEnd, logStart: Number(found.logStartOffset) }]
      }),
    )
  }

  /** Moves on from offsets that do not exist, or no longer. */
  async #reposition(wanted: FetchedPartition[]): Promise<void> {
    try {
      const bounds = await this.bounds(wanted)
      this.#consumer.clearMetadata()
      const topics = await this.#metadata(wanted)
      for (const [at, target] of wanted.entries()) {
        const { first, next } = bounds[at]!
        const { position, topic, topicId } = target
        const isSameTopic = topicId !== undefined && topics.get(topic)?.id === topicId
        if (position > next) target.onReset(isSameTopic ? next : 0)
        else if (position < first) {
          target.position = first
          target.onRecords([], position, first, first)
        }
      }
    } catch (error) {
      await this.#backOff(error)
    }
  }

  async #backOff(error: unknown): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#events.onError(this.#cluster.toRedriveError(error))
    await this.#backoff.wait(this.#closing.signal)
    this.wake()
  }
}

function leaderOf(topics: Topics, { topic, partition }: TopicPartition): number {
  return topics.get(topic)?.partitions[partition]?.leader ?? -1
}

function deliver({ target, topicId, records, to, logStart }: Fetched): void {
  const from = target.position
  // A leader answers for the current id of a topic only: another id means another topic.
  if ((target.topicId ??= topicId) !== topicId) return target.onReset(0)
  target.position = to
  if (to > from || logStart > 0) target.onRecords(records, from, to, logStart)
}
