import { applyEach } from '../apply-each.ts'
import { Watchers } from '../../backends/watchers.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { nextTurn, systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { copyOf } from '../../letter/copy.ts'
import {
  isDone,
  isOpen,
  type CountedAction,
  type DeadLetter,
  type LetterSummary,
  type Payload,
} from '../../letter/letter.ts'
import { countsOf, countsOfCapture } from '../../letter/counts.ts'
import { claim, occur, withChange, type BulkMoves, type Change } from '../../letter/moves.ts'
import {
  matches,
  sortKey,
  writeCursor,
  type LetterFilter,
  type LetterQuery,
  type Order,
  type Page,
} from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  Claim,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  LetterVersion,
  Powers,
  Records,
  Store,
  StoredLetter,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'
import { checkLease, isLeased, meetsGuard } from '../lease.ts'
import { grow, valuesOf } from '../rows/tally.ts'
import { searchOf, type Place } from '../search.ts'
import { ClaimIndex } from './claim-index.ts'
import { Counts } from './counts.ts'
import { compareIds, compareStrings, storedOf, summaryOf, type Entry } from './entry.ts'
import { MemoryRecords } from './records.ts'
import { SortedList } from './sorted-list.ts'

export interface MemoryStoreOptions {
  clock?: Clock
}

const knownOptions = keysOf<MemoryStoreOptions>({ clock: true })

/** Number of writes after which the event loop gets a turn. */
const writesPerTurn = 50

/**
 * A store in the memory of this process, for tests and small processes; also the reference for what
 * every other store does. Adding, claiming and most counts do not slow down with more letters;
 * `find` and `remove` scan all letters.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkKeys('options of memoryStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  return new MemoryStore(options.clock ?? systemClock)
}

/**
 * Every method changes the letters without awaiting in between, so calls never interleave. Letters
 * are copied on the way in and out; inside, they are replaced and never mutated.
 */
class MemoryStore implements Store {
  readonly powers: Powers = {
    kind: 'memory',
    durable: false,
    shared: false,
    search: 'substring',
    wakeups: 'local',
  }
  readonly records: Records
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  readonly #claimable = new ClaimIndex()
  readonly #counts = new Counts()
  /** Open letters by queue and dedupe key. A restored letter may share its key with a newer one. */
  readonly #keys = new Map<string, Entry[]>()
  /** Resolved letters, longest settled first: the order of eviction. */
  readonly #resolved = new SortedList(compareSettled)
  readonly #totals = new Map<string, Total>()
  readonly #watchers = new Watchers()
  /** Letters that count towards a capacity: all but the archived. */
  #occupied = 0
  /** Whether the current call has made a letter due. */
  #madeDue = false
  /** Letters written since the event loop last had a turn. */
  #writes = 0
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.records = new MemoryRecords(clock, () => this.#checkOpen())
  }

