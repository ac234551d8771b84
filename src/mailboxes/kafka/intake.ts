import { nextTurn, sleep } from '../../clock.ts'
import type { RedriveError } from '../../errors.ts'
import { gatherer, type Gatherer, type Outcome } from '../../kept/gather.ts'
import type { Ask, Delivery } from '../../mailbox.ts'
import type { Cluster } from '../../kafka/cluster.ts'
import { Fetcher } from '../../kafka/fetcher.ts'
import { Group, keyOf, type Place } from '../../kafka/group.ts'
import { Holding, type Entry, type Held, type Part } from './holding.ts'
import type { Stored } from '../../kafka/record.ts'
import { deliveryOf, openedOf } from './packing.ts'
import { done, Progress } from '../../kafka/progress.ts'
import { isRefusal } from '../../kafka/trouble.ts'
import { Waiting } from './waiting.ts'

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

/** Records of one partition in memory, and bytes of them, before it is read no further. */
const maxEntries = 5000
const maxBytes = 32 * 1024 ** 2
/** How far the first record that is not done may lie behind the last, before it is moved on if it only waits for its time. */
const moveOnReach = 1000
/** How long those who got messages of a partition may take to settle them when it goes to somebody else. */
const drainMs = 2000
/** Kafka has no "now": what was sent just before is here a moment later. */
const momentMs = 100
/** Who takes nothing for so long leaves its partitions to others. */
const idleMs = 60_000

/** Receives from topics, as a member of a group. It joins when somebody comes for the first time. */
export class Intake {
  readonly holding: Holding
  readonly group: Group
  readonly #options: IntakeOptions
  readonly #fetcher: Fetcher
  readonly #parts = new Map<string, Part>()
  readonly #commits: Gatherer<Part, boolean>
  #ready: Entry[] = []
  readonly #waiting: Waiting
  #cancelIdle = (): void => {}
  #isClosed = false

