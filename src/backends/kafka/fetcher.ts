import { FetchIsolationLevels, type Consumer, type fetchV17 } from '@platformatic/kafka'
import { nextTurn, sleep } from '../../clock/clock.ts'
import type { RedriveError } from '../../errors.ts'
import { validBatches, type Batch, type FetchedPartition } from './aborted.ts'
import { attribute } from './batch.ts'
import { askBroker, type Cluster } from './cluster.ts'
import { keyOf, type Place } from './group.ts'
import type { Stored } from './record.ts'
import { isRefusal } from './errors.ts'

/** A partition that is read from its position on, as long as there is room. */
export interface Reading extends Place {
  position: number
  hasRoom: () => boolean
  /** All records from one position up to the other. Nothing before `first` exists any more. */
  arrived: (records: Stored[], from: number, to: number, first: number) => void
  /**
   * It is another topic of the same name, or the broker has lost what it had from this offset on: what is known of records from there on
   * is of others.
   */
  madeAnew: (from: number) => void
  /** Which topic it is, as the brokers tell those of one name apart. Set when it is read. */
  topicId?: string
}

type Topics = Awaited<ReturnType<Consumer['metadata']>>['topics']
type FetchRequest = Parameters<typeof fetchV17.createRequest>
type FetchResponse = ReturnType<typeof fetchV17.parseResponse>
type Headers = Batch['records'][number]['headers']

export interface FetcherOptions {
  cluster: Cluster
  groupId: string
  onError: (error: RedriveError) => void
  /** The brokers answer. */
  well: () => void
}

/** How long a broker waits for the first record. Partitions that are added wait for that too. */
const waitMs = 500
/** The same while partitions of that broker have no room: they may have it again at any moment. */
const shortWaitMs = 50
const maxBytes = 4 * 1024 ** 2
const maxBytesPerPartition = 1024 ** 2
const retryMs = 200
const longestRetryMs = 2000
/** Up to this version of the request, topics are known by their names. */
const lastByName = 12
const noId = '00000000-0000-0000-0000-000000000000'
/** Each request stands for itself: a session with a broker bears one at a time. */
const noSession = [0, -1] as const

/** For those who read when they like, and hear of what fails from their calls. */
export function readerOf(cluster: Cluster): Fetcher {
  const ignore = (): void => {}
  return new Fetcher({ cluster, groupId: 'redrive', onError: ignore, well: ignore })
}

/** Reads partitions, with one request at a time to each broker. It has connections of its own, since such a request blocks others. */
export class Fetcher {
  readonly #options: FetcherOptions
  readonly #consumer: Consumer
  readonly #readings = new Map<string, Reading>()
  readonly #busy = new Set<number>()
  readonly #closing = new AbortController()
  #isPlanning = false
  #failures = 0

  constructor(options: FetcherOptions) {
    this.#options = options
    const { cluster, groupId } = options
    const requestTimeout = waitMs + cluster.timeoutMs
    this.#consumer = cluster.consumer({ groupId, requestTimeout, retries: 1 })
  }

  add(reading: Reading): void {
    this.#readings.set(keyOf(reading), reading)
    this.#consumer.topics.track(reading.topic)
    this.wake()
  }

