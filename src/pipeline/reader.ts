import { sleep } from '../clock/clock.ts'
import { retry, type RetryOptions } from '../clock/retry.ts'
import type { Cluster } from '../backends/kafka/cluster.ts'
import { Parts } from '../backends/kafka/parts.ts'
import { done } from '../backends/kafka/progress.ts'
import type { Stored } from '../backends/kafka/record.ts'
import { Sender } from '../backends/kafka/sender.ts'
import type { Transactor } from '../backends/kafka/transactor.ts'
import { Books } from './books.ts'
import { Lanes } from './lanes.ts'
import { begun, type Entry, type OurPart } from './our-part.ts'
import { Window } from './window.ts'
import { sendWork, type Work } from './work.ts'

export interface Turn {
  /** Counts this one. Those before ended with their process. */
  deliveries: number
  /** The record is somebody else's, or we stop. What comes of it counts no longer. */
  signal: AbortSignal
}

export interface ReaderOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  sessionMs: number
  concurrency: number
  /** A record that was delivered so often without an end is worked on while nothing else is; before that, few others are. */
  aloneFrom: number
  /** How long running work may take when its partition goes to somebody else, or we stop. */
  drainMs: number
  /** A rejection has the record worked on again. */
  work: (record: Stored, turn: Turn) => Work | Promise<Work>
  /** Sends and commits as one, if given. */
  transactor?: Transactor
  /** What failed. It is tried again by itself. */
  onError: (error: unknown) => void
}

/** How long it may take until the broker hears that a record is done, when nothing else is to be told. */
const commitMs = 25

const retryDelay = { firstMs: 100, maxMs: 5000 }

/**
 * Reads topics as a member of a group, and works on many records at once; those with one key go in order. The broker hears that a record
 * is begun before it is, so that one that ends the process is counted, and that it is done once all that came of it is safe. What is
 * known of records beyond the first that is not done stands in a note beside the offset, so nothing waits for a slow one but its key.
 */
