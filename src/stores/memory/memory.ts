import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import {
  isOpen,
  type CountedAction,
  type DeadLetter,
  type LetterSummary,
  type Payload,
} from '../../letter/letter.ts'
import {
  claim,
  countsOf,
  countsOfCapture,
  occur,
  withChange,
  type Change,
} from '../../letter/moves.ts'
import { dueAt } from '../../letter/order.ts'
import {
  matches,
  sortKey,
  writeCursor,
  type LetterFilter,
  type LetterQuery,
  type Page,
} from '../../letter/query.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { checkLease } from '../lease.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { searchOf } from '../search.ts'
import { toMs, toTimestamp } from '../../letter/time.ts'
import type {
  AddResult,
  ApplyResult,
  Capacity,
  Claim,
  ClaimRequest,
  KeepResult,
  LeaseRef,
  Powers,
  Records,
  Store,
  StoredLetter,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'
import { copyLetter, copyOf, storedOf, summaryOf } from './copy.ts'
import { grow, valuesOf } from '../rows/tally.ts'
import { Counts } from './counts.ts'
import { Due } from './due.ts'
import { Holds, isDone } from './holds.ts'
import { pair, type Kept } from './kept.ts'
import { Lists } from './lists.ts'
import { memoryRecords } from './records.ts'
import { Totals } from './totals.ts'
import { Turns } from './turns.ts'
import { Watchers } from '../../backends/watchers.ts'

export interface MemoryStoreOptions {
  clock?: Clock
}

const knownOptions = keysOf<MemoryStoreOptions>({ clock: true })

/**
 * Letters in the memory of this process, gone with it. For tests, for trying things out, and the reference for what
 * every other store does. Costs stay flat as letters grow in number: everything that is asked often has an index.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkKeys('options of memoryStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  return new MemoryStore(options.clock ?? systemClock)
}

/**
 * Every verb runs to its end without a pause, so no two ever interleave and each is one step to everyone else.
 * Letters are copied on their way in and out; inside they are values that are replaced and never changed.
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
  readonly #lists = new Lists()
  readonly #counts = new Counts()
  readonly #totals = new Totals()
  readonly #due = new Due()
  readonly #holds = new Holds()
  /** Open letters by queue and dedupe key. A restored letter may come to share a key with a newer one. */
  readonly #keys = new Map<string, Kept[]>()
  readonly #watchers = new Watchers()
  readonly #turns = new Turns()
  /** Letters that count against a capacity: all but the archived. */
  #occupied = 0
  /** Whether the verb at work has made a letter due. */
  #stirred = false
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.records = memoryRecords(clock, () => this.#check())
  }

  async open(): Promise<void> {
    this.#check()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#watchers.clear()
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    this.#check()
    const results = letters.map((letter) => this.#addOne(letter, capacity))
    this.#wake()
    await this.#turns.after(letters.length)
    return results
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    this.#check()
    return ids.flatMap((id) => {
      const kept = this.#lists.get(id)
      return kept ? [copyLetter(kept.letter)] : []
    })
  }

  async original(id: string): Promise<Payload | undefined> {
    this.#check()
    return copyOf(this.#lists.get(id)?.original)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    this.#check()
    const { filter, order, limit, after, whole } = searchOf(query)
    const found: DeadLetter[] = []
    if (limit === 0) return { items: found }
    let more = false
    for (const kept of this.#lists.from(filter, order, after && { order, ...after })) {
      if (!fits(kept, filter)) continue
      more = found.length === limit
      if (more) break
      found.push(kept.letter)
    }
    const items = found.map((letter) => (whole ? copyLetter(letter) : summaryOf(letter)))
    const last = found.at(-1)
    if (!more || !last) return { items }
    return { items, cursor: writeCursor({ order, key: sortKey(last, order), id: last.id }) }
  }

  async tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    this.#check()
    checkTally(by, filter)
    const counted = this.#counts.tally(by, filter)
    if (counted) return counted
    const tally = new Map<string, number>()
    for (const kept of this.#lists.any(filter)) {
      if (!fits(kept, filter)) continue
      for (const value of valuesOf(kept.letter, by)) grow(tally, value, 1)
    }
    return tally
  }

  async totals(): Promise<Total[]> {
    this.#check()
    return this.#totals.all()
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    this.#check()
    return ids.flatMap((id) => {
      const kept = this.#lists.get(id)
      return kept ? [storedOf(kept)] : []
    })
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    this.#check()
    const results = letters.map((letter) => this.#keepOne(letter))
    this.#wake()
    return results
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    this.#check()
    for (const total of totals) this.#totals.set(total)
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    this.#check()
    checkLease(request.leaseMs)
    const atMs = this.#clock.now()
    const taken = this.#due.take(request, atMs)
    const by = { worker: request.worker, atMs, leaseMs: request.leaseMs }
    for (const kept of taken) this.#move(kept, ['claim'], kept.letter, claim(kept.letter, by))
    const letters = taken.map((kept) => copyLetter(kept.letter))
    const nextMs = taken.length < request.limit ? this.#due.nextMs(request) : undefined
    return nextMs === undefined ? { letters } : { letters, nextDueAt: toTimestamp(nextMs) }
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    this.#check()
    checkLease(leaseMs)
    const end = toTimestamp(this.#clock.now() + leaseMs)
    return leases.map((held) => {
      const kept = this.#lists.get(held.id)
      if (!kept?.letter.lease || !isLeased(kept.letter, held)) return false
      const { lease } = kept.letter
      if (end > lease.expiresAt) {
        kept.letter = { ...kept.letter, lease: { ...lease, expiresAt: end } }
        this.#place(kept)
      }
      return true
    })
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    this.#check()
    const results = changes.map((change) => this.#applyOne(change))
    this.#wake()
    await this.#turns.after(changes.length)
    return results
  }

  async remove(which: LetterFilter): Promise<number> {
    this.#check()
    checkRemoval(which)
    const going: Kept[] = []
    for (const kept of this.#lists.any(which))
      if (kept.letter.state !== 'retrying' && fits(kept, which)) going.push(kept)
    for (const kept of going) this.#move(kept, ['remove'], kept.letter, undefined)
    this.#wake()
    return going.length
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  async health(): Promise<StoreHealth> {
    const problems = this.#closed ? ['the store is closed'] : []
    return {
      ok: !this.#closed,
      checks: { durable: 'no: letters are gone with the process' },
      problems,
    }
  }

  #addOne(letter: DeadLetter, capacity: Capacity | undefined): AddResult {
    const same = this.#lists.get(letter.id)
    if (same)
      return { kind: 'duplicate', of: same.id, by: 'id', occurrences: same.letter.occurrences }
    const holder = this.#holderOf(letter)
    if (holder) {
      const next = occur(holder.letter, copyLetter(letter))
      this.#move(holder, ['occur'], holder.letter, next)
      return { kind: 'duplicate', of: holder.id, by: 'dedupeKey', occurrences: next.occurrences }
    }
    const evicted = capacity && letter.state !== 'archived' ? this.#makeRoom(capacity) : 0
    if (evicted === undefined) return { kind: 'full' }
    const { dependsOn } = letter
    this.#insert(
      { letter: copyLetter(letter), ...(dependsOn ? { waitsFor: dependsOn } : {}) },
      countsOfCapture(letter.state),
    )
    return evicted > 0 ? { kind: 'added', evicted } : { kind: 'added' }
  }

  /** The oldest open letter that holds the key of this one. */
  #holderOf({ queue, dedupeKey }: DeadLetter): Kept | undefined {
    if (dedupeKey === undefined) return undefined
    return this.#keys.get(pair(queue, dedupeKey))?.reduce((a, b) => (a.id < b.id ? a : b))
  }

  /** How many had to go for one more to fit. Undefined: there is no room, and nothing went. */
  #makeRoom({ maxItems, overflow }: Capacity): number | undefined {
    const excess = this.#occupied + 1 - maxItems
    if (excess <= 0) return 0
    if (overflow === 'reject') return undefined
    const going: Kept[] = []
    for (const kept of this.#lists.from({ state: 'resolved' }, 'settled'))
      if (going.push(kept) === excess) break
    if (going.length < excess) return undefined
    for (const kept of going) this.#move(kept, ['evict'], kept.letter, undefined)
    return going.length
  }

  #applyOne(change: Change): ApplyResult {
    const kept = this.#lists.get(change.id)
    if (!kept) return 'missing'
    const { guard } = change
    const holds =
      'epoch' in guard ? isLeased(kept.letter, guard) : kept.letter.version === guard.version
    if (!holds) return 'conflict'
    this.#move(kept, countsOf(change), kept.letter, withChange(kept.letter, copyOf(change)))
    return 'written'
  }

  #keepOne(stored: StoredLetter): KeepResult {
    const same = this.#lists.get(stored.letter.id)
    if (same && same.letter.version >= stored.letter.version) return 'conflict'
    if (same) this.#move(same, [], same.letter, undefined)
    this.#insert(copyOf(stored), [])
    return 'written'
  }

  #insert({ letter, original, waitsFor }: StoredLetter, counts: readonly CountedAction[]): void {
    const unmet = waitsFor?.filter((id) => {
      const other = this.#lists.get(id)
      return !other || !isDone(other.letter)
    })
    const kept: Kept = {
      id: letter.id,
      letter,
      original: original ?? letter.payload,
      waitsFor: unmet && new Set(unmet),
      retryKey: '',
      settledKey: '',
      dueMs: 0,
      dueIn: undefined,
    }
    this.#move(kept, counts, undefined, letter)
  }

  /**
   * Every letter that comes, changes or goes does so here, and everything that is kept up goes with it. `counts` is what the
   * totals count it as.
   */
  #move(
    kept: Kept,
    counts: readonly CountedAction[],
    before: DeadLetter | undefined,
    after: DeadLetter | undefined,
  ): void {
    this.#lists.move(kept, before, after)
    this.#counts.move(before, after)
    for (const action of counts) this.#totals.count(action, after ?? kept.letter)
    this.#occupied += occupies(after) - occupies(before)
    if (holdsKey(before) !== holdsKey(after)) this.#moveKey(kept, holdsKey(after))
    const others = this.#holds.move(kept, before, after)
    if (after) this.#place(kept)
    else this.#due.place(kept, undefined)
    for (const other of others) if (other !== kept) this.#place(other)
  }

  #moveKey(kept: Kept, holds: boolean): void {
    const key = pair(kept.letter.queue, kept.letter.dedupeKey!)
    const others = this.#keys.get(key)?.filter((other) => other !== kept) ?? []
    if (holds) others.push(kept)
    if (others.length > 0) this.#keys.set(key, others)
    else this.#keys.delete(key)
  }

  #place(kept: Kept): void {
    const due = this.#holds.isHeld(kept) ? undefined : dueAt(kept.letter)
    // A moment that is none counts as long past, so that the letter is seen rather than forgotten.
    const dueMs = due === undefined ? undefined : toMs(due) || 0
    this.#due.place(kept, dueMs)
    if (dueMs !== undefined && dueMs <= this.#clock.now()) this.#stirred = true
  }

  /** Tells watchers, once the verb is done, if it made a letter due. */
  #wake(): void {
    if (!this.#stirred) return
    this.#stirred = false
    this.#watchers.notify()
  }

  #check(): void {
    if (this.#closed) throw new RedriveError('CLOSED', 'the memory store is closed')
  }
}

/** Leased under this epoch, even past the end of the lease as long as nobody took over. */
function isLeased(
  { state, lease, ...letter }: DeadLetter,
  { epoch, worker }: { epoch: number; worker?: string },
): boolean {
  const mine = worker === undefined || lease?.worker === worker
  return state === 'retrying' && letter.epoch === epoch && mine
}

function occupies(letter: DeadLetter | undefined): number {
  return letter === undefined || letter.state === 'archived' ? 0 : 1
}

/** What the filter means, with the one thing that is not in the letter itself. */
function fits(kept: Kept, filter: LetterFilter): boolean {
  const waits = (kept.waitsFor?.size ?? 0) > 0
  return matches(kept.letter, filter) && (filter.dependent ?? waits) === waits
}

function holdsKey(letter: DeadLetter | undefined): boolean {
  return letter?.dedupeKey !== undefined && isOpen(letter.state)
}