  remove(reading: Reading): void {
    if (this.#readings.get(keyOf(reading)) !== reading) return
    this.#readings.delete(keyOf(reading))
    this.#consumer.topics.untrack(reading.topic)
  }

  /** There may be something to do. */
  wake(): void {
    if (this.#isPlanning || this.#closing.signal.aborted) return
    this.#isPlanning = true
    void this.#plan()
  }

  /** The first and the next offset of each partition, also when what lies before is of transactions that have not ended. */
  async bounds(places: readonly Place[]): Promise<{ first: number; next: number }[]> {
    const topics = [...new Set(places.map(({ topic }) => topic))]
    const isolationLevel = FetchIsolationLevels.READ_UNCOMMITTED
    const [first, next] = await Promise.all([
      this.#consumer.listOffsets({ topics, timestamp: -2n }),
      this.#consumer.listOffsets({ topics, timestamp: -1n, isolationLevel }),
    ])
    return places.map(({ topic, partition }) => ({
      first: Number(first.get(topic)?.[partition] ?? 0),
      next: Number(next.get(topic)?.[partition] ?? 0),
    }))
  }

  /** Where the first transaction lies that has not ended, or the next offset: nothing from there on is read. */
  async stable({ topic, partition }: Place): Promise<number> {
    const isolationLevel = FetchIsolationLevels.READ_COMMITTED
    const partitions = { [topic]: [partition] }
    const asked = { topics: [topic], partitions, timestamp: -1n, isolationLevel }
    return Number((await this.#consumer.listOffsets(asked)).get(topic)?.[partition] ?? 0)
  }

  /** What lies in a partition from there on, as much as comes at once. */
  async read(
    { topic, partition }: Place,
    from: number,
  ): Promise<{ records: Stored[]; to: number }> {
    let found = { records: [] as Stored[], to: from }
    const arrived: Reading['arrived'] = (records, _, to) => (found = { records, to })
    const [hasRoom, madeAnew] = [() => true, () => {}]
    const reading = { topic, partition, position: from, hasRoom, arrived, madeAnew }
    if (!this.#consumer.topics.has(topic)) this.#consumer.topics.track(topic)
    await this.#twice(async () => {
      const topics = await this.#topics([reading])
      this.#take(
        await this.#ask(leaderOf(topics, reading), [reading], topics, 0),
        [reading],
        topics,
      )
    })
    return found
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#options.cluster.call(() => this.#consumer.close(true)).catch(() => {})
  }

  async #plan(): Promise<void> {
    const all = [...this.#readings.values()]
    try {
      if (!all.some((reading) => reading.hasRoom())) return
      const topics = await this.#topics(all)
      for (const [node, readings] of Map.groupBy(all, (reading) => leaderOf(topics, reading))) {
        if (node < 0 || this.#busy.has(node)) continue
        const wanted = readings.filter((reading) => reading.hasRoom())
        const longestMs = wanted.length < readings.length ? shortWaitMs : waitMs
        if (wanted.length > 0) void this.#fetch(node, wanted, topics, longestMs)
      }
    } catch (error) {
      void this.#fail(error)
    } finally {
      this.#isPlanning = false
    }
  }

  async #fetch(
    node: number,
    readings: Reading[],
    topics: Topics,
    longestMs: number,
  ): Promise<void> {
    const { cluster, onError, well } = this.#options
    this.#busy.add(node)
    // The client may try again for long. Those who wait hear of it in time, and this goes on.
    const late = (): void =>
      onError(cluster.toRedriveError(new Error(`broker ${node} does not answer`)))
    const cancel = cluster.clock.timer(waitMs + cluster.timeoutMs, late)
    try {
      const answer = await this.#twice(() => this.#ask(node, readings, topics, longestMs))
      this.#failures = 0
      well()
      this.#take(answer, readings, topics)
    } catch (error) {
      if (isRefusal(error, 'OFFSET_OUT_OF_RANGE')) await this.#seat(readings)
      else await this.#fail(error)
    } finally {
      cancel()
      this.#busy.delete(node)
      // What has come is seen to first: others wait for that already.
      void nextTurn().then(() => this.wake())
    }
  }

  /** Mostly from the client's memory. */
  async #topics(readings: readonly Reading[]): Promise<Topics> {
    const names = [...new Set(readings.map(({ topic }) => topic))]
    return (await this.#consumer.metadata({ topics: names })).topics
  }

  /** What was known of the brokers may be old, and so may a connection. */
  async #twice<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      if (isRefusal(error, 'OFFSET_OUT_OF_RANGE') || this.#closing.signal.aborted) throw error
      this.#consumer.clearMetadata()
      await sleep(this.#options.cluster.clock, retryMs, this.#closing.signal)
      return act()
    }
  }

  /**
   * Not by the client's own fetch. That leaves out all of a sender from the last transaction that came to nothing up to the last such mark,
   * and a mark may lie far behind, of a transaction without records: what was committed in between would be lost.
   */
  #ask(node: number, readings: Reading[], known: Topics, waitMs: number): Promise<FetchResponse> {
    const topics = [...Map.groupBy(readings, ({ topic }) => topic)].map(([topic, parts]) => ({
      topic,
      partitions: parts.map(({ partition, position }) => ({
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: BigInt(position),
        lastFetchedEpoch: -1,
        partitionMaxBytes: maxBytesPerPartition,
      })),
    }))
    const asked = (version: number): FetchRequest => {
      const named = topics.map(({ topic, partitions }) => ({
        topicId: version <= lastByName ? topic : (known.get(topic)?.id ?? ''),
        partitions,
      }))
      const { READ_COMMITTED } = FetchIsolationLevels
      return [waitMs, 1, maxBytes, READ_COMMITTED, ...noSession, named, [], '']
    }
    return askBroker<FetchRequest, FetchResponse>(this.#consumer, node, 'Fetch', asked)
  }

  #take({ responses }: FetchResponse, readings: readonly Reading[], known: Topics): void {
    const keyBy = (topicId: string, partition: number): string => `${topicId}:${partition}`
    const byKey = new Map(
      readings.flatMap((one) =>
        [one.topic, known.get(one.topic)?.id ?? ''].map(
          (name) => [keyBy(name, one.partition), one] as const,
        ),
      ),
    )
    for (const { topicId, partitions } of responses)
      for (const found of partitions) {
        const reading = byKey.get(keyBy(topicId, found.partitionIndex))
        if (!reading) continue
        if (isOther(reading, known)) reading.madeAnew(0)
        else deliver(reading, found)
      }
  }

