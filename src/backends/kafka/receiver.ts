import { Alarm } from '../../clock/alarm.ts'
import { nextTurn, sleep } from '../../clock/clock.ts'
import type { ReceiveRequest, Delivery } from '../../mailbox.ts'
import { maxVisibilitySeconds } from '../bounds.ts'
import type { Cluster } from './cluster.ts'
import { GroupConsumer } from './group-consumer.ts'
import { Leases, type Lease, type MailboxPartition, type PendingRecord } from './leases.ts'
import { decodeMessage, toDelivery } from './message-format.ts'
import { done } from './progress.ts'
import type { StoredRecord } from './record.ts'
import { Waiters, type Waiter } from './waiters.ts'

export interface ReceiverOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  sessionMs: number
  /** Sends a copy of a delayed record to the end of its partition. */
  moveToEnd: (entry: PendingRecord) => Promise<void>
  /** The broker has stored the progress of the partition. */
  onCommitted: (partition: MailboxPartition) => void
}

/** A delayed record is moved to the end when it is the oldest and so many offsets are after it. */
const maxReach = 1000
/** Time to settle open deliveries of a partition that is revoked. */
const drainMs = 2000
/** The longest delay that callers can request. A longer one comes from a wrong clock. */
const longestDelayMs = maxVisibilitySeconds * 1000
/** The shortest wait: Kafka has no way to ask what is there now. */
const shortestWaitMs = 100
/** A member that receives nothing for so long leaves the group. */
const idleMs = 60_000

/** Records for one waiter. */
interface Assignment {
  waiter: Waiter
  entries: PendingRecord[]
}

const ignore = (): void => {}

/** Receives from topics as a member of a group. The first `receive` joins the group. */
export class Receiver {
  readonly leases: Leases
  readonly #options: ReceiverOptions
  readonly #waiters: Waiters
  readonly #idleCheck: Alarm
  #consumer: GroupConsumer<MailboxPartition> | undefined
  #leaving: Promise<void> | undefined
  #ready: PendingRecord[] = []
  #isServing = false

