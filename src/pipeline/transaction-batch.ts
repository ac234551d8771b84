import { sleep, type Clock } from '../clock/clock.ts'
import { hasCode, type RedriveError } from '../errors.ts'
import type { CommittedOffset, Group, Membership } from '../backends/kafka/group.ts'
import { done, Progress } from '../backends/kafka/progress.ts'
import { partitionKey, type StoredRecord } from '../backends/kafka/record.ts'
import type { Transactor } from '../backends/kafka/transactor.ts'
import type { Entry, OurPart } from './our-part.ts'
import type { Finished } from './work.ts'

export interface TransactionBatchOptions {
  clock: Clock
  transactor: Transactor
  /** Called after the commit. */
  settled: (finished: Finished) => void
  /** Called when there is more to commit. */
  changed: (part: OurPart) => void
  onError: (error: unknown) => void
}

/** Each attempt costs the others an aborted transaction. */
const putOffMs = 5000

/** Sends the results of records and commits their offsets in one transaction. */
export class TransactionBatch {
  readonly #options: TransactionBatchOptions
  #open: Finished[] = []
  /** Deferred records by lane: later records of the lane wait for them. */
  readonly #late = new Map<string | Entry, Entry>()

  constructor(options: TransactionBatchOptions) {
    this.#options = options
  }

  add(finished: Finished): void {
    this.#open.push(finished)
  }

  /** Partitions with something to commit. */
  parts(): OurPart[] {
    return this.#open.map(({ entry }) => entry.part)
  }

  /**
   * Deferred records, and records that wait for one. If their partition is revoked, they are
   * released like all records in process.
   */
  held(part: OurPart): Entry[] {
    const open = this.#open.map(({ entry }) => entry).filter((entry) => this.#isHeld(entry))
    return [...this.#late.values(), ...open].filter((entry) => entry.part === part)
  }

  forget(part: OurPart): void {
    this.#open = this.#open.filter(({ entry }) => entry.part !== part)
    for (const [lane, entry] of this.#late) if (entry.part === part) this.#late.delete(lane)
  }

  /** Starts from the positions of the partitions without the open records. */
  async carry(group: Group, positions: readonly CommittedOffset[]): Promise<void> {
    await this.#carry(this.#going(this.#open), positions, { group, membership: group.membership })
  }

  /**
   * A record that is too large for its topic is found by bisection: it must not block the others.
   * Returns the new positions of the partitions.
   */
  async #carry(
    lot: readonly Finished[],
    from: readonly CommittedOffset[],
    as: { group: Group; membership: Membership },
  ): Promise<readonly CommittedOffset[]> {
    const records = Map.groupBy(
      lot.map(({ entry }) => entry.record),
      (record) => partitionKey(record),
    )
    const positions = from.map((position) =>
      behind(position, records.get(partitionKey(position)) ?? []),
    )
    try {
      const outgoing = lot.flatMap(({ work }) => work.outgoing)
      await this.#options.transactor.send(outgoing, { ...as, offsets: positions })
    } catch (error) {
      const [first] = lot
      if (!first || !hasCode(error, 'TOO_LARGE')) throw error
      if (lot.length === 1) return this.#carry(await this.#insteadOf(first, error), from, as)
      const half = Math.ceil(lot.length / 2)
      const positions = await this.#carry(lot.slice(0, half), from, as)
      return this.#carry(this.#going(lot.slice(half)), positions, as)
    }
    this.#settle(lot)
    return positions
  }

  #going(lot: readonly Finished[]): Finished[] {
    return lot.filter(({ entry }) => !this.#isHeld(entry))
  }

  #isHeld(entry: Entry): boolean {
    return this.#late.has(laneOf(entry))
  }

  /**
   * Includes records that were forgotten meanwhile: they are committed, and are not delivered
   * again.
   */
  #settle(lot: readonly Finished[]): void {
    const carried = new Set(lot.map(({ entry }) => entry))
    this.#open = this.#open.filter(({ entry }) => !carried.has(entry))
    for (const finished of lot) this.#options.settled(finished)
  }

  /** Empty if the record is deferred. */
  async #insteadOf(finished: Finished, error: RedriveError): Promise<Finished[]> {
    const { entry, work } = finished
    let why: unknown = error
    try {
      if (work.instead) return [{ entry, work: await work.instead(error) }]
    } catch (thrown) {
      why = thrown
    }
    work.failed?.(why)
    this.#options.onError(why)
    void this.#defer(finished)
    return []
  }

  async #defer(finished: Finished): Promise<void> {
    const { entry } = finished
    const { signal } = entry.part.gone
    if (entry.part.isLost) return
    this.#open = this.#open.filter((other) => other.entry !== entry)
    this.#late.set(laneOf(entry), entry)
    await sleep(this.#options.clock, putOffMs, signal)
    // Later records of the lane are not committed before it, even with the last commit.
    if (signal.aborted) return
    this.#late.delete(laneOf(entry))
    this.#open.unshift(finished)
    this.#options.changed(entry.part)
  }
}

/** A record without a key has its own lane. */
function laneOf(entry: Entry): string | Entry {
  return entry.lane ?? entry
}

/** The position of a partition after these records. */
function behind(position: CommittedOffset, records: readonly StoredRecord[]): CommittedOffset {
  const progress = new Progress(position.offset, position.metadata)
  for (const { offset } of records) progress.set(offset, done)
  return { ...position, offset: progress.base, metadata: progress.toMetadata() }
}
