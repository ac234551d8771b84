import { formatRequest, replayIdOf, type ReplayOptions, type ReplayReport } from './options.ts'
import type { Admin } from '@platformatic/kafka'
import { pipelineLetterId } from '../dead/capture.ts'
import { nextTurn, sleep } from '../../clock/clock.ts'
import { hasCode } from '../../errors.ts'
import { Fetcher } from '../../backends/kafka/fetcher.ts'
import { recordSize, type StoredRecord } from '../../backends/kafka/record.ts'
import type { OutgoingRecord } from '../../backends/kafka/sender.ts'
import { Transactor } from '../../backends/kafka/transactor.ts'
import { toTimestamp } from '../../letter/time.ts'
import { peekEnvelope } from './peek.ts'
import { isSpent } from '../dead/lineage.ts'
import { invalid, isOf, matches } from './filter.ts'
import { asQuarantined, asReplayed } from './record.ts'
import { markOf, ofAnother, quarantinedNote, Replayed, type ReplayProgress } from './replayed.ts'
import { survey, type Surveyed } from './survey.ts'
import { counted, left, outgoingIn, passed, type Step } from './steps.ts'
import { Targets } from './targets.ts'
import { replaysTopicOf } from '../graph/topics.ts'

/**
 * Returns dead records of a node to their source: those in its DLQ topic at the start. Sending and
 * marking are one transaction, so a replay that dies anywhere and is restarted sends nothing twice
 * to readers with read_committed. One replay per node at a time: another one takes over, and the
 * first one rejects with LEASE_LOST.
 */
export async function replayNode(options: ReplayOptions): Promise<ReplayReport> {
  const replay = new Replay(options)
  try {
    return await replay.run()
  } finally {
    await replay.close()
  }
}

/** Records per transaction. */
const maxRecords = 10_000
const maxBytes = 7_600_000
const maxSteps = 20_000
/** Records processed before other work gets a turn. */
const maxAtOnce = 300

const none: readonly number[] = []

class Replay {
  readonly #options: ReplayOptions
  readonly #fetcher: Fetcher
  readonly #admin: Admin
  readonly #replayed: Replayed
  readonly #transactor: Transactor
  readonly #targets: Targets
  #progress: ReplayProgress
  #steps: Step[] = []
  #acting = 0
  #bytes = 0
  #acted = 0
  #carrying: Promise<void> = Promise.resolve()
  #nextMs = 0