  async open(): Promise<void> {
    this.#checkOpen()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#watchers.clear()
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    this.#checkOpen()
    const results = letters.map((letter) => this.#addOne(letter, capacity))
    await this.#finish(letters.length)
    return results
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    this.#checkOpen()
    return this.#lookUp(ids).map(({ letter }) => copyOf(letter))
  }

  async original(id: string): Promise<Payload | undefined> {
    this.#checkOpen()
    return copyOf(this.#entries.get(id)?.original)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    this.#checkOpen()
    const { filter, order, limit, after, whole } = searchOf(query)
    const compare = comparePlaces(order)
    const found = this.#select(filter)
      .map(({ id, letter }) => ({ key: sortKey(letter, order), id, letter }))
      .filter((place) => !after || compare(after, place) < 0)
      .sort(compare)
    const page = found.slice(0, limit)
    const items = page.map(({ letter }) => (whole ? copyOf(letter) : summaryOf(letter)))
    const last = page.at(-1)
    if (!last || found.length === page.length) return { items }
    return { items, cursor: writeCursor({ order, key: last.key, id: last.id }) }
  }

  async tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    this.#checkOpen()
    checkTally(by, filter)
    const maintained = this.#counts.tally(by, filter)
    if (maintained) return maintained
    const counts = new Map<string, number>()
    for (const { letter } of this.#select(filter))
      for (const value of valuesOf(letter, by)) grow(counts, value, 1)
    return counts
  }

  async totals(): Promise<Total[]> {
    this.#checkOpen()
    return copyOf([...this.#totals.values()])
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    this.#checkOpen()
    return this.#lookUp(ids).map(storedOf)
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    this.#checkOpen()
    const results = letters.map((letter) => this.#keepOne(letter))
    await this.#finish(letters.length)
    return results
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    this.#checkOpen()
    for (const total of totals) this.#totals.set(totalKey(total), { ...total })
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    this.#checkOpen()
    checkLease(request.leaseMs)
    const atMs = this.#clock.now()
    const by = { worker: request.worker, atMs, leaseMs: request.leaseMs }
    const claimed = this.#claimable.due(request, atMs)
    for (const entry of claimed) this.#replace(entry, claim(entry.letter, by), ['claim'])
    const letters = claimed.map(({ letter }) => copyOf(letter))
    const nextMs = letters.length < request.limit ? this.#claimable.nextMs(request) : Infinity
    return nextMs === Infinity ? { letters } : { letters, nextDueAt: toTimestamp(nextMs) }
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    this.#checkOpen()
    checkLease(leaseMs)
    const end = toTimestamp(this.#clock.now() + leaseMs)
    return leases.map((ref) => {
      const entry = this.#entries.get(ref.id)
      if (!entry?.letter.lease || !isLeased(entry.letter, ref)) return false
      const { lease } = entry.letter
      if (end > lease.expiresAt)
        this.#replace(entry, { ...entry.letter, lease: { ...lease, expiresAt: end } }, [])
      return true
    })
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    this.#checkOpen()
    const results = changes.map((change) => this.#applyOne(change))
    await this.#finish(changes.length)
    return results
  }

  applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]> {
    return applyEach(this, letters, moves)
  }

  async remove(which: LetterFilter): Promise<number> {
    this.#checkOpen()
    checkRemoval(which)
    const removed = this.#select(which).filter(({ letter }) => letter.state !== 'retrying')
    for (const entry of removed) this.#replace(entry, undefined, ['remove'])
    await this.#finish(removed.length)
    return removed.length
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  async health(): Promise<StoreHealth> {
    const checks = { durable: 'no: letters are lost when the process ends' }
    return { ok: !this.#closed, checks, problems: this.#closed ? ['the store is closed'] : [] }
  }

  #lookUp(ids: readonly string[]): Entry[] {
    return ids.flatMap((id) => this.#entries.get(id) ?? [])
  }

  /** Matching entries. Checks what few letters have before the rest of the filter. */
  #select(filter: LetterFilter): Entry[] {
    const { ids, dependent, expiresBefore } = filter
    const found: Entry[] = []
    for (const entry of ids ? this.#lookUp([...new Set(ids)]) : this.#entries.values()) {
      const { letter, waitsFor } = entry
      if (dependent !== undefined && dependent !== waitsFor.size > 0) continue
      if (expiresBefore !== undefined && letter.expiresAt === undefined) continue
      if (matches(letter, filter)) found.push(entry)
    }
    return found
  }

  #addOne(letter: DeadLetter, capacity: Capacity | undefined): AddResult {
    const same = this.#entries.get(letter.id)
    if (same)
      return { kind: 'duplicate', of: same.id, by: 'id', occurrences: same.letter.occurrences }
    const holder = this.#findKeyHolder(letter)
    if (holder) {
      const next = occur(holder.letter, copyOf(letter))
      this.#replace(holder, next, ['occur'])
      return { kind: 'duplicate', of: holder.id, by: 'dedupeKey', occurrences: next.occurrences }
    }
    const evicted = capacity && letter.state !== 'archived' ? this.#makeRoom(capacity) : 0
    if (evicted === undefined) return { kind: 'full' }
    const copy = copyOf(letter)
    this.#insert({ letter: copy, waitsFor: copy.dependsOn ?? [] }, countsOfCapture(letter.state))
    return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
  }

  /** The oldest open letter with the dedupe key of this one. */
  #findKeyHolder({ queue, dedupeKey }: DeadLetter): Entry | undefined {
    if (dedupeKey === undefined) return undefined
    return this.#keys.get(JSON.stringify([queue, dedupeKey]))?.toSorted(compareIds)[0]
  }

  /** Evicts resolved letters so that one more fits. Returns how many. Undefined: no room. */
  #makeRoom({ maxItems, overflow }: Capacity): number | undefined {
    const excess = this.#occupied + 1 - maxItems
    if (excess <= 0) return 0
    if (overflow === 'reject' || this.#resolved.size < excess) return undefined
    for (const entry of this.#resolved.head(excess)) this.#replace(entry, undefined, ['evict'])
    return excess
  }

  #applyOne(change: Change): ApplyResult {
    const entry = this.#entries.get(change.id)
    if (!entry) return 'missing'
    if (!meetsGuard(entry.letter, change)) return 'conflict'
    this.#replace(entry, withChange(entry.letter, copyOf(change)), countsOf(change))
    return 'written'
  }

  #keepOne(stored: StoredLetter): KeepResult {
    const same = this.#entries.get(stored.letter.id)
    if (same && same.letter.version >= stored.letter.version) return 'conflict'
    if (same) this.#replace(same, undefined, [])
    this.#insert(copyOf(stored), [])
    return 'written'
  }

  #insert(
    { letter, original = letter.payload, waitsFor = [] }: StoredLetter,
    counts: readonly CountedAction[],
  ): void {
    const unresolved = waitsFor.filter((id) => {
      const other = this.#entries.get(id)
      return !other || !isDone(other.letter)
    })
    const entry: Entry = { id: letter.id, letter, original, waitsFor: new Set(unresolved) }
    this.#replace(entry, letter, counts)
  }

  /**
   * Inserts, changes or removes (`after` is undefined) a letter and updates all indexes. Every
   * change goes through here. `counts` are the actions to add to the totals.
   */
  #replace(entry: Entry, after: DeadLetter | undefined, counts: readonly CountedAction[]): void {
    const before = this.#entries.has(entry.id) ? entry.letter : undefined
    if (before?.state === 'resolved') this.#resolved.delete(entry)
    if (after) this.#entries.set(entry.id, entry)
    else this.#entries.delete(entry.id)
    entry.letter = after ?? entry.letter
    if (after?.state === 'resolved') this.#resolved.add(entry)
    this.#occupied += occupies(after) - occupies(before)
    if (before) this.#counts.add(before, -1)
    if (after) this.#counts.add(after, 1)
    if (holdsKey(before) !== holdsKey(after)) this.#moveKey(entry, holdsKey(after))
    for (const action of counts) this.#count(action, entry.letter)
    const dueMs = this.#claimable.update(entry, before, after)
    if (dueMs <= this.#clock.now()) this.#madeDue = true
  }

  #moveKey(entry: Entry, holds: boolean): void {
    const key = JSON.stringify([entry.letter.queue, entry.letter.dedupeKey])
    const holders = this.#keys.get(key)?.filter((other) => other !== entry) ?? []
    if (holds) holders.push(entry)
    if (holders.length > 0) this.#keys.set(key, holders)
    else this.#keys.delete(key)
  }

  #count(action: CountedAction, { queue, priority, retries, backoffMs }: DeadLetter): void {
    const none = { action, queue, priority, count: 0, retries: 0, maxRetries: 0, backoffMs: 0 }
    const total = this.#totals.get(totalKey(none)) ?? none
    total.count += 1
    total.retries += retries
    total.maxRetries = Math.max(total.maxRetries, retries)
    total.backoffMs += backoffMs
    this.#totals.set(totalKey(total), total)
  }

  /**
   * Ends a call that wrote: wakes the watchers if it made a letter due, and gives the event loop a
   * turn now and then. Without a disk to wait for, a caller in a loop would starve timers and
   * sockets.
   */
  async #finish(writes: number): Promise<void> {
    if (this.#madeDue) this.#watchers.notify()
    this.#madeDue = false
    this.#writes += writes
    if (this.#writes < writesPerTurn) return
    this.#writes = 0
    await nextTurn()
  }

  #checkOpen(): void {
    if (this.#closed) throw new RedriveError('CLOSED', 'the memory store is closed')
  }
}

function occupies(letter: DeadLetter | undefined): number {
  return letter === undefined || letter.state === 'archived' ? 0 : 1
}

function holdsKey(letter: DeadLetter | undefined): boolean {
  return letter?.dedupeKey !== undefined && isOpen(letter.state)
}

function comparePlaces(order: Order): (a: Place, b: Place) => number {
  if (order === 'newest') return (a, b) => compareIds(b, a)
  return (a, b) => compareStrings(a.key, b.key) || compareIds(a, b)
}

function compareSettled(a: Entry, b: Entry): number {
  return compareStrings(a.letter.settledAt ?? '~', b.letter.settledAt ?? '~') || compareIds(a, b)
}

function totalKey({ action, queue, priority }: Total): string {
  return `${action} ${priority} ${queue}`
}
