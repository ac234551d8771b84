import { Alarm } from '../../clock/alarm.ts'
import type { Clock } from '../../clock/clock.ts'
import type { AssignedPartition } from './group-consumer.ts'
import type { MailboxMessage } from './message-format.ts'
import type { StoredRecord } from './record.ts'

/** A partition of this process and its records in memory. */
export interface MailboxPartition extends AssignedPartition {
  /** Records that are not done, by offset. */
  readonly entries: Map<number, PendingRecord>
  /** Total size of the values of these records. */
  bytes: number
  /** Deliveries that are not settled. */
  leased: number
  /** Called when `leased` becomes 0. */
  onIdle: () => void
}

/** A record that is delayed, ready or leased. */
export interface PendingRecord {
  readonly partition: MailboxPartition
  readonly record: StoredRecord
  readonly message: MailboxMessage
  firstReceivedMs: number | undefined
  isDelayed: boolean
  /** Cancels the timer of a delayed record. */
  cancelDelay: () => void
}

/** One delivery. */
export interface Lease {
  readonly entry: PendingRecord
  readonly receipt: string
  readonly deliveries: number
  expiresMs: number
  /** Acknowledged; the broker may not have stored that yet. */
  isDone: boolean
}

/** The deliveries that are not settled, by receipt. A lease ends when its time is over. */
export class Leases {
  readonly #clock: Clock
  readonly #onExpired: (lease: Lease) => void
  readonly #leases = new Map<string, Lease>()
  readonly #alarm: Alarm
  readonly #session: string
  #count = 0

  constructor(clock: Clock, onExpired: (lease: Lease) => void) {
    this.#clock = clock
    this.#onExpired = onExpired
    this.#alarm = new Alarm(clock, () => this.#expire())
    this.#session = clock.id()
  }

  add(entry: PendingRecord, deliveries: number, visibilityMs: number): Lease {
    const receipt = `${this.#session}:${this.#count++}`
    const expiresMs = this.#clock.mono() + visibilityMs
    const lease: Lease = { entry, receipt, deliveries, expiresMs, isDone: false }
    entry.partition.leased += 1
    this.restore(lease)
    return lease
  }

  /** Removes and returns a lease that has not expired. The caller settles or restores it. */
  take(receipt: string): Lease | undefined {
    const lease = this.#leases.get(receipt)
    if (!lease || lease.expiresMs <= this.#clock.mono()) return undefined
    this.#leases.delete(receipt)
    return lease
  }

  /** Puts back a lease that could not be settled. */
  restore(lease: Lease): void {
    this.#leases.set(lease.receipt, lease)
    this.#alarm.by(lease.expiresMs)
  }

  /** Extends a lease to at least so long from now. */
  extend(receipt: string, ms: number): boolean {
    const lease = this.take(receipt)
    if (!lease) return false
    lease.expiresMs = Math.max(lease.expiresMs, this.#clock.mono() + ms)
    this.restore(lease)
    return true
  }

  /** Makes the receipts of these records invalid. */
  drop(isGone: (entry: PendingRecord) => boolean): void {
    for (const lease of this.#leases.values()) if (isGone(lease.entry)) this.#end(lease)
  }

  /** Counts a delivery as settled. */
  release(partition: MailboxPartition): void {
    partition.leased -= 1
    if (partition.leased === 0) partition.onIdle()
  }

  close(): void {
    this.#alarm.off()
  }

  #end(lease: Lease): void {
    this.#leases.delete(lease.receipt)
    this.release(lease.entry.partition)
  }

  #expire(): number {
    const nowMs = this.#clock.mono()
    let nextMs = Infinity
    for (const lease of this.#leases.values())
      if (lease.expiresMs > nowMs) nextMs = Math.min(nextMs, lease.expiresMs)
      else {
        this.#end(lease)
        this.#onExpired(lease)
      }
    return nextMs
  }
}