  constructor(options: ReplayOptions) {
    const { limit = 1, rate = 1, cluster, settings, filter = {} } = options
    if (!(Number.isSafeInteger(limit) && limit > 0))
      throw invalid('limit must be a whole number of at least 1')
    if (!(rate > 0)) throw invalid('rate must be a number of records per second above 0')
    // NaN would match every record: comparisons with it are false.
    if (Number.isNaN(filter.sinceMs) || Number.isNaN(filter.untilMs))
      throw invalid('sinceMs and untilMs must be timestamps in milliseconds since 1970, not NaN')
    this.#options = options
    const fetcher = (this.#fetcher = new Fetcher(cluster))
    const admin = (this.#admin = cluster.admin())
    const { dryRun = false } = options
    this.#targets = new Targets({ cluster, settings, admin, dryRun })
    this.#replayed = new Replayed({ cluster, fetcher, admin, place: settings, withLetters: true })
    this.#transactor = new Transactor(cluster, replaysTopicOf(settings))
    this.#progress = {
      id: options.id ?? replayIdOf(options),
      sent: 0,
      quarantined: 0,
      passed: 0,
      left: 0,
      positions: [],
      ends: [],
      startedAt: toTimestamp(cluster.clock.now()),
      done: false,
      request: formatRequest(options),
    }
  }

  async run(): Promise<ReplayReport> {
    const { settings, target, id, signal } = this.#options
    if (target !== undefined && (await this.#targets.look(target)) === 0)
      throw invalid(`the topic ${target} to replay to does not exist`)
    const partitions = await this.#targets.look(settings.dlq.topic)
    if (partitions === 0) {
      this.#progress.done = true
      return this.#report()
    }
    await this.#begin(partitions)
    if (this.#progress.done && id !== undefined) return this.#report()
    await this.#replayAll()
    await this.#carrying
    if (signal?.aborted) return this.#report()
    await this.#flush(true)
    await this.#carrying
    return this.#report()
  }

  async close(): Promise<void> {
    await this.#carrying.catch(() => {})
    await Promise.all([
      this.#transactor.close(),
      this.#fetcher.close(),
      this.#admin.close().catch(() => {}),
    ])
  }

  /** From now on, nobody else replays this node. Continues the replay with our id, or starts it. */
  async #begin(partitions: number): Promise<void> {
    const { cluster, settings, dryRun, id } = this.#options
    if (!dryRun) {
      await this.#replayed.create(partitions, settings.replicas)
      await this.#transactor.open()
    }
    await this.#replayed.catchUp()
    const { topic } = settings.dlq
    const places = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
    const bounds = await cluster.call(() => this.#fetcher.bounds(places))
    const before = this.#replayed.progressOf(this.#progress.id)
    const open = before && !before.done ? before.ends : none
    if (
      bounds.some(({ next }, partition) => this.#replayed.lastOf(partition) >= next) ||
      open.some((end, partition) => end > (bounds[partition]?.next ?? 0))
    )
      throw ofAnother(this.#replayed.topic, topic)
    if (before && (!before.done || id !== undefined)) this.#progress = before
    else {
      this.#progress.positions = bounds.map(({ first }) => first)
      this.#progress.ends = bounds.map(({ next }) => next)
    }
    this.#acted = this.#progress.sent + this.#progress.quarantined
  }

  /**
   * While one partition is sent, the next one is surveyed, unless it may turn out not to be needed.
   */
  async #replayAll(): Promise<void> {
    const { limit } = this.#options
    const { length } = this.#progress.ends
    let ahead = this.#survey(0)
    for (let partition = 0; partition < length; partition++) {
      const surveyed = await ahead
      const next = partition + 1
      if (next < length && limit === undefined) ahead = this.#survey(next)
      if (!(await this.#replayPartition(partition, surveyed))) return
      if (next < length && limit !== undefined) ahead = this.#survey(next)
    }
  }

  #survey(partition: number): Promise<Surveyed> {
    const { cluster, settings } = this.#options
    const { positions, ends } = this.#progress
    const surveying = survey(cluster, this.#fetcher, {
      place: { topic: settings.dlq.topic, partition },
      start: positions[partition] ?? 0,
      end: ends[partition] ?? 0,
    })
    // Awaited later.
    surveying.catch(() => {})
    return surveying
  }

  /** False if there is nothing more to do, or the replay was stopped. */
  async #replayPartition(partition: number, surveyed: Surveyed): Promise<boolean> {
    const { settings } = this.#options
    const place = { topic: settings.dlq.topic, partition }
    const end = this.#progress.ends[partition] ?? 0
    const { held, from } = surveyed
    // Processed records need not stay in memory.
    for (let records = held.shift(); records; records = held.shift())
      if (!(await this.#takeAll(records, end, surveyed))) return false
    for await (const { records } of this.#fetcher.readAll(place, from, end))
      if (!(await this.#takeAll(records, end, surveyed))) return false
    return true
  }

  async #takeAll(
    records: readonly StoredRecord[],
    end: number,
    surveyed: Surveyed,
  ): Promise<boolean> {
    const { limit = Infinity, signal } = this.#options
    let seen = 0
    for (const record of records) {
      if (record.offset >= end) break
      if (this.#acted >= limit) return false
      // Transactions in flight continue meanwhile.
      if (++seen % maxAtOnce === 0) await nextTurn()
      const waiting = this.#take(record, surveyed)
      if (waiting) await waiting
      if (signal?.aborted) return false
    }
    return true
  }

  /** Waits only if necessary. */
  #take(record: StoredRecord, surveyed: Surveyed): Promise<void> | void {
    const step = this.#stepFor(record, surveyed)
    if (step instanceof Promise) return step.then((known) => this.#add(known))
    return this.#add(step)
  }

  #add(step: Step): Promise<void> | void {
    this.#steps.push(step)
    if (step.outgoing) {
      this.#acted += 1
      this.#acting += 1
      this.#bytes += recordSize(step.outgoing.record)
    }
    const { rate = Infinity } = this.#options
    const most = Math.min(maxRecords, Math.max(1, Math.ceil(rate / 4)))
    const isFull = this.#acting >= most || this.#bytes >= maxBytes || this.#steps.length >= maxSteps
    if (isFull) return this.#flush(false)
  }

  #stepFor(record: StoredRecord, surveyed: Surveyed): Step | Promise<Step> {
    const { settings, filter, target, cluster } = this.#options
    const { partition, offset, key, value } = record
    const copies = surveyed.copies.get(offset) ?? none
    const step: Step = { partition, offset, key, kind: 'passed', outgoing: undefined, copies }
    if (value.length === 0 || surveyed.doubles.has(offset) || this.#isOver(step)) return step
    const found = peekEnvelope(value)
    if (!found) return left(step)
    if (!isOf(found, settings) || (filter && !matches(filter, found))) return step
    const nowMs = cluster.clock.now()
    if (isSpent(found.reprocessed, settings.dlq.maxReprocessCount)) {
      const { quarantineTopic } = settings.dlq
      step.kind = 'quarantined'
      if (this.#isOver(step)) return passed(step)
      step.outgoing = asQuarantined(record, quarantineTopic, nowMs)
      return this.#targets.knows(quarantineTopic)
        ? step
        : this.#targets.makeQuarantine().then(() => step)
    }
    if (!found.replayable) return left(step)
    const topic = target ?? (found.topic || settings.inputTopic)
    const partitions = this.#targets.partitionsOf(topic)
    if (partitions === undefined)
      return this.#targets.look(topic).then(() => this.#stepFor(record, surveyed))
    if (partitions === 0 || topic === settings.dlq.topic) return left(step)
    const { id } = this.#progress
    const { node } = settings
    step.outgoing = asReplayed(record, found, { topic, partitions, id, node, nowMs })
    step.kind = step.outgoing ? 'sent' : 'left'
    return step
  }

  /**
   * True if the record or a copy was replayed or erased. A quarantined record counts only as long
   * as it would be quarantined again.
   */
  #isOver({ kind, partition, offset, key, copies }: Step): boolean {
    const replayed = this.#replayed
    const isOver = (at: number): boolean => {
      if (!replayed.has(partition, at)) return false
      if (replayed.isErased(partition, at)) return true
      if (this.#options.again) return false
      return kind === 'quarantined' || !replayed.isQuarantined(partition, at)
    }
    return isOver(offset) || copies.some(isOver) || this.#wentAsLetter(key)
  }

  /** The record or a copy, which compaction may have removed since. */
  #wentAsLetter(key: Buffer | undefined): boolean {
    const { again, settings } = this.#options
    const { letters } = this.#replayed
    if (again || !key || letters.size === 0) return false
    return letters.has(pipelineLetterId(settings.cluster, key.toString('latin1')))
  }

  /** Sends the collected steps, as soon as the previous ones are committed. */
  async #flush(isLast: boolean): Promise<void> {
    const { cluster, rate, signal, dryRun } = this.#options
    await this.#carrying
    const steps = this.#steps
    this.#steps = []
    this.#acting = 0
    this.#bytes = 0
    if (rate !== undefined && !dryRun) {
      const nowMs = cluster.clock.mono()
      await sleep(cluster.clock, this.#nextMs - nowMs, signal)
      const acting = steps.filter(({ outgoing }) => outgoing).length
      this.#nextMs = Math.max(nowMs, this.#nextMs) + (acting / rate) * 1000
    }
    if (signal?.aborted) return
    this.#carrying = this.#carry(steps, isLast)
    // Awaited later.
    this.#carrying.catch(() => {})
  }

  /**
   * One transaction. If a record is too large for its topic, it is left, and the others are sent in
   * smaller transactions.
   */
  async #carry(found: readonly Step[], isLast: boolean): Promise<void> {
    const { dryRun, onProgress, signal } = this.#options
    const steps = dryRun ? found : await this.#stillOpen(found)
    const before = this.#progress
    const progress = (this.#progress = counted(before, steps))
    progress.done = isLast
    if (!dryRun) {
      const outgoing = outgoingIn(steps)
      const added = this.#note(steps)
      try {
        const written = this.#replayed.written(progress)
        // Marks come first: whoever sends one of these as a letter sees them, and waits for the
        // result.
        const all = [...written, ...this.#marksOf(steps), ...outgoing]
        await this.#transactor.send(all, undefined, signal)
      } catch (error) {
        if (!hasCode(error, 'TOO_LARGE') || outgoing.length === 0) throw error
        for (const [partition, offset] of added) this.#replayed.drop(partition, offset)
        this.#progress = before
        const half = Math.ceil(steps.length / 2)
        if (steps.length > 1) await this.#carry(steps.slice(0, half), false)
        else return this.#carry([left(steps[0]!)], isLast)
        return this.#carry(steps.slice(half), isLast)
      }
    }
    onProgress?.(this.#report())
  }

  /**
   * A replay may take long. Records that others replayed or erased since they were read are
   * skipped.
   */
  async #stillOpen(steps: readonly Step[]): Promise<readonly Step[]> {
    await this.#replayed.catchUp()
    return steps.map((step) => (step.outgoing && this.#isOver(step) ? passed(step) : step))
  }

  /** Which of them are quarantined from now on, and which no longer. */
  #marksOf(steps: readonly Step[]): OutgoingRecord[] {
    const { settings } = this.#options
    const { id } = this.#progress
    const marks: OutgoingRecord[] = []
    for (const { kind, partition, offset, outgoing, copies } of steps)
      for (const at of outgoing ? [offset, ...copies] : none) {
        const place = { partition, offset: at }
        if (kind === 'quarantined') marks.push(markOf(settings, place, quarantinedNote))
        else if (kind === 'sent' && this.#replayed.isQuarantined(partition, at))
          marks.push(markOf(settings, place, `replay ${id}`))
      }
    return marks
  }

  /** All copies of a sent record are marked as replayed. Returns those that were not before. */
  #note(steps: readonly Step[]): [partition: number, offset: number][] {
    const added: [number, number][] = []
    const note = (partition: number, offset: number): void => {
      if (this.#replayed.has(partition, offset)) return
      this.#replayed.add(partition, offset)
      added.push([partition, offset])
    }
    for (const { partition, offset, outgoing, copies } of steps) {
      if (!outgoing) continue
      note(partition, offset)
      for (const copy of copies) note(partition, copy)
    }
    return added
  }

  #report(): ReplayReport {
    return { ...this.#progress, dryRun: this.#options.dryRun ?? false }
  }
}