  /** What was wanted is gone, or never was: reads on from where there is something. */
  async #seat(readings: Reading[]): Promise<void> {
    try {
      const bounds = await this.bounds(readings)
      this.#consumer.clearMetadata()
      const topics = await this.#topics(readings)
      for (const [at, reading] of readings.entries()) {
        const { first, next } = bounds[at]!
        const from = reading.position
        // What it had before is as it was, if it is the topic that was read.
        const { topic, topicId } = reading
        const isSame = topicId !== undefined && topics.get(topic)?.id === topicId
        if (from > next) reading.madeAnew(isSame ? next : 0)
        else if (from < first) {
          reading.position = first
          reading.arrived([], from, first, first)
        }
      }
    } catch (error) {
      await this.#fail(error)
    }
  }

  async #fail(error: unknown): Promise<void> {
    const { cluster, onError } = this.#options
    if (this.#closing.signal.aborted) return
    onError(cluster.toRedriveError(error))
    const waitMs = Math.min(100 * 2 ** this.#failures++, longestRetryMs)
    await sleep(cluster.clock, waitMs * (0.5 + cluster.clock.random()), this.#closing.signal)
    this.wake()
  }
}

function leaderOf(topics: Topics, { topic, partition }: Place): number {
  return topics.get(topic)?.partitions[partition]?.leader ?? -1
}

/** Only the leader's answer tells: what other brokers say of a topic that was made anew may be old. */
function isOther(reading: Reading, known: Topics): boolean {
  const before = reading.topicId
  const id = known.get(reading.topic)?.id ?? noId
  // Not all brokers know ids, and those that do not yet may do so later.
  if (id !== noId) reading.topicId = id
  return before !== undefined && reading.topicId !== before
}

function deliver(reading: Reading, found: FetchedPartition): void {
  const from = reading.position
  const stored: Stored[] = []
  const last = found.records?.at(-1)
  if (last) reading.position = Number(last.firstOffset) + last.lastOffsetDelta + 1
  for (const batch of validBatches(found)) collect(stored, reading, batch, from)
  const first = Number(found.logStartOffset)
  if (reading.position > from || first > 0) reading.arrived(stored, from, reading.position, first)
}

/** There are many: what is the same for a batch is worked out once. */
function collect(stored: Stored[], { topic, partition }: Place, batch: Batch, from: number): void {
  const firstOffset = Number(batch.firstOffset)
  const firstMs = Number(batch.firstTimestamp)
  const brokersMs =
    batch.attributes & attribute.brokersTime ? Number(batch.maxTimestamp) : undefined
  for (const { offsetDelta, timestampDelta, key, value, headers } of batch.records) {
    const offset = firstOffset + offsetDelta
    if (offset < from) continue
    const record: Stored = {
      topic,
      partition,
      offset,
      timestampMs: Math.max(0, brokersMs ?? firstMs + Number(timestampDelta)),
      key: key ?? undefined,
      value: value ?? nothing,
      headers: isNamed(headers)
        ? headers
        : headers.map(([name, text]) => [name ?? nothing, text ?? null]),
    }
    if (!value) record.isNull = true
    if (brokersMs !== undefined) record.isAppendTime = true
    stored.push(record)
  }
}

const nothing = Buffer.alloc(0)

function isNamed(headers: Headers): headers is [Buffer, Buffer | null][] {
  return headers.every(([name, text]) => name && text !== undefined)
}