  constructor(options: IntakeOptions) {
    this.#options = options
    const { cluster, groupId, topics, sessionMs } = options
    this.holding = new Holding(cluster.clock, (held) => this.#lapse(held))
    this.#commits = gatherer({ maxBatches: 1, maxWeight: Infinity }, (all) => this.#commitAll(all))
    this.#waiting = new Waiting(cluster.clock)
    const trouble = (error: RedriveError): void => this.#waiting.fail(error)
    const well = (): void => this.#waiting.well()
    this.#fetcher = new Fetcher({ cluster, groupId, trouble, well })
    this.group = new Group({
      cluster,
      groupId,
      topics,
      sessionMs,
      assigned: (places) => {
        well()
        void this.#begin(places)
      },
      revoked: (places) => this.#letGo(places),
      lost: (places) => this.#lose(places),
      trouble,
    })
  }

  async receive(ask: Ask): Promise<Delivery[]> {
    const { clock } = this.#options.cluster
    this.#cancelIdle()
    this.group.join()
    const endMs = clock.mono() + Math.max(ask.waitMs, momentMs)
    try {
      while (!ask.signal.aborted) {
        const entries = this.#take(ask.max)
        const found = entries.length > 0 ? await this.#handOut(entries, ask) : []
        const leftMs = endMs - clock.mono()
        if (found.length > 0 || leftMs <= 0) return found
        if (entries.length === 0) await this.#waiting.news(leftMs, ask.signal)
      }
      return []
    } finally {
      this.#restLater()
    }
  }

  /** True once the broker has heard that this is done. False: it is not ours any more. */
  async finish(held: Held): Promise<boolean> {
    const { part, stored } = held.entry
    if (!held.isDone) this.#forget(held.entry)
    held.isDone = true
    part.progress.mark(stored.offset, done)
    const isHeard = await this.commit(part)
    this.holding.release(part)
    return isHeard
  }

  /** Nothing came of this delivery: it goes to the end of those that wait here. */
  giveBack(held: Held): void {
    this.holding.release(held.entry.part)
    this.#lapse(held)
  }

  /** Tells the broker how far this partition is. False: it is not ours any more. */
  commit(part: Part): Promise<boolean> {
    return this.#commits.call(part)
  }

  /** There is nothing before these offsets any more. */
  async forgetBefore(offsets: ReadonlyMap<number, number>): Promise<void> {
    const parts = [...this.#parts.values()]
    for (const part of parts) this.#cut(part, offsets.get(part.partition) ?? 0)
    await Promise.all(parts.map((part) => this.commit(part)))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelIdle()
    this.#waiting.wake()
    await this.#commits.idle()
    this.#lose([...this.#parts.values()])
    await Promise.all([this.group.close(), this.#fetcher.close()])
  }

  async #begin(places: Place[]): Promise<void> {
    if (places.length === 0) return
    const { cluster } = this.#options
    const { generationId } = this.group.consumer
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 2000))
      try {
        const bounds = await this.#fetcher.bounds(places)
        const positions = await this.group.positions(places)
        // Another round of joining may have taken them away meanwhile, or has begun with them anew.
        if (this.#isClosed || generationId !== this.group.consumer.generationId)
          return this.#beginAgain(places)
        for (const { offset, note, ...place } of positions) {
          const first = bounds[places.findIndex((one) => keyOf(one) === keyOf(place))]?.first ?? 0
          // What is known of records counts from the offset that it was kept with.
          const progress = new Progress(Math.max(offset, 0), note)
          progress.moveTo(first)
          this.#start(place, progress)
        }
        this.#waiting.well()
        return
      } catch (error) {
        this.#waiting.fail(cluster.trouble(error))
        await sleep(cluster.clock, waitMs)
        if (this.#isClosed) return
      }
  }

  #beginAgain(places: Place[]): void {
    if (this.#isClosed) return
    const still = places.filter((place) => this.group.owns(place))
    void this.#begin(still)
  }

  #start(place: Place, progress: Progress): void {
    if (this.#parts.has(keyOf(place))) return
    const entries = new Set<Entry>()
    const part: Part = {
      ...place,
      position: progress.base,
      progress,
      entries,
      bytes: 0,
      held: 0,
      isLeaving: false,
      onIdle: () => {},
      hasRoom: () => !part.isLeaving && entries.size < maxEntries && part.bytes < maxBytes,
      arrived: (records, from, to, first) => {
        if (this.#parts.get(keyOf(place)) !== part) return
        this.#cut(part, first)
        this.#arrive(part, records, from, to)
      },
    }
    this.#parts.set(keyOf(place), part)
    this.#fetcher.add(part)
  }

  #arrive(part: Part, records: Stored[], from: number, to: number): void {
    const { clock } = this.#options.cluster
    let next = from
    for (const stored of records) {
      part.progress.skip(next, stored.offset)
      next = stored.offset + 1
      if (part.progress.markOf(stored.offset) === done) continue
      const opened = openedOf(stored)
      const { firstReceivedMs } = opened
      const entry: Entry = {
        part,
        stored,
        opened,
        firstReceivedMs,
        isDelayed: false,
        cancel: () => {},
      }
      part.entries.add(entry)
      part.bytes += stored.value.byteLength
      part.progress.mark(stored.offset, part.progress.markOf(stored.offset))
      const leftMs = opened.notBeforeMs - clock.now()
      if (leftMs > 0) this.#delay(entry, leftMs)
      else this.#ready.push(entry)
    }
    part.progress.skip(next, to)
    this.#moveOn(part)
    // What else has come by then goes along.
    void nextTurn().then(() => this.#waiting.wake())
  }

  #delay(entry: Entry, ms: number): void {
    entry.isDelayed = true
    entry.cancel = this.#options.cluster.clock.timer(ms, () => {
      entry.isDelayed = false
      this.#ready.push(entry)
      this.#waiting.wake()
    })
  }

  /** A record that waits for long would keep all behind it from being done with. It goes to the end, and waits there. */
  #moveOn(part: Part): void {
    if (part.progress.reach < moveOnReach) return
    const [first] = part.entries
    if (!first?.isDelayed || first.stored.offset !== part.progress.base) return
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

  #take(max: number): Entry[] {
    return this.#ready.splice(0, max)
  }

  /** The broker hears of a delivery before anybody has the message: one that kills its process is counted all the same. */
  async #handOut(entries: Entry[], { visibilityMs, signal }: Ask): Promise<Delivery[]> {
    const { clock } = this.#options.cluster
    const count = ({ part, stored }: Entry, more: number): void =>
      part.progress.mark(stored.offset, part.progress.markOf(stored.offset) + more)
    for (const entry of entries) count(entry, 1)
    const parts = [...new Set(entries.map(({ part }) => part))]
    const giveBack = (): void => {
      const back = entries.filter((entry) => this.#isOurs(entry))
      for (const entry of back) count(entry, -1)
      this.#ready.unshift(...back)
      this.#waiting.wake()
    }
    try {
      await Promise.all(parts.map((part) => this.commit(part)))
    } catch (error) {
      giveBack()
      throw error
    }
    if (signal.aborted) {
      giveBack()
      return []
    }
    const ours = entries.filter((entry) => this.#isOurs(entry))
    return ours.map((entry) => {
      const { part, stored, opened } = entry
      const deliveries = opened.deliveries + part.progress.markOf(stored.offset)
      const firstReceivedMs = (entry.firstReceivedMs ??= Math.floor(clock.now()))
      const { receipt } = this.holding.add(entry, deliveries, visibilityMs)
      return deliveryOf(opened, { receipt, deliveries, firstReceivedMs })
    })
  }

  #isOurs(entry: Entry): boolean {
    return entry.part.entries.has(entry) && this.#parts.get(keyOf(entry.part)) === entry.part
  }

