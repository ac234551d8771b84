import type { Admin } from '@platformatic/kafka'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type {
  ReceiveRequest,
  Delivery,
  Mailbox,
  MailboxDriver,
  MailboxHealth,
  MailboxPowers,
  OutgoingMessage,
} from '../../mailbox.ts'
import { mailbox } from '../mailbox.ts'
import { parseUrlSettings } from '../../backends/kafka/address.ts'
import { Cluster } from '../../backends/kafka/cluster.ts'
import { Fetcher } from '../../backends/kafka/fetcher.ts'
import { listCommittedOffsets } from '../../backends/kafka/group.ts'
import type { MailboxPartition, PendingRecord } from '../../backends/kafka/leases.ts'
import {
  copyRecord,
  decodeMessage,
  encodeMessage,
  toDelivery,
  type MessageState,
} from '../../backends/kafka/message-format.ts'
import { done, Progress } from '../../backends/kafka/progress.ts'
import { Receiver } from '../../backends/kafka/receiver.ts'
import { partitionKey, recordSize, type TopicPartition } from '../../backends/kafka/record.ts'
import { Sender } from '../../backends/kafka/sender.ts'
import {
  countPartitions,
  createTopic,
  mailboxTopic,
  readConfigs,
} from '../../backends/kafka/topics.ts'
import {
  checkOptionKeys,
  checkOptionValues,
  createPowers,
  maxBytes,
  type KafkaMailboxOptions,
} from './options.ts'

export type { KafkaMailboxOptions }

/** A mailbox in Kafka: a topic, and a consumer group of the same name. */
export function kafkaMailbox(options: KafkaMailboxOptions): Mailbox {
  checkOptionKeys(options)
  const settings = { ...parseUrlSettings(options.url), ...options }
  const { clock = systemClock, resolver, retentionSeconds = 0 } = settings
  const driver = new KafkaMailbox(settings, clock)
  return mailbox(driver, { clock, retentionSeconds, ...(resolver ? { resolver } : {}) })
}

/** How often processed messages of a partition are deleted. */
const trimMs = 30_000

class KafkaMailbox implements MailboxDriver {
  readonly name: string
  readonly powers: MailboxPowers
  readonly #options: KafkaMailboxOptions
  readonly #clock: Clock
  readonly #topic: string
  readonly #cluster: Cluster
  readonly #sender: Sender
  readonly #receiver: Receiver
  /** Reads for `browse`, `count` and `purge`. */
  readonly #reader: Fetcher
  #admin: Admin
  readonly #trimmed = new Map<string, { atMs: number; offset: number }>()
  #partitions: TopicPartition[] = []

  constructor(options: KafkaMailboxOptions, clock: Clock) {
    checkOptionValues(options)
    const {
      name,
      url,
      prefix = 'redrive.',
      partitions = 1,
      timeoutMs = 5000,
      sessionMs = 10_000,
    } = options
    this.name = name
    this.powers = createPowers(partitions)
    this.#options = options
    this.#clock = clock
    const topic = (this.#topic = mailboxTopic(prefix, name))
    const { connection } = options
    const clientId = 'redrive'
    const settings = { url, clock, timeoutMs, clientId, ...(connection ? { connection } : {}) }
    const cluster = (this.#cluster = new Cluster(settings))
    this.#sender = new Sender(cluster)
    this.#receiver = new Receiver({
      cluster,
      topics: [topic],
      groupId: topic,
      sessionMs,
      moveToEnd: (entry) => this.#copy(entry, entry.message),
      onCommitted: (partition) => this.#trim(partition),
    })
    this.#reader = new Fetcher(cluster)
    this.#admin = cluster.admin()
  }

  async open(): Promise<void> {
    try {
      await this.#prepare()
    } catch (error) {
      // Open connections keep the process alive, and a closed client cannot be used again.
      await this.#admin.close().catch(() => {})
      this.#admin = this.#cluster.admin()
      throw error
    }
  }

  async #prepare(): Promise<void> {
    await this.#create()
    const topic = this.#topic
    const count = await countPartitions(this.#cluster, this.#admin, topic)
    this.#partitions = Array.from({ length: count }, (_, partition) => ({ topic, partition }))
    Object.assign(this.powers, createPowers(count))
  }

