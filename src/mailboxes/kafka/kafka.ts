import type { Admin, BaseOptions } from '@platformatic/kafka'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  MailboxResolver,
  OutgoingMessage,
} from '../../mailbox.ts'
import { mailbox } from '../mailbox.ts'
import { sizeOf } from '../../backends/kafka/record.ts'
import { settingsIn } from '../../backends/kafka/address.ts'
import { configsOf, createTopic, partitionsOf } from '../../backends/kafka/topics.ts'
import { Cluster } from '../../backends/kafka/cluster.ts'
import { readerOf, type Fetcher } from '../../backends/kafka/fetcher.ts'
import { keyOf, type Place } from '../../backends/kafka/group.ts'
import type { Entry, Part } from '../../backends/kafka/holding.ts'
import { Intake } from '../../backends/kafka/intake.ts'
import { topicOf } from '../../backends/kafka/mailbox-naming.ts'
import {
  copyOf,
  deliveryOf,
  openedOf,
  writtenOf,
  type Memory,
} from '../../backends/kafka/packing.ts'
import { done, Progress } from '../../backends/kafka/progress.ts'
import { Sender } from '../../backends/kafka/sender.ts'

export interface KafkaMailboxOptions {
  name: string
  /**
   * `kafka://user:password@host:9092,other:9092`, or `kafkas://` over TLS. The settings from `prefix` to `replicas` may also stand in it,
   * behind a question mark.
   */
  url: string
  clock?: Clock
  resolver?: MailboxResolver
  /** More for the connection: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /** What names of topics and groups begin with. `redrive.` unless said. */
  prefix?: string
  /** How many processes can receive at once; order holds within each alone. 1 unless said. Only when the topic is created. */
  partitions?: number
  /** On how many brokers each message lies. What the cluster says unless said. Only when the topic is created. */
  replicas?: number
  /**
   * Messages older than this are removed when they are received. Default: 0, they are kept for ever. The topic is created without a
   * retention of its own.
   */
  retentionSeconds?: number
  /** Has the cluster delete what is done with. True unless said; false where others read the topic too. */
  trims?: boolean
  /** A process that says nothing for so long is given up, and its partitions go to others. 10 seconds unless said. */
  sessionMs?: number
  /** How long a call may take. 5 seconds unless said. */
  timeoutMs?: number
}

const optionKeys = keysOf<KafkaMailboxOptions>({
  name: true,
  url: true,
  clock: true,
  resolver: true,
  connection: true,
  prefix: true,
  partitions: true,
  replicas: true,
  retentionSeconds: true,
  trims: true,
  sessionMs: true,
  timeoutMs: true,
})