export class Reader {
  readonly #options: ReaderOptions
  readonly #parts: Parts<OurPart>
  readonly #sender: Sender
  readonly #window: Window
  readonly #books: Books | undefined
  /** The broker is being told that they are begun. */
  #announced: Entry[] = []
  /** Told to the broker as begun; they run as soon as there is a free slot. */
  #ready: Entry[] = []
  /** Their process ended while they were under way. */
  #suspects: Entry[] = []
  readonly #lanes = new Lanes<Entry>()
  readonly #dirty = new Set<OurPart>()
  #running = 0
  /** Of these, those that failed and are tried again. That may go on for ever, so nobody waits for their end. */
  #failing = 0
  /** Suspects are under way: nothing else is begun. */
  #isCareful = false
  #isAnnouncing = false
  #isStopping = false
  #lotMs = 0
  #lotSize = 0
  #cancelCommit: (() => void) | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
    const { cluster, groupId, topics, sessionMs, onError, transactor } = options
    this.#sender = new Sender(cluster)
    this.#window = new Window(options.concurrency)
    const books = (this.#books = transactor && this.#booksWith(transactor))
    this.#parts = new Parts<OurPart>({
      cluster,
      groupId,
      topics,
      sessionMs,
      begin: (part) => begun(part),
      arrived: (part, records) => this.#arrive(part, records),
      cut: (part, offset) => this.#drop(part, ({ record }) => record.offset < offset),
      leaving: (part) => this.#drain(part, options.drainMs),
      gone: (part) => this.#lose(part),
      onError,
      well: () => {},
      ...(books
        ? {
            closeBooks: () => books.parts(),
            commit: (positions) => books.carry(this.#parts.group, positions),
          }
        : {}),
    })
  }

  /** How many partitions are ours. */
  get partitions(): number {
    return this.#parts.all().length
  }

  start(): void {
    this.#parts.group.join()
  }

  /** Takes nothing more, and waits for what runs. What is not done by then is given back uncounted. */
  async stop(drainMs = this.#options.drainMs): Promise<void> {
    this.#isStopping = true
    const parts = this.#parts.all()
    await Promise.all(parts.map((part) => this.#drain(part, drainMs)))
    this.#cancelCommit?.()
    await this.#options.cluster.call(() => this.#parts.commit(parts)).catch(this.#options.onError)
    // Closed, it asks no more whether a transaction is committed: the partitions would wait for that, however long brokers are away.
    await this.#options.transactor?.close()
    await Promise.all([this.#parts.close(), this.#sender.close()])
  }

  #arrive(part: OurPart, records: Stored[]): void {
    const keys = `${part.topic}:${part.partition}:`
    for (const record of records) {
      const lane = record.key ? keys + record.key.toString('latin1') : undefined
      const entry: Entry = { part, record, lane, isRunning: false, isFailing: false }
      part.entries.add(entry)
      part.bytes += record.value.byteLength
      part.waiting.push(entry)
    }
    if (records.length === 0) this.#commitLater(part)
    else this.#pump()
  }

  /** Does whatever can be done now. */
  #pump(): void {
    if (this.#isStopping || this.#isCareful) return
    while (this.#running < this.#options.concurrency && this.#ready.length > 0)
      this.#run(this.#ready.shift()!)
    if (this.#isAnnouncing) return
    if (this.#suspects.length > 0) {
      if (this.#running === this.#failing && this.#ready.length === 0)
        void this.#announce(this.#takeSuspects(), true)
      return
    }
    if (this.#ready.length * 2 > this.#window.size) return
    const lot = this.#takeLot(this.#window.size - this.#ready.length)
    if (lot.length > 0) void this.#announce(lot, false)
    else if (this.#suspects.length > 0) this.#pump()
  }

  /** The next ones of each partition in turn. */
  #takeLot(max: number): Entry[] {
    const lot: Entry[] = []
    const parts = this.#parts.all().filter(({ waiting }) => waiting.length > 0)
    const share = Math.max(1, Math.ceil(max / Math.max(1, parts.length)))
    for (const { waiting, progress } of parts) {
      const most = lot.length + Math.min(share, max - lot.length, progress.room)
      let taken = 0
      for (const entry of waiting) {
        // These take no room yet: they are begun later, a few at a time.
        if (this.#deliveriesOf(entry) > 0) this.#suspects.push(entry)
        else if (lot.length < most) lot.push(entry)
        else break
        taken += 1
      }
      waiting.splice(0, taken)
      if (lot.length >= max) break
    }
    return lot
  }

  /**
   * Of those whose process ended, the one that ended it is not known. They are tried while nothing else can be hit: a few at once, and if
   * the process ends again, those few one by one.
   */
  #takeSuspects(): Entry[] {
    const { aloneFrom, concurrency } = this.#options
    const isAlone = (entry: Entry): boolean => this.#deliveriesOf(entry) >= aloneFrom
    const at = this.#suspects.findIndex(isAlone)
    if (at >= 0) return this.#suspects.splice(at, 1)
    return this.#suspects.splice(0, concurrency)
  }

  #deliveriesOf({ part, record }: Entry): number {
    return part.progress.markOf(record.offset)
  }

  #count({ part, record }: Entry, more: number): void {
    const { progress } = part
    const mark = progress.markOf(record.offset)
    if (mark !== done) progress.mark(record.offset, Math.max(0, mark + more))
  }

  /** The broker hears that they are begun. */
  async #announce(lot: Entry[], isCareful: boolean): Promise<void> {
    this.#isAnnouncing = true
    this.#announced = lot
    for (const entry of lot) this.#count(entry, 1)
    const parts = new Set(this.#dirty)
    for (const { part } of lot) parts.add(part)
    const { cluster, onError } = this.#options
    await retry({ clock: cluster.clock, ...retryDelay, onError }, () => this.#commitNow(parts))
    this.#isAnnouncing = false
    // Without those that were given back meanwhile, as all are when we stop.
    const ours = this.#announced
    this.#announced = []
    this.#isCareful = isCareful && ours.length > 0
    if (this.#isCareful) {
      for (const entry of ours) this.#run(entry)
      // All of them may have to wait for one of their key that fails.
      return this.#relax()
    }
    this.#measure(lot.length)
    this.#ready.push(...ours)
    this.#pump()
  }

  /** Looks how long the last lot took, when all of it is begun. */
  #measure(size: number): void {
    const nowMs = this.#options.cluster.clock.mono()
    const isWorkedOff = this.#ready.length === 0
    if (isWorkedOff && this.#lotSize === this.#window.size) this.#window.took(nowMs - this.#lotMs)
    this.#lotMs = nowMs
    this.#lotSize = size
  }

  #run(entry: Entry): void {
    if (this.#lanes.enter(entry)) this.#begin(entry)
  }

  #begin(entry: Entry): void {
    entry.isRunning = true
    entry.part.running += 1
    this.#running += 1
    void this.#workOn(entry)
  }

  async #workOn(entry: Entry): Promise<void> {
    const { part, record } = entry
    const { signal } = part.gone
    const turn = { deliveries: this.#deliveriesOf(entry), signal }
    const retries = this.#retries(entry)
    const work = await retry(retries, () => this.#options.work(record, turn)).catch(() => undefined)
    if (work && !signal.aborted) {
      if (this.#books) this.#books.add({ entry, work })
      else {
        const sent = await sendWork(work, this.#sender, retries).catch(() => undefined)
        if (sent && !signal.aborted) this.#settle(entry, sent)
      }
      this.#commitLater(part)
    }
    this.#end(entry)
  }

  /** Retries until the partition of the record is no longer ours. */
  #retries(entry: Entry): RetryOptions {
    const { cluster, onError } = this.#options
    const { signal } = entry.part.gone
    const report = (error: unknown): void => {
      this.#fail(entry)
      if (!signal.aborted) onError(error)
    }
    return { clock: cluster.clock, ...retryDelay, signal, onError: report }
  }

  #booksWith(transactor: Transactor): Books {
    const { cluster, onError } = this.#options
    return new Books({
      clock: cluster.clock,
      transactor,
      onError,
      settled: ({ entry, work }) => this.#settle(entry, work),
      changed: (part) => this.#commitLater(part),
    })
  }

  #settle(entry: Entry, work: Work): void {
    this.#done(entry)
    work.done?.()
  }

  #done(entry: Entry): void {
    this.#forget(entry)
    entry.part.progress.mark(entry.record.offset, done)
  }

  #fail(entry: Entry): void {
    if (entry.isFailing) return
    entry.isFailing = true
    this.#failing += 1
    this.#relax()
  }

  /** All that could end the process has ended, or failed without ending it. */
  #relax(): void {
    if (this.#running === this.#failing) this.#isCareful = false
    this.#pump()
  }

  #end(entry: Entry): void {
    const { part } = entry
    entry.isRunning = false
    this.#running -= 1
    if (entry.isFailing) this.#failing -= 1
    entry.isFailing = false
    part.running -= 1
    if (part.running === 0) part.onIdle()
    const next = this.#lanes.leave(entry)
    if (next) this.#begin(next)
    this.#relax()
  }

  #forget(entry: Entry): void {
    const { part, record } = entry
    const wasFull = !part.hasRoom()
    if (!part.entries.delete(entry)) return
    part.bytes -= record.value.byteLength
    if (wasFull) this.#parts.wake()
  }

  #commitLater(part: OurPart): void {
    this.#dirty.add(part)
    if (this.#cancelCommit || this.#isStopping) return
    this.#cancelCommit = this.#options.cluster.clock.timer(commitMs, () => {
      this.#cancelCommit = undefined
      // Else it goes with what is announced, or with the next.
      if (!this.#isAnnouncing)
        this.#commitNow(new Set(this.#dirty)).then(
          // There may be room in the notes again.
          () => this.#pump(),
          (error: unknown) => {
            this.#options.onError(error)
            for (const one of this.#parts.all()) this.#commitLater(one)
          },
        )
      else this.#commitLater(part)
    })
  }

  #commitNow(parts: ReadonlySet<OurPart>): Promise<void> {
    for (const part of parts) this.#dirty.delete(part)
    return this.#parts.commit(parts)
  }

  /** Running work may end, for a moment; what did not begin counts as not begun. */
  async #drain(part: OurPart, drainMs: number): Promise<void> {
    const isIts = (entry: Entry): boolean => entry.part === part
    const begun = [...this.#announced, ...this.#ready, ...this.#lanes.waiting()]
    for (const entry of begun.filter(isIts)) this.#count(entry, -1)
    this.#unqueue(isIts)
    if (part.running > 0) {
      const idle = new AbortController()
      part.onIdle = () => idle.abort()
      await sleep(this.#options.cluster.clock, drainMs, idle.signal)
    }
    const held = new Set(this.#books?.held(part))
    for (const entry of part.entries) if (entry.isRunning || held.has(entry)) this.#count(entry, -1)
    part.gone.abort()
    this.#dirty.delete(part)
  }

  #lose(part: OurPart): void {
    part.gone.abort()
    this.#dirty.delete(part)
    this.#books?.forget(part)
    this.#drop(part, () => true)
    this.#pump()
  }

  #drop(part: OurPart, isGone: (entry: Entry) => boolean): void {
    this.#unqueue((entry) => entry.part === part && isGone(entry))
    for (const entry of part.entries) if (isGone(entry)) this.#forget(entry)
  }

  /** They wait no longer, wherever they did. */
  #unqueue(isGone: (entry: Entry) => boolean): void {
    const stays = (entry: Entry): boolean => !isGone(entry)
    this.#announced = this.#announced.filter(stays)
    this.#ready = this.#ready.filter(stays)
    this.#suspects = this.#suspects.filter(stays)
    for (const part of this.#parts.all()) part.waiting = part.waiting.filter(stays)
    this.#lanes.remove(isGone)
  }
}