  async close(): Promise<void> {
    await this.#receiver.close()
    await this.#sender.close()
    await this.#reader.close()
    await this.#admin.close().catch(() => {})
  }

  async send(message: OutgoingMessage, delayMs: number): Promise<void> {
    const record = encodeMessage(message, this.#dueMs(delayMs))
    const size = recordSize(record)
    if (size > maxBytes)
      throw new RedriveError(
        'TOO_LARGE',
        `the body and its headers have ${size} bytes, the limit of kafka is ${maxBytes}: send a reference to the data instead`,
      )
    await this.#sender.send({ topic: this.#topic, record })
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    return this.#receiver.receive(ask)
  }

  async acknowledge(receipt: string): Promise<boolean> {
    const lease = this.#receiver.leases.take(receipt)
    if (!lease) return false
    try {
      return await this.#receiver.finish(lease)
    } catch (error) {
      this.#receiver.leases.restore(lease)
      throw error
    }
  }

  /** Sends a copy to the end of the partition, then finishes the record: a crash leaves both. */
  async nack(receipt: string, how: { delayMs: number; failed: boolean }): Promise<boolean> {
    const { leases } = this.#receiver
    const lease = leases.take(receipt)
    if (!lease) return false
    const { entry, deliveries } = lease
    const { partition, message, firstReceivedMs } = entry
    try {
      // Commit first: a member that has lost the partition must not make a copy.
      if (lease.isDone || !(await this.#receiver.commit(partition))) {
        leases.release(partition)
        return false
      }
      await this.#copy(entry, {
        // A delivery that was not tried does not count.
        deliveries: deliveries - Number(!how.failed),
        failures: message.failures + Number(how.failed),
        enqueuedMs: message.enqueuedMs,
        notBeforeMs: this.#dueMs(how.delayMs),
        ...(firstReceivedMs === undefined ? {} : { firstReceivedMs }),
      })
    } catch (error) {
      leases.restore(lease)
      throw error
    }
    // The copy exists. If this fails, the next commit stores that the record is done.
    await this.#receiver.finish(lease).catch(() => leases.release(partition))
    return true
  }

  async extend(receipt: string, ms: number): Promise<boolean> {
    return this.#receiver.leases.extend(receipt, ms)
  }

  /** Partition by partition. */
  async browse(
    after: string | undefined,
    limit: number,
  ): Promise<{ found: Delivery[]; after?: string }> {
    const start = parsePosition(after)
    const found: Delivery[] = []
    let last = after
    for (const { partition, progress, first, next } of await this.#inspect()) {
      if (partition.partition < start.partition) continue
      const from = partition.partition === start.partition ? start.offset : 0
      let at = Math.max(progress.base, first, from)
      while (at < next) {
        const { records, to } = await this.#cluster.call(() => this.#reader.read(partition, at))
        for (const record of records) {
          const state = progress.stateOf(record.offset)
          if (state === done) continue
          if (found.length === limit) return last === undefined ? { found } : { found, after: last }
          const message = decodeMessage(record)
          const deliveries = message.deliveries + state
          const firstReceivedMs = message.firstReceivedMs ?? this.#clock.now()
          found.push(toDelivery(message, { receipt: '', deliveries, firstReceivedMs }))
          last = `${record.partition}:${record.offset}`
        }
        if (to <= at) break
        at = to
      }
    }
    return { found }
  }