  constructor(options: ReceiverOptions) {
    const { clock } = options.cluster
    this.#options = options
    this.leases = new Leases(clock, (lease) => this.#requeue(lease))
    this.#waiters = new Waiters(clock)
    this.#idleCheck = new Alarm(clock, () => this.#leaveIfIdle())
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const nowMs = this.#options.cluster.clock.mono()
    this.#consumer ??= this.#join()
    this.#idleCheck.by(nowMs + idleMs)
    const endMs = nowMs + Math.max(ask.waitMs, shortestWaitMs)
    return new Promise((resolve, reject) => {
      this.#waiters.add({ ask, endMs, resolve, reject })
      this.#serveSoon()
    })
  }

  /** True when the broker has stored that the record is done. False: the partition is lost. */
  async finish(lease: Lease): Promise<boolean> {
    const { partition, record } = lease.entry
    if (!lease.isDone) this.#forget(lease.entry)
    lease.isDone = true
    partition.progress.set(record.offset, done)
    const isStored = await this.commit(partition)
    this.leases.release(partition)
    return isStored
  }

  /** Makes the record ready again, after the other ready records. */
  giveBack(lease: Lease): void {
    this.leases.release(lease.entry.partition)
    this.#requeue(lease)
  }

  /** Commits the progress of a partition. False: the partition is lost. */
  async commit(partition: MailboxPartition): Promise<boolean> {
    await this.#consumer?.commit([partition])
    return !partition.isLost
  }

  /** Handles records before these offsets of their partitions as deleted. */
  async deleteBefore(offsets: ReadonlyMap<number, number>): Promise<void> {
    await this.#consumer?.deleteBefore(offsets)
  }

  async close(): Promise<void> {
    this.#idleCheck.off()
    this.#waiters.close()
    await Promise.all([this.#consumer?.close(), this.#leaving])
    this.leases.close()
  }

  #join(): GroupConsumer<MailboxPartition> {
    const { cluster, groupId, topics, sessionMs, onCommitted } = this.#options
    const consumer = new GroupConsumer<MailboxPartition>({
      cluster,
      groupId,
      topics,
      sessionMs,
      onAssigned: (partition) =>
        Object.assign(partition, { entries: new Map(), bytes: 0, leased: 0, onIdle: ignore }),
      onRecords: (partition, records) => this.#add(partition, records),
      onDeleted: (partition, offset) => this.#drop(partition, offset),
      onRevoked: (partition) => this.#drain(partition),
      onLost: (partition) => this.#drop(partition, Infinity),
      onCommitted: (partitions) => partitions.forEach(onCommitted),
      onError: (error) => this.#waiters.fail(error),
      onHealthy: () => this.#waiters.recover(),
    })
    consumer.group.join()
    return consumer
  }

  #add(partition: MailboxPartition, records: StoredRecord[]): void {
    const nowMs = this.#options.cluster.clock.now()
    for (const record of records) {
      const message = decodeMessage(record)
      const { firstReceivedMs, notBeforeMs } = message
      const state = { firstReceivedMs, isDelayed: false, cancelDelay: ignore }
      const entry: PendingRecord = { partition, record, message, ...state }
      partition.entries.set(record.offset, entry)
      partition.bytes += record.value.byteLength
      if (notBeforeMs > nowMs) this.#delay(entry, notBeforeMs - nowMs)
      else this.#ready.push(entry)
    }
    this.#moveDelayed(partition)
    // Records that arrive in the same turn are served together.
    void nextTurn().then(() => this.#serveSoon())
  }

  #delay(entry: PendingRecord, ms: number): void {
    entry.isDelayed = true
    entry.cancelDelay = this.#options.cluster.clock.timer(Math.min(ms, longestDelayMs), () => {
      entry.isDelayed = false
      this.#ready.push(entry)
      this.#serveSoon()
    })
  }

  /** A record with a long delay would keep the committed offset from advancing. */
  #moveDelayed(partition: MailboxPartition): void {
    if (partition.progress.reach < maxReach) return
    const first = partition.entries.get(partition.progress.base)
    if (!first?.isDelayed) return
    first.cancelDelay()
    first.isDelayed = false
    void this.#moveToEnd(first)
  }

  async #moveToEnd(entry: PendingRecord): Promise<void> {
    const { partition, record, message } = entry
    try {
      // Commit first: a member that has lost the partition must not make a copy.
      if (!(await this.commit(partition))) return
      await this.#options.moveToEnd(entry)
    } catch {
      this.#delay(entry, message.notBeforeMs - this.#options.cluster.clock.now())
      return
    }
    this.#forget(entry)
    partition.progress.set(record.offset, done)
    this.#moveDelayed(partition)
  }

  /** Waiters that come in the same turn are served together. */
  #serveSoon(): void {
    if (this.#isServing || this.#ready.length === 0 || this.#waiters.size === 0) return
    this.#isServing = true
    queueMicrotask(() => this.#serve())
  }

  #serve(): void {
    this.#isServing = false
    const assignments: Assignment[] = []
    let at = 0
    while (at < this.#ready.length) {
      const waiter = this.#waiters.next()
      if (!waiter) break
      assignments.push({ waiter, entries: this.#ready.slice(at, at + waiter.ask.max) })
      at += waiter.ask.max
    }
    this.#ready.splice(0, at)
    if (assignments.length > 0) void this.#deliver(assignments)
  }

  /** The broker stores the deliveries first, so that one that ends the process is counted. */
  async #deliver(assignments: Assignment[]): Promise<void> {
    const all = assignments.flatMap(({ entries }) => entries)
    for (const entry of all) countDelivery(entry, 1)
    try {
      await this.#consumer?.commit(new Set(all.map(({ partition }) => partition)))
    } catch (error) {
      this.#putBack(all)
      for (const { waiter } of assignments) waiter.reject(error)
      return
    }
    const unwanted: PendingRecord[] = []
    for (const { waiter, entries } of assignments) {
      const { ask, resolve } = waiter
      const owned = entries.filter(isPending)
      if (ask.signal.aborted) {
        unwanted.push(...owned)
        resolve([])
      } else if (owned.length > 0) resolve(owned.map((entry) => this.#lease(entry, ask)))
      else this.#waiters.add(waiter)
    }
    this.#putBack(unwanted)
  }

  /** Takes back deliveries that were counted but reached no caller. */
  #putBack(entries: PendingRecord[]): void {
    const owned = entries.filter(isPending)
    for (const entry of owned) countDelivery(entry, -1)
    this.#ready.unshift(...owned.filter(({ partition }) => !partition.isRevoked))
    this.#serveSoon()
  }

  #lease(entry: PendingRecord, { visibilityMs }: ReceiveRequest): Delivery {
    const { partition, record, message } = entry
    const deliveries = message.deliveries + partition.progress.stateOf(record.offset)
    const nowMs = Math.floor(this.#options.cluster.clock.now())
    const firstReceivedMs = (entry.firstReceivedMs ??= nowMs)
    const { receipt } = this.leases.add(entry, deliveries, visibilityMs)
    return toDelivery(message, { receipt, deliveries, firstReceivedMs })
  }

  #requeue({ entry, isDone }: Lease): void {
    if (isDone || !isPending(entry) || entry.partition.isRevoked) return
    this.#ready.push(entry)
    this.#serveSoon()
  }

  #forget(entry: PendingRecord): void {
    const { partition, record } = entry
    if (!isPending(entry)) return
    const hadRoom = partition.hasRoom()
    partition.entries.delete(record.offset)
    partition.bytes -= record.value.byteLength
    if (!hadRoom) this.#consumer?.wake()
  }

  /** Open deliveries can be settled for a short time. */
  async #drain(partition: MailboxPartition): Promise<void> {
    this.#ready = this.#ready.filter((entry) => entry.partition !== partition)
    const drained = new AbortController()
    partition.onIdle = () => drained.abort()
    if (partition.leased > 0) await sleep(this.#options.cluster.clock, drainMs, drained.signal)
  }

  /** Forgets the records of a partition before an offset. */
  #drop(partition: MailboxPartition, offset: number): void {
    const isGone = (entry: PendingRecord): boolean =>
      entry.partition === partition && entry.record.offset < offset
    this.leases.drop(isGone)
    this.#ready = this.#ready.filter((entry) => !isGone(entry))
    for (const entry of [...partition.entries.values()].filter(isGone)) {
      entry.cancelDelay()
      this.#forget(entry)
    }
  }

  /** An idle member would keep its partitions from other members. */
  #leaveIfIdle(): number {
    const nowMs = this.#options.cluster.clock.mono()
    const isLeased = this.#consumer?.all().some(({ leased }) => leased > 0)
    if (this.#waiters.size > 0 || isLeased) return nowMs + idleMs
    const leaveMs = this.#waiters.lastMs + idleMs
    if (leaveMs > nowMs) return leaveMs
    this.#leaving = this.#consumer?.close()
    this.#consumer = undefined
    return Infinity
  }
}

function countDelivery({ partition, record }: PendingRecord, change: number): void {
  partition.progress.set(record.offset, partition.progress.stateOf(record.offset) + change)
}

/** The record is not done, and its partition is not lost. */
function isPending(entry: PendingRecord): boolean {
  return entry.partition.entries.get(entry.record.offset) === entry
}
