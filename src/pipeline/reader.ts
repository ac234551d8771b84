import { sleep } from '../clock.ts'
import type { Cluster } from '../kafka/cluster.ts'
import { Parts } from '../kafka/parts.ts'
import { done } from '../kafka/progress.ts'
import type { Stored } from '../kafka/record.ts'
import { Sender, type Outgoing } from '../kafka/sender.ts'
import type { Transactor } from '../kafka/transactor.ts'
import { Again } from './again.ts'
import { Lanes } from './lanes.ts'
import { begun, isOurs, type Entry, type OurPart } from './our-part.ts'
import { Window } from './window.ts'

export interface Turn {
  /** Counts this one. Those before ended with their process. */
  deliveries: number
  /** The record is somebody else's, or we stop. What comes of it counts no longer. */
  signal: AbortSignal
}

/** What comes of a record. */
export interface Work {
  /** All of it is sent before the record is done. */
  outgoing: readonly Outgoing[]
  /** The brokers have it. */
  done?: () => void
  /** They did not take it. It is tried again by itself. */
  failed?: (error: unknown) => void
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
  trouble: (error: unknown) => void
}

/** How long it may take until the broker hears that a record is done, when nothing else is to be told. */
const commitMs = 25

interface Finished {
  entry: Entry
  work: Work
}

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
  readonly #again: Again
  /** Told to the broker as begun; they run as soon as there is a free slot. */
  #ready: Entry[] = []
  /** Their process ended while they were under way. */
  #suspects: Entry[] = []
  readonly #lanes = new Lanes<Entry>()
  readonly #unsettled: Finished[] = []
  #owed: Finished[] = []
  readonly #dirty = new Set<OurPart>()
  #running = 0
  /** Suspects are under way: nothing else is begun. */
  #isCareful = false
  #isAnnouncing = false
  #isStopping = false
  #lotMs = 0
  #lotSize = 0
  #cancelCommit: (() => void) | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
    const { cluster, groupId, topics, sessionMs, trouble, transactor } = options
    this.#sender = new Sender(cluster)
    this.#window = new Window(options.concurrency)
    this.#again = new Again(cluster.clock, trouble)
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
      trouble,
      well: () => {},
      ...(transactor
        ? {
            closeBooks: () => this.#closeBooks(),
            commit: async (positions) => {
              const { group } = this.#parts
              const { member } = group
              const outgoing = this.#owed.flatMap(({ work }) => work.outgoing)
              await transactor.carry(outgoing, { group, member, positions })
              const owed = this.#owed
              this.#owed = []
              for (const { work } of owed) work.done?.()
            },
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
    await this.#parts.commit(parts).catch(this.#options.trouble)
    await this.#parts.close()
    await this.#sender.close()
    await this.#options.transactor?.close()
  }

  #arrive(part: OurPart, records: Stored[]): void {
    const keys = `${part.topic}:${part.partition}:`
    for (const record of records) {
      const lane = record.key ? keys + record.key.toString('latin1') : undefined
      const entry: Entry = { part, record, lane, isRunning: false }
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
      if (this.#running === 0 && this.#ready.length === 0)
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
    for (const { waiting } of parts) {
      for (const entry of waiting.splice(0, Math.min(share, max - lot.length)))
        if (this.#deliveriesOf(entry) > 0) this.#suspects.push(entry)
        else lot.push(entry)
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
    for (const entry of lot) this.#count(entry, 1)
    const parts = new Set(this.#dirty)
    for (const { part } of lot) parts.add(part)
    await this.#again.until(() => this.#commitNow(parts))
    this.#isAnnouncing = false
    const ours = lot.filter((entry) => isOurs(entry))
    if (this.#isStopping) {
      for (const entry of ours) this.#count(entry, -1)
      return
    }
    this.#isCareful = isCareful && ours.length > 0
    if (this.#isCareful) return ours.forEach((entry) => this.#run(entry))
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
    const work = await this.#again.until(() => this.#options.work(record, turn), signal)
    if (work && !signal.aborted) {
      if (this.#options.transactor) this.#unsettled.push({ entry, work })
      else if (work.outgoing.length === 0 || (await this.#sent(work, signal))) {
        this.#done(entry)
        work.done?.()
      }
      this.#commitLater(part)
    }
    this.#end(entry)
  }

  /** Whether all that came of it is with the brokers. False: it is none of our business any more. */
  async #sent({ outgoing, failed }: Work, signal: AbortSignal): Promise<boolean> {
    const send = async (): Promise<boolean> => {
      await Promise.all(outgoing.map((one) => this.#sender.send(one)))
      return !signal.aborted
    }
    return (await this.#again.until(send, signal, failed)) ?? false
  }

  #done(entry: Entry): void {
    this.#forget(entry)
    entry.part.progress.mark(entry.record.offset, done)
  }

  #end(entry: Entry): void {
    const { part } = entry
    entry.isRunning = false
    this.#running -= 1
    part.running -= 1
    if (part.running === 0) part.onIdle()
    const next = this.#lanes.leave(entry)
    if (next) this.#begin(next)
    if (this.#running === 0) this.#isCareful = false
    this.#pump()
  }

  #forget(entry: Entry): void {
    const { part, record } = entry
    const wasFull = !part.hasRoom()
    if (!part.entries.delete(entry)) return
    part.bytes -= record.value.byteLength
    if (wasFull) this.#parts.wake()
  }

  /** In a transaction, records are done when it is committed with what came of them. Names the partitions that have such. */
  #closeBooks(): OurPart[] {
    for (const finished of this.#unsettled.splice(0)) {
      if (finished.entry.part.isLost) continue
      this.#done(finished.entry)
      this.#owed.push(finished)
    }
    return this.#owed.map(({ entry }) => entry.part)
  }

  #commitLater(part: OurPart): void {
    this.#dirty.add(part)
    if (this.#cancelCommit || this.#isStopping) return
    this.#cancelCommit = this.#options.cluster.clock.timer(commitMs, () => {
      this.#cancelCommit = undefined
      // Else it goes with what is announced, or with the next.
      if (!this.#isAnnouncing)
        this.#commitNow(new Set(this.#dirty)).catch((error: unknown) => {
          this.#options.trouble(error)
          for (const one of this.#parts.all()) this.#commitLater(one)
        })
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
    const begun = [...this.#ready, ...this.#lanes.waiting()]
    for (const entry of begun.filter(isIts)) this.#count(entry, -1)
    this.#unqueue(isIts)
    if (part.running > 0) {
      const idle = new AbortController()
      part.onIdle = () => idle.abort()
      await sleep(this.#options.cluster.clock, drainMs, idle.signal)
    }
    for (const entry of part.entries) if (entry.isRunning) this.#count(entry, -1)
    part.gone.abort()
    this.#dirty.delete(part)
  }

  #lose(part: OurPart): void {
    part.gone.abort()
    this.#dirty.delete(part)
    this.#owed = this.#owed.filter(({ entry }) => entry.part !== part)
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
    this.#ready = this.#ready.filter(stays)
    this.#suspects = this.#suspects.filter(stays)
    for (const part of this.#parts.all()) part.waiting = part.waiting.filter(stays)
    this.#lanes.remove(isGone)
  }
}
