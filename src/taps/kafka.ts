import type { BaseOptions } from '@platformatic/kafka'
import { createHash } from 'node:crypto'
import { sleep, systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { Cluster } from '../backends/kafka/cluster.ts'
import { Intake } from '../backends/kafka/intake.ts'
import type { Stored } from '../backends/kafka/record.ts'
import { Sender } from '../backends/kafka/sender.ts'
import { sendTo } from './returned-message.ts'
import { foreignLetterOf, homewardOf } from './kafka-letter.ts'
import { allStored, PollLoop } from './poll-loop.ts'
import type { Keep, ReturnedLetter, Tap } from './tap.ts'

export interface KafkaTapOptions {
  /** `kafka://user:password@host:9092,other:9092`, or `kafkas://` over TLS. */
  url: string
  /** Dead letter topics: their names, which must be there, or a pattern that whole names match, also those of later topics. */
  topics: readonly string[] | RegExp
  keep: Keep
  /** All taps of one group share the work. Made from `topics` unless said. */
  groupId?: string
  clock?: Clock
  /** More for the connection: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /** Hears what failed. It is tried again by itself. */
  onError?: (error: unknown) => void
  /** A process that says nothing for so long is given up, and others read on. 10 seconds unless said. */
  sessionMs?: number
  /** How often topics are looked for that match the pattern. A minute unless said. */
  lookEveryMs?: number
  /** How long a call may take. 5 seconds unless said. */
  timeoutMs?: number
}

/**
 * Reads dead letter topics, such as Spring Kafka and Kafka Connect write. What was kept is committed, and what was not comes again. The
 * topics stay as they are, for others who read them.
 */
export function kafkaTap(options: KafkaTapOptions): Tap {
  const { keep } = options
  return recordTap({ ...options, take: (record) => keep(foreignLetterOf(record)) })
}

export interface RecordTapOptions extends Omit<KafkaTapOptions, 'keep'> {
  /** Resolves once the record is kept for good, or needs no keeping. A rejection brings it again. */
  take: (record: Stored) => Promise<void>
}

/** The same for records that are no letters of others. */
export function recordTap(options: RecordTapOptions): Tap {
  return new KafkaTap(options)
}

const maxAtOnce = 10
const pollMs = 20_000
const againMs = 250
/** Whoever keeps has as long as it takes: what ends it is the end of the process, or of the membership. */
const forLong = 12 * 3600 * 1000

class KafkaTap implements Tap {
  readonly #options: RecordTapOptions
  readonly #clock: Clock
  readonly #cluster: Cluster
  readonly #sender: Sender
  #starting: Promise<void> | undefined
  #loop: PollLoop | undefined
  #topics: readonly string[] = []
  #intake: Intake | undefined
  #lookAtMs = 0
  #stopped = false

  constructor(options: RecordTapOptions) {
    const { url, topics, connection, clock = systemClock, timeoutMs = 5000 } = options
    if (!(topics instanceof RegExp) && topics.length === 0)
      throw new RedriveError('INVALID_INPUT', 'name at least one dead letter topic, or a pattern')
    this.#options = options
    this.#clock = clock
    const settings = { url, clock, timeoutMs, clientId: 'redrive-tap' }
    this.#cluster = new Cluster(connection ? { ...settings, connection } : settings)
    this.#sender = new Sender(this.#cluster)
  }

  async start(): Promise<void> {
    this.#starting ??= this.#look().catch((error: unknown) => {
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
    await this.#intake?.close()
    await this.#sender.close()
  }

  /**
   * To the topic that it was in: all who read that topic get it again. With a key, to the partition of the key, where all others with that
   * key are; without one, to the partition that it was in, if that is still there.
   */
  async returnToSource(letter: ReturnedLetter, generation: number): Promise<void> {
    const { topic, partition = '' } = letter.origin
    if (topic === undefined)
      throw new RedriveError('INVALID_INPUT', 'the origin of this letter names no topic')
    const written = homewardOf(letter, generation)
    await sendTo(`the topic ${topic}`, async () => {
      const isKeyless = written.key === undefined && /^\d{1,6}$/.test(partition)
      const isThere = isKeyless && Number(partition) < (await this.#sender.partitionsOf(topic))
      const to = isThere ? { partition: Number(partition) } : {}
      await this.#sender.send({ topic, written, ...to })
    })
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { topics, lookEveryMs = 60_000 } = this.#options
    const isPattern = topics instanceof RegExp
    if (isPattern && this.#clock.mono() - this.#lookAtMs > lookEveryMs) await this.#look()
    const intake = this.#intake
    const waitMs = isPattern ? Math.min(pollMs, lookEveryMs) : pollMs
    if (!intake) return sleep(this.#clock, waitMs, signal)
    const got = await intake.receive({ max: maxAtOnce, visibilityMs: forLong, waitMs, signal })
    const carrying = got.map(({ receipt }) => this.#carry(intake, receipt))
    // What failed waits here, and would come again at once.
    if (!(await allStored(carrying, this.#options.onError)))
      await sleep(this.#clock, againMs, signal)
  }

  /** Committed only once it is kept. Somebody else may have it by then, and keep it a second time. */
  async #carry(intake: Intake, receipt: string): Promise<void> {
    const held = intake.holding.take(receipt)
    if (!held) return
    try {
      await this.#options.take(held.entry.stored)
    } catch (error) {
      intake.giveBack(held)
      throw error
    }
    await intake.finish(held)
  }

  /** Finds the topics, and reads from them if they are others than before. */
  async #look(): Promise<void> {
    this.#lookAtMs = this.#clock.mono()
    const topics = await this.#found()
    if (topics.join() === this.#topics.join()) return
    await this.#intake?.close()
    this.#intake = undefined
    this.#topics = topics
    if (topics.length === 0) return
    const { sessionMs = 10_000 } = this.#options
    const moveOn = (): Promise<void> =>
      Promise.reject(new Error('dead letters stay in their place'))
    this.#intake = new Intake({
      cluster: this.#cluster,
      groupId: this.#groupId(),
      topics,
      sessionMs,
      moveOn,
      passed: () => {},
    })
  }

  async #found(): Promise<string[]> {
    const { topics } = this.#options
    const admin = this.#cluster.admin()
    try {
      const there = await this.#cluster.call(() => admin.listTopics())
      if (topics instanceof RegExp)
        return there.filter((topic) => isWhole(topics, topic)).toSorted()
      const missing = topics.filter((topic) => !there.includes(topic))
      if (missing.length === 0) return [...topics]
      throw new RedriveError(
        'MAILBOX_UNAVAILABLE',
        `kafka ${this.#cluster.place}: there is no topic ${missing.join(', ')}`,
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

function isWhole(pattern: RegExp, topic: string): boolean {
  return new RegExp(`^(?:${pattern.source})$`, pattern.flags.replaceAll(/[gy]/g, '')).test(topic)
}