  async purge(): Promise<number> {
    const all = await this.#inspect()
    const ends = new Map(all.map(({ partition, next }) => [partition.partition, next]))
    const partitions = [...ends].map(([partition, next]) => ({ partition, offset: BigInt(next) }))
    const topics = [{ name: this.#topic, partitions }]
    await this.#cluster.call(() => this.#admin.deleteRecords({ topics }))
    await this.#receiver.deleteBefore(ends)
    return countWaiting(all)
  }

  async count(): Promise<number> {
    return countWaiting(await this.#inspect())
  }

  async health(): Promise<MailboxHealth> {
    const { brokers } = await this.#cluster.call(() =>
      this.#admin.metadata({ topics: [this.#topic], forceUpdate: true }),
    )
    const checks = {
      brokers: String(brokers.size),
      topic: this.#topic,
      partitions: String(this.#partitions.length),
      messages: String(await this.count()),
    }
    const configs = await readConfigs(this.#cluster, this.#admin, [this.#topic])
    const problems = findProblems(this.#topic, configs.get(this.#topic) ?? new Map())
    return { ok: problems.length === 0, checks, problems }
  }

  /** Does not change a topic that exists. */
  async #create(): Promise<void> {
    const { partitions = 1, replicas = -1 } = this.#options
    const topic = this.#topic
    const topics = await this.#cluster.call(() => this.#admin.listTopics())
    if (topics.includes(topic)) return
    const plan = { topic, partitions, replicas, configs: keepForever }
    await createTopic(this.#cluster, this.#admin, plan)
  }

  /** The state of each partition on the broker. */
  async #inspect(): Promise<PartitionState[]> {
    const partitions = this.#partitions
    const offsets = await this.#cluster.call(() =>
      listCommittedOffsets(this.#admin, this.#topic, partitions),
    )
    const bounds = await this.#cluster.call(() => this.#reader.bounds(partitions))
    return partitions.map((partition, at) => {
      const { first, next } = bounds[at]!
      const { offset, metadata } = offsets[at]!
      return { partition, progress: new Progress(offset, metadata, first), first, next }
    })
  }

  #dueMs(delayMs: number): number {
    return delayMs > 0 ? Math.ceil(this.#clock.now() + delayMs) : 0
  }

  async #copy({ partition, record, message }: PendingRecord, state: MessageState): Promise<void> {
    const { deliveries, failures, enqueuedMs, notBeforeMs, firstReceivedMs } = state
    const kept: MessageState = { deliveries, failures, enqueuedMs, notBeforeMs }
    if (firstReceivedMs !== undefined) kept.firstReceivedMs = firstReceivedMs
    const { topic, partition: number } = partition
    const copy = copyRecord(record, message, kept)
    await this.#sender.send({ topic, partition: number, record: copy })
  }

  /** Deletes processed messages. Errors are ignored: the next trim deletes them too. */
  #trim(partition: MailboxPartition): void {
    if (this.#options.trims === false) return
    const key = partitionKey(partition)
    const offset = partition.progress.base
    const atMs = this.#clock.mono()
    const last = this.#trimmed.get(key) ?? { atMs, offset: 0 }
    this.#trimmed.set(key, last)
    if (offset <= last.offset || atMs - last.atMs < trimMs) return
    this.#trimmed.set(key, { atMs, offset })
    const partitions = [{ partition: partition.partition, offset: BigInt(offset) }]
    const topics = [{ name: this.#topic, partitions }]
    this.#admin.deleteRecords({ topics }).catch(() => {})
  }
}

/** Overrides the defaults of the cluster, by which Kafka deletes messages, mostly after 7 days. */
const keepForever = { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' }

/** Settings of an existing topic by which messages are lost. */
function findProblems(topic: string, configs: ReadonlyMap<string, string>): string[] {
  const format = (name: string): string => `${name}=${configs.get(name)}`
  const problems: string[] = []
  for (const name of ['retention.ms', 'retention.bytes'])
    if (Number(configs.get(name) ?? -1) >= 0)
      problems.push(`the topic ${topic} deletes messages (${format(name)}): set ${name}=-1`)
  if (configs.get('cleanup.policy')?.includes('compact'))
    problems.push(
      `the topic ${topic} keeps only the last message of each key (${format('cleanup.policy')}): set cleanup.policy=delete`,
    )
  return problems
}

interface PartitionState {
  partition: TopicPartition
  progress: Progress
  first: number
  next: number
}

function countWaiting(partitions: readonly PartitionState[]): number {
  return partitions.reduce(
    (total, { progress, next }) => total + Math.max(0, next - progress.base - progress.doneAhead),
    0,
  )
}

function parsePosition(after: string | undefined): { partition: number; offset: number } {
  if (after === undefined) return { partition: 0, offset: 0 }
  const [, partition, offset] = /^(\d{1,6}):(\d{1,15})$/.exec(after) ?? []
  if (partition === undefined)
    throw new RedriveError(
      'INVALID_INPUT',
      `after must be the \`after\` of an earlier page, not ${JSON.stringify(after)}`,
    )
  return { partition: Number(partition), offset: Number(offset) + 1 }
}