/** A mailbox in Kafka: a topic, and a consumer group of the same name. */
export function kafkaMailbox(options: KafkaMailboxOptions): Mailbox {
  checkKeys('kafka mailbox options', options, optionKeys, {
    code: 'INVALID_CONFIG',
    renamed: { retentionHours: 'retentionSeconds' },
  })
  const settings = { ...settingsIn(options.url), ...options }
  const { clock = systemClock, resolver, retentionSeconds = 0 } = settings
  const driver = new KafkaMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** A topic takes 1,048,588 bytes unless it was told otherwise, with everything. */
const maxBytes = 1_000_000
const roomForHeaders = 16 * 1024
/** How often what is done with is deleted. */
const trimMs = 30_000

class KafkaMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers
  readonly #options: KafkaMailboxOptions
  readonly #clock: Clock
  readonly #topic: string
  readonly #cluster: Cluster
  readonly #sender: Sender
  readonly #intake: Intake
  /** For what is asked beside receiving. */
  readonly #reader: Fetcher
  #admin: Admin
  readonly #trimmed = new Map<string, { atMs: number; offset: number }>()
  #places: Place[] = []

  constructor(options: KafkaMailboxOptions, clock: Clock) {
    checkOptions(options)
    const {
      name,
      url,
      prefix = 'redrive.',
      partitions = 1,
      timeoutMs = 5000,
      sessionMs = 10_000,
    } = options
    this.name = name
    this.powers = powersWith(partitions)
    this.#options = options
    this.#clock = clock
    const topic = (this.#topic = topicOf(prefix, name))
    const { connection } = options
    const clientId = 'redrive'
    const settings = { url, clock, timeoutMs, clientId, ...(connection ? { connection } : {}) }
    const cluster = (this.#cluster = new Cluster(settings))
    this.#sender = new Sender(cluster)
    this.#intake = new Intake({
      cluster,
      topics: [topic],
      groupId: topic,
      sessionMs,
      moveOn: (entry) => this.#copy(entry, entry.opened),
      passed: (part) => this.#trim(part),
    })
    this.#reader = readerOf(cluster)
    this.#admin = cluster.admin()
  }

  async open(): Promise<void> {
    try {
      await this.#prepare()
    } catch (error) {
      // Its connections would keep the process alive, and a client that was closed cannot be used again.
      await this.#admin.close().catch(() => {})
      this.#admin = this.#cluster.admin()
      throw error
    }
  }

  async #prepare(): Promise<void> {
    await this.#create()
    const count = await partitionsOf(this.#cluster, this.#admin, this.#topic)
    this.#places = Array.from({ length: count }, (_, partition) => ({
      topic: this.#topic,
      partition,
    }))
    Object.assign(this.powers, powersWith(count))
    await this.#sender.open(this.#topic)
  }

  async close(): Promise<void> {
    await this.#intake.close()
    await this.#sender.close()
    await this.#reader.close()
    await this.#admin.close().catch(() => {})
  }

  async send(parcel: OutgoingMessage, delayMs: number): Promise<void> {
    const notBeforeMs = delayMs > 0 ? Math.ceil(this.#clock.now() + delayMs) : 0
    const written = writtenOf(parcel, notBeforeMs)
    const size = sizeOf(written)
    if (size > maxBytes)
      throw new RedriveError(
        'TOO_LARGE',
        `the body and its headers have ${size} bytes, kafka takes ${maxBytes}: send a reference to it instead`,
      )
    await this.#sender.send({ topic: this.#topic, written })
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    return this.#intake.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    const held = this.#intake.holding.take(receipt)
    if (!held) return false
    try {
      return await this.#intake.finish(held)
    } catch (error) {
      this.#intake.holding.restore(held)
      throw error
    }
  }

  /** A copy that remembers goes to the end, and then the message is done with. Whatever ends us in between leaves both, never none. */
  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const { holding } = this.#intake
    const held = holding.take(receipt)
    if (!held) return false
    const { entry, deliveries } = held
    const { part, opened, firstReceivedMs } = entry
    try {
      // Asked first, so that no copy is made by somebody who has lost the partition without knowing.
      if (held.isDone || !(await this.#intake.commit(part))) {
        holding.release(part)
        return false
      }
      const memory: Memory = {
        // What was not tried was no delivery.
        deliveries: deliveries - Number(!how.failed),
        failures: opened.failures + Number(how.failed),
        enqueuedMs: opened.enqueuedMs,
        notBeforeMs: how.delayMs > 0 ? Math.ceil(this.#clock.now() + how.delayMs) : 0,
      }
      if (firstReceivedMs !== undefined) memory.firstReceivedMs = firstReceivedMs
      await this.#copy(entry, memory)
    } catch (error) {
      holding.restore(held)
      throw error
    }
    // The copy is there; if this fails, the broker hears it with the next commit.
    await this.#intake.finish(held).catch(() => holding.release(part))
    return true
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#intake.holding.extend(receipt, ms)
  }

  /** Partition by partition. */
  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const start = placeIn(after)
    const found: Delivery[] = []
    let last = after
    for (const { place, progress, first, next } of await this.#known()) {
      if (place.partition < start.partition) continue
      let at = Math.max(progress.base, first, place.partition === start.partition ? start.from : 0)
      while (at < next) {
        const { records, to } = await this.#cluster.call(() => this.#reader.read(place, at))
        for (const stored of records) {
          const mark = progress.markOf(stored.offset)
          if (mark === done) continue
          if (found.length === limit) return last === undefined ? { found } : { found, after: last }
          const opened = openedOf(stored)
          const deliveries = opened.deliveries + mark
          const firstReceivedMs = opened.firstReceivedMs ?? this.#clock.now()
          found.push(deliveryOf(opened, { receipt: '', deliveries, firstReceivedMs }))
          last = `${stored.partition}:${stored.offset}`
        }
        if (to <= at) break
        at = to
      }
    }
    return { found }
  }

  async purge(): Promise<number> {
    const known = await this.#known()
    const ends = new Map(known.map(({ place, next }) => [place.partition, next]))
    const partitions = known.map(({ place: { partition }, next }) => ({
      partition,
      offset: BigInt(next),
    }))
    const topics = [{ name: this.#topic, partitions }]
    await this.#cluster.call(() => this.#admin.deleteRecords({ topics }))
    await this.#intake.forgetBefore(ends)
    return sum(known.map(waitingIn))
  }

  async count(): Promise<number> {
    return sum((await this.#known()).map(waitingIn))
  }

  async health(): Promise<MailboxHealth> {
    const { brokers } = await this.#cluster.call(() =>
      this.#admin.metadata({ topics: [this.#topic], forceUpdate: true }),
    )
    const checks = {
      brokers: String(brokers.size),
      topic: this.#topic,
      partitions: String(this.#places.length),
      messages: String(await this.count()),
    }
    const configs = await configsOf(this.#cluster, this.#admin, [this.#topic])
    const problems = problemsOf(this.#topic, configs.get(this.#topic) ?? new Map())
    return { ok: problems.length === 0, checks, problems }
  }

  /** A topic that exists stays as it is. */
  async #create(): Promise<void> {
    const { partitions = 1, replicas = -1 } = this.#options
    const topics = await this.#cluster.call(() => this.#admin.listTopics())
    if (topics.includes(this.#topic)) return
    await createTopic(this.#cluster, this.#admin, {
      topic: this.#topic,
      partitions,
      replicas,
      configs: keepsForEver,
    })
  }

  /** How far each partition is, by what the broker has. */
  async #known(): Promise<Known[]> {
    const places = this.#places
    const positions = await this.#cluster.call(() => this.#intake.group.positions(places))
    const bounds = await this.#cluster.call(() => this.#reader.bounds(places))
    return places.map((place, at) => {
      const { first, next } = bounds[at]!
      return { place, progress: Progress.of(positions[at]!, first), first, next }
    })
  }

  async #copy({ part, stored, opened }: Entry, memory: Memory): Promise<void> {
    const { deliveries, failures, enqueuedMs, notBeforeMs, firstReceivedMs } = memory
    const kept: Memory = { deliveries, failures, enqueuedMs, notBeforeMs }
    if (firstReceivedMs !== undefined) kept.firstReceivedMs = firstReceivedMs
    const { topic, partition } = part
    await this.#sender.send({ topic, partition, written: copyOf(stored, opened, kept) })
  }

  /** Not waited for: it comes again with the next. */
  #trim(part: Part): void {
    if (this.#options.trims === false) return
    const key = keyOf(part)
    const offset = part.progress.base
    const last = this.#trimmed.get(key) ?? { atMs: this.#clock.mono(), offset: 0 }
    this.#trimmed.set(key, last)
    if (offset <= last.offset || this.#clock.mono() - last.atMs < trimMs) return
    this.#trimmed.set(key, { atMs: this.#clock.mono(), offset })
    const partitions = [{ partition: part.partition, offset: BigInt(offset) }]
    const topics = [{ name: this.#topic, partitions }]
    this.#admin.deleteRecords({ topics }).catch(() => {})
  }
}

/** Overrides the cluster's defaults, by which Kafka would delete messages without reporting it: 7 days, mostly. */
const keepsForEver = { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' }

/** What would lose messages, in settings of a topic that others have created. */
function problemsOf(topic: string, configs: ReadonlyMap<string, string>): string[] {
  const set = (name: string): string => `${name}=${configs.get(name)}`
  const problems: string[] = []
  for (const name of ['retention.ms', 'retention.bytes'])
    if (Number(configs.get(name) ?? -1) >= 0)
      problems.push(`the topic ${topic} deletes messages by itself (${set(name)}): set ${name}=-1`)
  if (configs.get('cleanup.policy')?.includes('compact'))
    problems.push(
      `the topic ${topic} keeps only the last message of each key (${set('cleanup.policy')}): set cleanup.policy=delete`,
    )
  return problems
}

interface Known {
  place: Place
  progress: Progress
  first: number
  next: number
}

function waitingIn({ progress, next }: Known): number {
  return Math.max(0, next - progress.base - progress.doneAhead)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function powersWith(partitions: number): MailboxPowers {
  return {
    kind: 'kafka',
    durable: true,
    // Several processes may receive, but each has partitions of its own: what waits in one is not there for all.
    shared: false,
    visibility: true,
    extend: true,
    delay: true,
    remembers: true,
    exactDeliveries: true,
    ordered: partitions === 1,
    // What transactions and compaction leave behind counts too.
    exactCount: false,
    purge: true,
    browse: true,
    deduplicates: false,
    maxBodyBytes: maxBytes - roomForHeaders,
  }
}

function placeIn(after: string | undefined): { partition: number; from: number } {
  if (after === undefined) return { partition: 0, from: 0 }
  const [, partition, offset] = /^(\d{1,6}):(\d{1,15})$/.exec(after) ?? []
  if (partition === undefined)
    throw new RedriveError('INVALID_INPUT', 'after must be what an earlier page said')
  return { partition: Number(partition), from: Number(offset) + 1 }
}

function checkOptions(options: KafkaMailboxOptions): void {
  const { prefix = '', partitions = 1, replicas = 1 } = options
  const { timeoutMs = 1, sessionMs = 1 } = options
  if (!/^[A-Za-z0-9._-]{0,60}$/.test(prefix))
    throw invalid('prefix has letters, digits, dots, _ and -, 60 characters at the most')
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > 10_000)
    throw invalid(`partitions must be a whole number from 1 to 10000, not ${partitions}`)
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 100)
    throw invalid(`replicas must be a whole number from 1 to 100, not ${replicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be above 0, not ${timeoutMs}`)
  if (!(sessionMs > 0)) throw invalid(`sessionMs must be above 0, not ${sessionMs}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
