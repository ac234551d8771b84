import { sleep } from '../clock/clock.ts'
import { retry, type RetryOptions } from '../clock/retry.ts'
import type { Cluster } from '../backends/kafka/cluster.ts'
import { GroupConsumer } from '../backends/kafka/group-consumer.ts'
import { done } from '../backends/kafka/progress.ts'
import type { StoredRecord } from '../backends/kafka/record.ts'
import { Sender } from '../backends/kafka/sender.ts'
import type { Transactor } from '../backends/kafka/transactor.ts'
import { TransactionBatch } from './transaction-batch.ts'
import { Lanes } from './lanes.ts'
import { begun, type Entry, type OurPart } from './our-part.ts'
import { Window } from './window.ts'
import { sendWork, type Work } from './work.ts'

export interface Turn {
  /** The number of deliveries, this one included. Earlier ones ended with their process. */
  deliveries: number
  /** Aborts when the partition is revoked, or we stop. The result is then ignored. */
  signal: AbortSignal
}

export interface ReaderOptions {
  cluster: Cluster
  groupId: string
  topics: readonly string[]
  sessionMs: number
  concurrency: number
  /**
   * A record that was delivered this often without an end runs alone; before that, with few others.
   */
  aloneFrom: number
  /** How long running work may take when its partition is revoked, or we stop. */
  drainMs: number
  /** After a rejection the record is retried. */
  work: (record: StoredRecord, turn: Turn) => Work | Promise<Work>
  /** Sends and commits in one transaction, if given. */
  transactor?: Transactor
  /** Called with each error. The failed step is retried. */
  onError: (error: unknown) => void
}

/** Maximum delay of a commit when nothing else is sent to the broker. */
const commitMs = 25

const retryDelay = { firstMs: 100, maxMs: 5000 }

/**
 * Reads topics as a member of a group, and processes many records at once; records with the same
 * key stay in order. The broker gets to know that a record is started before it is, so that a
 * record that kills the process is counted, and that it is done once its results are durable. The
 * state of records after the first unfinished one is in the metadata of the offset, so a slow
 * record blocks its key only.
 */
