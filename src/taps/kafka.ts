import type { BaseOptions } from '@platformatic/kafka'
import { createHash } from 'node:crypto'
import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { Cluster } from '../backends/kafka/cluster.ts'
import { Receiver } from '../backends/kafka/receiver.ts'
import type { StoredRecord } from '../backends/kafka/record.ts'
import { Sender } from '../backends/kafka/sender.ts'
import { sendTo } from './returned-message.ts'
import { toForeignLetter, toOriginalRecord } from './kafka-letter.ts'
import { allStored, PollLoop } from './poll-loop.ts'
import type { Keep, ReturnedLetter, Tap } from './tap.ts'

export interface KafkaTapOptions {
  /** `kafka://user:password@host:9092,other:9092`, or `kafkas://` for TLS. */
  url: string
  /**
   * Dead letter topics: names of existing topics, or a pattern that matches whole names, also of
   * topics that are created later.
   */
  topics: readonly string[] | RegExp
  keep: Keep
  /** Taps with the same group share the work. Default: derived from `topics`. */
  groupId?: string
  clock?: Clock
  /** More options for the client: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /** Receives errors. The tap retries. */
  onError?: (error: unknown) => void
  /** A process without a heartbeat for so long loses its partitions. Default: 10 seconds. */
  sessionMs?: number
  /** How often the tap lists the topics that match the pattern. Default: one minute. */
  lookEveryMs?: number
  /** Time limit of one call. Default: 5 seconds. */
  timeoutMs?: number
}

/**
 * Reads dead letter topics of Spring Kafka, Kafka Connect and others. Commits a record after it is
 * stored as a letter; other records are read again. Does not change the topics.
 */
export function kafkaTap(options: KafkaTapOptions): Tap {
  const { keep } = options
  return recordTap({ ...options, take: (record) => keep(toForeignLetter(record)) })
}

export interface RecordTapOptions extends Omit<KafkaTapOptions, 'keep'> {
  /** Resolves when the record is stored or needs no storing. After a rejection it is read again. */
  take: (record: StoredRecord) => Promise<void>
}

/** A tap for records that are not dead letters of another system. */
export function recordTap(options: RecordTapOptions): Tap {
  return new KafkaTap(options)
}

const batchSize = 10
const pollMs = 20_000
const retryMs = 250
/** No time limit for `take`: the record is read again after the process or its membership ends. */
const visibilityMs = 12 * 3600 * 1000

class KafkaTap implements Tap {
  readonly #options: RecordTapOptions
  readonly #clock: Clock
  readonly #cluster: Cluster
  readonly #sender: Sender
  #starting: Promise<void> | undefined
  #loop: PollLoop | undefined
  #topics: readonly string[] = []
  #receiver: Receiver | undefined
  #listedMs = 0
  #stopped = false

  constructor(options: RecordTapOptions) {
    const { url, topics, connection, clock = systemClock, timeoutMs = 5000 } = options
    if (!(topics instanceof RegExp) && topics.length === 0)
      throw new RedriveError(
        'INVALID_INPUT',
        'topics must be a list of at least one dead letter topic, or a pattern',
      )
    this.#options = options
    this.#clock = clock
    const settings = { url, clock, timeoutMs, clientId: 'redrive-tap' }
    this.#cluster = new Cluster(connection ? { ...settings, connection } : settings)
    this.#sender = new Sender(this.#cluster)
  }

  async start(): Promise<void> {
    this.#starting ??= this.#updateTopics().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    await this.#starting
    if (this.#stopped) return
    this.#loop ??= new PollLoop(this.#clock, (signal) => this.#turn(signal), this.#options.onError)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#loop?.stop()
    await this.#starting?.catch(() => {})
    await this.#receiver?.close()
    await this.#sender.close()
  }

  /**
   * Sends the record to its original topic: to the partition of its key, or without a key to its
   * original partition if that exists. All consumers of the topic receive it again.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { topic, partition = '' } = letter.origin
    if (topic === undefined)
      throw new RedriveError(
        'INVALID_INPUT',
        'this letter cannot be returned: its origin has no topic',
      )
    const record = toOriginalRecord(letter, generation)
    await sendTo(`the topic ${topic}`, async () => {
      const isKeyless = record.key === undefined && /^\d{1,6}$/.test(partition)
      const exists = isKeyless && Number(partition) < (await this.#sender.countPartitions(topic))
      await this.#sender.send({
        topic,
        record,
        ...(exists ? { partition: Number(partition) } : {}),
      })
    })
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { topics, lookEveryMs = 60_000 } = this.#options
    const isPattern = topics instanceof RegExp
    if (isPattern && this.#clock.mono() - this.#listedMs > lookEveryMs) await this.#updateTopics()
    const receiver = this.#receiver
    const waitMs = isPattern ? Math.min(pollMs, lookEveryMs) : pollMs
    if (!receiver) return sleep(this.#clock, waitMs, signal)
    const received = await receiver.receive({ max: batchSize, visibilityMs, waitMs, signal })
    const taking = received.map(({ receipt }) => this.#take(receiver, receipt))
    // Records that failed are ready again at once.
    if (!(await allStored(taking, this.#options.onError))) await sleep(this.#clock, retryMs, signal)
  }

  /** Commits after the record is stored. Another member may have it by then and store it again. */
  async #take(receiver: Receiver, receipt: string): Promise<void> {
    const lease = receiver.leases.take(receipt)
    if (!lease) return
    try {
      await this.#options.take(lease.entry.record)
    } catch (error) {
      receiver.giveBack(lease)
      throw error
    }
    await receiver.finish(lease)
  }

  /** Lists the topics, and creates a new receiver if they have changed. */
  async #updateTopics(): Promise<void> {
    this.#listedMs = this.#clock.mono()
    const topics = await this.#listTopics()
    if (topics.join() === this.#topics.join()) return
    await this.#receiver?.close()
    this.#receiver = undefined
    this.#topics = topics
    if (topics.length === 0) return
    const { sessionMs = 10_000 } = this.#options
    this.#receiver = new Receiver({
      cluster: this.#cluster,
      groupId: this.#groupId(),
      topics,
      sessionMs,
      moveToEnd: () => Promise.reject(new Error('a tap does not move records')),
      onCommitted: () => {},
    })
  }

  async #listTopics(): Promise<string[]> {
    const { topics } = this.#options
    const admin = this.#cluster.admin()
    try {
      const existing = await this.#cluster.call(() => admin.listTopics())
      if (topics instanceof RegExp)
        return existing.filter((topic) => matchesWhole(topics, topic)).toSorted()
      const missing = topics.filter((topic) => !existing.includes(topic))
      if (missing.length === 0) return [...topics]
      throw new RedriveError(
        'MAILBOX_UNAVAILABLE',
        `kafka ${this.#cluster.hosts}: there is no topic ${missing.join(', ')}`,
      )
    } finally {
      await admin.close().catch(() => {})
    }
  }

  #groupId(): string {
    const { groupId, topics } = this.#options
    if (groupId !== undefined) return groupId
    const all = topics instanceof RegExp ? String(topics) : topics.toSorted().join(',')
    return `redrive-tap-${createHash('sha256').update(all).digest('hex').slice(0, 16)}`
  }
}

function matchesWhole(pattern: RegExp, topic: string): boolean {
  return new RegExp(`^(?:${pattern.source})$`, pattern.flags.replaceAll(/[gy]/g, '')).test(topic)
}
