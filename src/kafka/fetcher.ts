import type { Consumer } from '@platformatic/kafka'
import { sleep } from '../clock.ts'
import type { RedriveError } from '../errors.ts'
import type { Cluster } from './cluster.ts'
import { keyOf, type Place } from './group.ts'
import type { Stored } from './record.ts'
import { isRefusal } from './trouble.ts'

/** A partition that is read from its position on, as long as there is room. */
export interface Reading extends Place {
  position: number
  hasRoom: () => boolean
  /** All records from one position up to the other. Nothing before `first` exists any more. */
  arrived: (records: Stored[], from: number, to: number, first: number) => void
}

type FetchResponse = Awaited<ReturnType<Consumer['fetch']>>
type FetchedPartition = FetchResponse['responses'][number]['partitions'][number]
type Batch = NonNullable<FetchedPartition['records']>[number]

export interface FetcherOptions {
  cluster: Cluster
  groupId: string
  trouble: (error: RedriveError) => void
  /** The brokers answer. */
  well: () => void
}

/** How long a broker waits for the first record. Partitions that are added or have room again wait for that too. */
const waitMs = 500
const maxBytes = 4 * 1024 ** 2
const maxBytesPerPartition = 1024 ** 2
const longestRetryMs = 2000
/** In the attributes of a batch: it is the broker's own; its times are. */
const control = 0x20
const brokersTime = 0x08

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

  /** The first and the next offset of each partition. */
  async bounds(places: readonly Place[]): Promise<{ first: number; next: number }[]> {
    const topics = [...new Set(places.map(({ topic }) => topic))]
    const first = await this.#consumer.listOffsets({ topics, timestamp: -2n })
    const next = await this.#consumer.listOffsets({ topics, timestamp: -1n })
    return places.map(({ topic, partition }) => ({
      first: Number(first.get(topic)?.[partition] ?? 0),
      next: Number(next.get(topic)?.[partition] ?? 0),
    }))
  }

  /** What lies in a partition from there on, as much as comes at once. */
  async read(
    { topic, partition }: Place,
    from: number,
  ): Promise<{ records: Stored[]; to: number }> {
    let found = { records: [] as Stored[], to: from }
    const arrived: Reading['arrived'] = (records, _, to) => (found = { records, to })
    const reading = { topic, partition, position: from, hasRoom: () => true, arrived }
    if (!this.#consumer.topics.has(topic)) this.#consumer.topics.track(topic)
    const { topics } = await this.#consumer.metadata({ topics: [topic] })
    const node = topics.get(topic)?.partitions[partition]?.leader ?? -1
    this.#take(await this.#ask(node, [reading], 0), [reading], await this.#names([reading]))
    return found
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#options.cluster.call(() => this.#consumer.close(true)).catch(() => {})
  }

  async #plan(): Promise<void> {
    const wanted = [...this.#readings.values()].filter((reading) => reading.hasRoom())
    try {
      if (wanted.length === 0) return
      const names = [...new Set(wanted.map(({ topic }) => topic))]
      const { topics } = await this.#consumer.metadata({ topics: names })
      const leader = ({ topic, partition }: Place): number =>
        topics.get(topic)?.partitions[partition]?.leader ?? -1
      for (const [node, readings] of Map.groupBy(wanted, leader))
        if (node >= 0 && !this.#busy.has(node)) void this.#fetch(node, readings)
    } catch (error) {
      void this.#fail(error)
    } finally {
      this.#isPlanning = false
    }
  }

  async #fetch(node: number, readings: Reading[]): Promise<void> {
    const { cluster, trouble, well } = this.#options
    this.#busy.add(node)
    // The client may try again for long. Those who wait hear of it in time, and this goes on.
    const late = (): void => trouble(cluster.trouble(new Error(`broker ${node} does not answer`)))
    const cancel = cluster.clock.timer(waitMs + cluster.timeoutMs, late)
    try {
      const names = await this.#names(readings)
      const asked = await this.#ask(node, readings, waitMs)
      this.#failures = 0
      well()
      this.#take(asked, readings, names)
    } catch (error) {
      if (isRefusal(error, 'OFFSET_OUT_OF_RANGE')) await this.#seat(readings)
      else await this.#fail(error)
    } finally {
      cancel()
      this.#busy.delete(node)
      this.wake()
    }
  }

  /** The names of topics by their ids. */
  async #names(readings: readonly Reading[]): Promise<Map<string, string>> {
    const names = [...new Set(readings.map(({ topic }) => topic))]
    const { topics } = await this.#consumer.metadata({ topics: names })
    return new Map([...topics].map(([name, { id }]) => [id, name]))
  }

  async #ask(node: number, readings: Reading[], maxWaitTime: number): Promise<FetchResponse> {
    const ids = new Map([...(await this.#names(readings))].map(([id, name]) => [name, id]))
    const topics = [...Map.groupBy(readings, ({ topic }) => topic)].map(([topic, parts]) => ({
      topicId: ids.get(topic) ?? '',
      partitions: parts.map(({ partition, position }) => ({
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: BigInt(position),
        lastFetchedEpoch: -1,
        partitionMaxBytes: maxBytesPerPartition,
      })),
    }))
    return this.#consumer.fetch({ node, topics, maxWaitTime, minBytes: 1, maxBytes })
  }

  #take(
    { responses }: FetchResponse,
    readings: readonly Reading[],
    names: ReadonlyMap<string, string>,
  ): void {
    const byKey = new Map(readings.map((reading) => [keyOf(reading), reading]))
    for (const { topicId, partitions } of responses)
      for (const found of partitions) {
        const topic = names.get(topicId) ?? ''
        const reading = byKey.get(keyOf({ topic, partition: found.partitionIndex }))
        if (reading) deliver(reading, found)
      }
  }

  /** What was wanted is gone, or never was: reads on from where there is something. */
  async #seat(readings: Reading[]): Promise<void> {
    try {
      const bounds = await this.bounds(readings)
      for (const [at, reading] of readings.entries()) {
        const { first, next } = bounds[at]!
        const from = reading.position
        reading.position = Math.min(Math.max(from, first), next)
        if (reading.position > from) reading.arrived([], from, reading.position, first)
      }
    } catch (error) {
      await this.#fail(error)
    }
  }

  async #fail(error: unknown): Promise<void> {
    const { cluster, trouble } = this.#options
    if (this.#closing.signal.aborted) return
    trouble(cluster.trouble(error))
    const waitMs = Math.min(100 * 2 ** this.#failures++, longestRetryMs)
    await sleep(cluster.clock, waitMs * (0.5 + cluster.clock.random()), this.#closing.signal)
    this.wake()
  }
}

function deliver(reading: Reading, { records, logStartOffset }: FetchedPartition): void {
  const from = reading.position
  const stored: Stored[] = []
  for (const batch of records ?? []) {
    reading.position = Number(batch.firstOffset) + batch.lastOffsetDelta + 1
    if (batch.attributes & control) continue
    for (const record of batch.records) {
      const offset = Number(batch.firstOffset) + record.offsetDelta
      if (offset >= from) stored.push(storedOf(reading, batch, record, offset))
    }
  }
  const first = Number(logStartOffset)
  if (reading.position > from || first > 0) reading.arrived(stored, from, reading.position, first)
}

function storedOf(
  { topic, partition }: Place,
  batch: Batch,
  { key, value, headers, timestampDelta }: Batch['records'][number],
  offset: number,
): Stored {
  const time =
    batch.attributes & brokersTime ? batch.maxTimestamp : batch.firstTimestamp + timestampDelta
  return {
    topic,
    partition,
    offset,
    timestampMs: Math.max(0, Number(time)),
    key: key ?? undefined,
    value: value ?? Buffer.alloc(0),
    headers: headers.map(([name, text]) => [name ?? Buffer.alloc(0), text ?? Buffer.alloc(0)]),
  }
}