  /** It is here still, and goes to the end of those that wait here. */
  #lapse({ entry, isDone }: Held): void {
    if (isDone || !this.#isOurs(entry) || entry.part.isLeaving) return
    this.#ready.push(entry)
    this.#waiting.wake()
  }

  #forget(entry: Entry): void {
    const { part, stored } = entry
    const wasFull = !part.hasRoom()
    if (part.entries.delete(entry)) part.bytes -= stored.value.byteLength
    if (wasFull) this.#fetcher.wake()
  }

  /** One commit at a time for all partitions, with what is true when it goes. */
  async #commitAll(asked: Part[]): Promise<Outcome<boolean>[]> {
    const { cluster, passed } = this.#options
    const isOurs = (part: Part): boolean => this.#parts.get(keyOf(part)) === part
    const endMs = cluster.clock.mono() + cluster.timeoutMs
    for (;;) {
      const parts = [...new Set(asked)].filter(isOurs)
      const positions = parts.map(({ topic, partition, progress }) => ({
        topic,
        partition,
        offset: progress.base,
        note: progress.note(),
      }))
      try {
        if (parts.length > 0) await cluster.call(() => this.group.commit(positions))
        for (const part of parts) passed(part)
        return asked.map((part) => ({ value: isOurs(part) }))
      } catch (error) {
        const { cause } = error as Error
        if (isRefusal(cause, 'UNKNOWN_MEMBER_ID')) this.#lose([...this.#parts.values()])
        else if (!isPassing(cause) || cluster.clock.mono() > endMs) throw error
        else await sleep(cluster.clock, 50)
      }
    }
  }

  /** Those who have messages may settle them, for a moment; what they did is told to whoever comes next. */
  async #letGo(places: Place[]): Promise<void> {
    const { clock } = this.#options.cluster
    const parts = places.flatMap((place) => this.#parts.get(keyOf(place)) ?? [])
    for (const part of parts) {
      part.isLeaving = true
      this.#fetcher.remove(part)
    }
    this.#ready = this.#ready.filter(({ part }) => !part.isLeaving)
    await Promise.all(
      parts.map(async (part) => {
        const drained = new AbortController()
        part.onIdle = () => drained.abort()
        if (part.held > 0) await sleep(clock, drainMs, drained.signal)
        await this.commit(part).catch(() => {})
      }),
    )
    this.#lose(parts)
  }

  #lose(places: readonly Place[]): void {
    for (const place of places) {
      const part = this.#parts.get(keyOf(place))
      if (!part) continue
      this.#parts.delete(keyOf(place))
      this.#fetcher.remove(part)
      this.#drop(part, () => true)
    }
  }

  /** All before the offset is gone. */
  #cut(part: Part, offset: number): void {
    if (offset <= part.progress.base) return
    this.#drop(part, (entry) => entry.stored.offset < offset)
    part.progress.moveTo(offset)
  }

  #drop(part: Part, isGone: (entry: Entry) => boolean): void {
    const isGoneOf = (entry: Entry): boolean => entry.part === part && isGone(entry)
    this.holding.drop(isGoneOf)
    this.#ready = this.#ready.filter((entry) => !isGoneOf(entry))
    for (const entry of part.entries)
      if (isGone(entry)) {
        entry.cancel()
        this.#forget(entry)
      }
  }

  /** A member that takes nothing would keep its partitions from others. */
  #restLater(): void {
    if (this.#isClosed) return
    this.#cancelIdle()
    this.#cancelIdle = this.#options.cluster.clock.timer(idleMs, () => {
      if (this.#waiting.size === 0 && this.holding.size === 0) void this.group.leave()
      else this.#restLater()
    })
  }
}

/** The group is being arranged anew, or its coordinator moves. */
function isPassing(error: unknown): boolean {
  return ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'NOT_COORDINATOR'].some((id) =>
    isRefusal(error, id),
  )
}