export class Reader {
  readonly #options: ReaderOptions
  readonly #parts: GroupConsumer<OurPart>
  readonly #sender: Sender
  readonly #window: Window
  readonly #transactionBatch: TransactionBatch | undefined
  /** Records that are being announced to the broker as started. */
  #announced: Entry[] = []
  /** Announced records; they run as soon as there is a free slot. */
  #ready: Entry[] = []
  /** Records that were in process when their process died. */
  #suspects: Entry[] = []
  readonly #lanes = new Lanes<Entry>()
  readonly #dirty = new Set<OurPart>()
  #running = 0
  /**
   * Running records that failed and are retried. That may take forever, so nobody waits for them.
   */
  #failing = 0
  /** Suspects are running: nothing else is started. */
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
    const transactionBatch = (this.#transactionBatch =
      transactor && this.#createTransactionBatch(transactor))
    this.#parts = new GroupConsumer<OurPart>({
      cluster,
      groupId,
      topics,
      sessionMs,
      onAssigned: (part) => begun(part),
      onRecords: (part, records) => this.#arrive(part, records),
      onDeleted: (part, offset) => this.#drop(part, ({ record }) => record.offset < offset),
      onRevoked: (part) => this.#drain(part, options.drainMs),
      onLost: (part) => this.#lose(part),
      onError,
      onHealthy: () => {},
      ...(transactionBatch
        ? {
            pending: () => transactionBatch.parts(),
            commit: (offsets) => transactionBatch.carry(this.#parts.group, offsets),
          }
        : {}),
    })
  }

  /** The number of assigned partitions. */
  get partitions(): number {
    return this.#parts.all().length
  }

  start(): void {
    this.#parts.group.join()
  }

  /**
   * Accepts nothing more, and waits for running records. Unfinished records are released uncounted.
   */
  async stop(drainMs = this.#options.drainMs): Promise<void> {
    this.#isStopping = true
    const parts = this.#parts.all()
    await Promise.all(parts.map((part) => this.#drain(part, drainMs)))
    this.#cancelCommit?.()
    await this.#options.cluster.call(() => this.#parts.commit(parts)).catch(this.#options.onError)
    // A closed transactor no longer waits for a commit, which would block the partitions for as
    // long as brokers are unreachable.
    await this.#options.transactor?.close()
    await Promise.all([this.#parts.close(), this.#sender.close()])
  }

  #arrive(part: OurPart, records: StoredRecord[]): void {
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

  /** Starts everything that can be started now. */
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

  /** Takes the next records of each partition in turn. */
  #takeLot(max: number): Entry[] {
    const lot: Entry[] = []
    const parts = this.#parts.all().filter(({ waiting }) => waiting.length > 0)
    const share = Math.max(1, Math.ceil(max / Math.max(1, parts.length)))
    for (const { waiting, progress } of parts) {
      const most = lot.length + Math.min(share, max - lot.length, progress.room)
      let taken = 0
      for (const entry of waiting) {
        // Suspects take no room yet: they are started later, a few at a time.
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
   * Which of these records killed the process is unknown. They run while nothing else can be
   * affected: a few at once, and if the process dies again, one by one.
   */
  #takeSuspects(): Entry[] {
    const { aloneFrom, concurrency } = this.#options
    const isAlone = (entry: Entry): boolean => this.#deliveriesOf(entry) >= aloneFrom
    const at = this.#suspects.findIndex(isAlone)
    if (at >= 0) return this.#suspects.splice(at, 1)
    return this.#suspects.splice(0, concurrency)
  }

  #deliveriesOf({ part, record }: Entry): number {
    return part.progress.stateOf(record.offset)
  }

  #count({ part, record }: Entry, more: number): void {
    const { progress } = part
    const mark = progress.stateOf(record.offset)
    if (mark !== done) progress.set(record.offset, Math.max(0, mark + more))
  }

  /** Announces records to the broker as started. */
  async #announce(lot: Entry[], isCareful: boolean): Promise<void> {
    this.#isAnnouncing = true
    this.#announced = lot
    for (const entry of lot) this.#count(entry, 1)
    const parts = new Set(this.#dirty)
    for (const { part } of lot) parts.add(part)
    const { cluster, onError } = this.#options
    await retry({ clock: cluster.clock, ...retryDelay, onError }, () => this.#commitNow(parts))
    this.#isAnnouncing = false
    // Without records that were released meanwhile, as all are when we stop.
    const ours = this.#announced
    this.#announced = []
    this.#isCareful = isCareful && ours.length > 0
    if (this.#isCareful) {
      for (const entry of ours) this.#run(entry)
      // All of them may have to wait for a failing record with their key.
      return this.#relax()
    }
    this.#measure(lot.length)
    this.#ready.push(...ours)
    this.#pump()
  }

  /** Measures how long the last batch took, when all of it is started. */
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
      if (this.#transactionBatch) this.#transactionBatch.add({ entry, work })
      else {
        const sent = await sendWork(work, this.#sender, retries).catch(() => undefined)
        if (sent && !signal.aborted) this.#settle(entry, sent)
      }
      this.#commitLater(part)
    }
    this.#end(entry)
  }

  /** Retries until the partition is revoked. */
  #retries(entry: Entry): RetryOptions {
    const { cluster, onError } = this.#options
    const { signal } = entry.part.gone
    const report = (error: unknown): void => {
      this.#fail(entry)
      if (!signal.aborted) onError(error)
    }
    return { clock: cluster.clock, ...retryDelay, signal, onError: report }
  }

  #createTransactionBatch(transactor: Transactor): TransactionBatch {
    const { cluster, onError } = this.#options
    return new TransactionBatch({
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
    entry.part.progress.set(entry.record.offset, done)
  }

  #fail(entry: Entry): void {
    if (entry.isFailing) return
    entry.isFailing = true
    this.#failing += 1
    this.#relax()
  }

  /** All records that could kill the process have ended, or failed without killing it. */
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
      // Otherwise it is committed with the announcement, or with the next one.
      if (!this.#isAnnouncing)
        this.#commitNow(new Set(this.#dirty)).then(
          // The metadata may have room again.
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

  /** Waits briefly for running work; records that did not start count as not started. */
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
    const held = new Set(this.#transactionBatch?.held(part))
    for (const entry of part.entries) if (entry.isRunning || held.has(entry)) this.#count(entry, -1)
    part.gone.abort()
    this.#dirty.delete(part)
  }

  #lose(part: OurPart): void {
    part.gone.abort()
    this.#dirty.delete(part)
    this.#transactionBatch?.forget(part)
    this.#drop(part, () => true)
    this.#pump()
  }

  #drop(part: OurPart, isGone: (entry: Entry) => boolean): void {
    this.#unqueue((entry) => entry.part === part && isGone(entry))
    for (const entry of part.entries) if (isGone(entry)) this.#forget(entry)
  }

  /** Removes records from all queues. */
  #unqueue(isGone: (entry: Entry) => boolean): void {
    const stays = (entry: Entry): boolean => !isGone(entry)
    this.#announced = this.#announced.filter(stays)
    this.#ready = this.#ready.filter(stays)
    this.#suspects = this.#suspects.filter(stays)
    for (const part of this.#parts.all()) part.waiting = part.waiting.filter(stays)
    this.#lanes.remove(isGone)
  }
}
