import { nextTurn, sleep } from '../../clock/clock.ts'
import type { Cluster } from './cluster.ts'
import type { Group } from './group.ts'
import { Parts } from './parts.ts'
import { done } from './progress.ts'
import type { Stored } from './record.ts'
import type { ReceiveRequest, Delivery } from '../../mailbox.ts'
import { Roll } from '../../clock/roll.ts'
import { Alarm } from '../../clock/alarm.ts'
import { maxVisibilitySeconds } from '../bounds.ts'
import { Holding, type Entry, type Held, type Part } from './holding.ts'
import { deliveryOf, openedOf } from './packing.ts'
import { Waiting, type Waiter } from './waiting.ts'

export interface IntakeOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  sessionMs: number
  /** Sends the record once more, to the end of its partition, so that those behind it can be done with. */
  moveOn: (entry: Entry) => Promise<void>
  /** All before it is done, and the broker knows. */
  passed: (part: Part) => void
}

/** How far the first record that is not done may lie behind the last, before it is moved on if it only waits for its time. */
const moveOnReach = 1000
/** How long those who got messages of a partition may take to settle them when it goes to somebody else. */
const drainMs = 2000
/** Nobody can ask for more. What says so was not sent by us, or by a clock that is wrong. */
const longestDelayMs = maxVisibilitySeconds * 1000
/** Kafka has no "now": what was sent just before is here a moment later. */
const momentMs = 100
/** Who takes nothing for so long leaves its partitions to others. */
const idleMs = 60_000

/** Records on their way to somebody. */
interface Served {
  waiter: Waiter
  entries: Entry[]
}

const nothing = (): void => {}

/** Receives from topics, as a member of a group. It joins when somebody comes for the first time. */
export class Intake {
  readonly holding: Holding
  readonly group: Group
  readonly #options: IntakeOptions
  readonly #parts: Parts<Part>
  #ready: Entry[] = []
  readonly #waiting: Waiting
  readonly #rest: Alarm
  #isServing = false

  constructor(options: IntakeOptions) {
    this.#options = options
    const { cluster, groupId, topics, sessionMs, passed } = options
    this.holding = new Holding(cluster.clock, (held) => this.#lapse(held))
    this.#waiting = new Waiting(cluster.clock)
    this.#rest = new Alarm(cluster.clock, () => this.#restIfIdle())
    this.#parts = new Parts<Part>({
      cluster,
      groupId,
      topics,
      sessionMs,
      begin: (part) =>
        Object.assign(part, { entries: new Roll<Entry>(), bytes: 0, held: 0, onIdle: nothing }),
      arrived: (part, records) => this.#arrive(part, records),
      cut: (part, offset) => this.#drop(part, (entry) => entry.stored.offset < offset),
      leaving: (part) => this.#leave(part),
      gone: (part) => this.#drop(part, () => true),
      committed: (parts) => parts.forEach(passed),
      onError: (error) => this.#waiting.fail(error),
      well: () => this.#waiting.well(),
    })
    this.group = this.#parts.group
  }

  receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const nowMs = this.#options.cluster.clock.mono()
    this.group.join()
    this.#rest.by(nowMs + idleMs)
    const endMs = nowMs + Math.max(ask.waitMs, momentMs)
    return new Promise((resolve, reject) => {
      this.#waiting.add({ ask, endMs, resolve, reject })
      this.#serveSoon()
    })
  }

  /** True once the broker has heard that this is done. False: it is not ours any more. */
  async finish(held: Held): Promise<boolean> {
    const { part, stored } = held.entry
    if (!held.isDone) this.#forget(held.entry)
    held.isDone = true
    part.progress.mark(stored.offset, done)
    await this.#parts.commit([part])
    this.holding.release(part)
    return !part.isLost
  }

  /** Nothing came of this delivery: it goes to the end of those that wait here. */
  giveBack(held: Held): void {
    this.holding.release(held.entry.part)
    this.#lapse(held)
  }

  /** Tells the broker how far this partition is. False: it is not ours any more. */
  async commit(part: Part): Promise<boolean> {
    await this.#parts.commit([part])
    return !part.isLost
  }

  /** There is nothing before these offsets any more. */
  forgetBefore(offsets: ReadonlyMap<number, number>): Promise<void> {
    return this.#parts.forgetBefore(offsets)
  }

  async close(): Promise<void> {
    this.#rest.off()
    this.#waiting.close()
    await this.#parts.close()
    this.holding.close()
  }

  #arrive(part: Part, records: Stored[]): void {
    const nowMs = this.#options.cluster.clock.now()
    for (const stored of records) {
      const opened = openedOf(stored)
      const { firstReceivedMs } = opened
      const entry: Entry = {
        part,
        stored,
        opened,
        firstReceivedMs,
        isDelayed: false,
        cancel: nothing,
        at: 0,
      }
      part.entries.add(entry)
      part.bytes += stored.value.byteLength
      const leftMs = opened.notBeforeMs - nowMs
      if (leftMs > 0) this.#delay(entry, leftMs)
      else this.#ready.push(entry)
    }
    this.#moveOn(part)
    // What else has come by then goes along.
    void nextTurn().then(() => this.#serveSoon())
  }

  #delay(entry: Entry, ms: number): void {
    entry.isDelayed = true
    entry.cancel = this.#options.cluster.clock.timer(Math.min(ms, longestDelayMs), () => {
      entry.isDelayed = false
      this.#ready.push(entry)
      this.#serveSoon()
    })
  }

  /** A record that waits for long would keep all behind it from being done with. It goes to the end, and waits there. */
  #moveOn(part: Part): void {
    if (part.progress.reach < moveOnReach) return
    const { base } = part.progress
    const first = part.entries.find(({ stored }) => stored.offset === base)
    if (!first?.isDelayed) return
    first.cancel()
    first.isDelayed = false
    void this.#moveFirst(first)
  }

  async #moveFirst(first: Entry): Promise<void> {
    const { part, stored, opened } = first
    try {
      // Asked first, so that no copy is made by somebody who has lost the partition without knowing.
      if (!(await this.commit(part))) return
      await this.#options.moveOn(first)
    } catch {
      this.#delay(first, opened.notBeforeMs - this.#options.cluster.clock.now())
      return
    }
    this.#forget(first)
    part.progress.mark(stored.offset, done)
    this.#moveOn(part)
  }

  /** All who ask in the same turn are served together. */
  #serveSoon(): void {
    if (this.#isServing || this.#ready.length === 0 || this.#waiting.size === 0) return
    this.#isServing = true
    queueMicrotask(() => this.#serve())
  }

  #serve(): void {
    this.#isServing = false
    const served: Served[] = []
    let at = 0
    while (at < this.#ready.length) {
      const waiter = this.#waiting.next()
      if (!waiter) break
      served.push({ waiter, entries: this.#ready.slice(at, at + waiter.ask.max) })
      at += waiter.ask.max
    }
    this.#ready.splice(0, at)
    if (served.length > 0) void this.#handOut(served)
  }

  /** The broker hears of deliveries before anybody has the messages: one that kills its process is counted all the same. */
  async #handOut(served: Served[]): Promise<void> {
    const parts = new Set<Part>()
    for (const { entries } of served)
      for (const entry of entries) {
        count(entry, 1)
        parts.add(entry.part)
      }
    try {
      await this.#parts.commit(parts)
    } catch (error) {
      this.#putBack(served.flatMap(({ entries }) => entries))
      for (const { waiter } of served) waiter.reject(error)
      return
    }
    const unwanted: Entry[] = []
    for (const { waiter, entries } of served) {
      const { ask, resolve } = waiter
      const ours = entries.filter((entry) => isOurs(entry))
      if (ask.signal.aborted) {
        unwanted.push(...ours)
        resolve([])
      } else if (ours.length > 0) resolve(ours.map((entry) => this.#deliver(entry, ask)))
      else this.#waiting.add(waiter)
    }
    this.#putBack(unwanted)
  }

  /** They were counted, but nobody got them. */
  #putBack(entries: Entry[]): void {
    const back = entries.filter((entry) => isOurs(entry))
    for (const entry of back) count(entry, -1)
    this.#ready.unshift(...back.filter(({ part }) => !part.isLeaving))
    this.#serveSoon()
  }

  #deliver(entry: Entry, { visibilityMs }: ReceiveRequest): Delivery {
    const { part, stored, opened } = entry
    const deliveries = opened.deliveries + part.progress.markOf(stored.offset)
    const firstReceivedMs = (entry.firstReceivedMs ??= Math.floor(
      this.#options.cluster.clock.now(),
    ))
    const { receipt } = this.holding.add(entry, deliveries, visibilityMs)
    return deliveryOf(opened, { receipt, deliveries, firstReceivedMs })
  }

  /** It is here still, and goes to the end of those that wait here. */
  #lapse({ entry, isDone }: Held): void {
    if (isDone || !isOurs(entry) || entry.part.isLeaving) return
    this.#ready.push(entry)
    this.#serveSoon()
  }

  #forget(entry: Entry): void {
    const { part, stored } = entry
    const wasFull = !part.hasRoom()
    if (part.entries.delete(entry)) part.bytes -= stored.value.byteLength
    if (wasFull) this.#parts.wake()
  }

  /** Those who have messages may settle them, for a moment. */
  async #leave(part: Part): Promise<void> {
    this.#ready = this.#ready.filter((entry) => entry.part !== part)
    const drained = new AbortController()
    part.onIdle = () => drained.abort()
    if (part.held > 0) await sleep(this.#options.cluster.clock, drainMs, drained.signal)
  }

  #drop(part: Part, isGone: (entry: Entry) => boolean): void {
    const isGoneOf = (entry: Entry): boolean => entry.part === part && isGone(entry)
    this.holding.drop(isGoneOf)
    this.#ready = this.#ready.filter((entry) => !isGoneOf(entry))
    for (const entry of part.entries.list())
      if (isGone(entry)) {
        entry.cancel()
        this.#forget(entry)
      }
  }

  /** A member that takes nothing would keep its partitions from others. */
  #restIfIdle(): number {
    const nowMs = this.#options.cluster.clock.mono()
    if (this.#waiting.size > 0 || this.holding.size > 0) return nowMs + idleMs
    const restMs = this.#waiting.lastMs + idleMs
    if (restMs > nowMs) return restMs
    void this.group.leave()
    return Infinity
  }
}

/** One delivery more, or less. */
function count({ part, stored }: Entry, more: number): void {
  part.progress.mark(stored.offset, part.progress.markOf(stored.offset) + more)
}

/** It is not done, and nobody else has it. */
function isOurs(entry: Entry): boolean {
  return entry.part.entries.has(entry)
}
