import { systemClock, type Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, checkOneOf, keysOf } from '../../check/keys.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
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
import { applyEach, applyToDistinct, haveLetterIds } from '../apply-each.ts'
import { checkLease } from '../lease.ts'
import { Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { decodeLetter, decodeOriginal, decodeSummary } from '../rows/decode.ts'
import { searchOf } from '../search.ts'
import { applyResults } from './protocol.ts'
import { sqliteRecords } from './sqlite-records.ts'
import { openStoreThread, type StoreThread } from './thread.ts'
import {
  receiveLetter,
  receiveStored,
  sendBulkMoves,
  sendChanges,
  sendLetter,
  sendStored,
  type SentLetter,
} from './transfer.ts'
import { Watchers } from '../../backends/watchers.ts'

export interface SqliteStoreOptions {
  /** Path of the file. A missing file is created, readable by its owner only. */
  path: string
  clock?: Clock
  /**
   * `full`: acknowledged writes survive a power loss. `relaxed`: they survive a crash of the
   * process. Default: `full`.
   */
  synchronous?: 'full' | 'relaxed'
  /** How long a write waits for the write lock of another process. Default: 5000. */
  busyTimeoutMs?: number
}

const knownOptions = keysOf<SqliteStoreOptions>({
  path: true,
  clock: true,
  synchronous: true,
  busyTimeoutMs: true,
})

function checkOptions(options: SqliteStoreOptions): void {
  checkKeys('options of sqliteStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  const { path, synchronous = 'full', busyTimeoutMs = 0 } = options
  if (typeof path !== 'string' || path === '')
    throw new RedriveError(
      'INVALID_CONFIG',
      '"path" must be the path of a file, for example redrive.db',
    )
  checkOneOf('synchronous', synchronous, ['full', 'relaxed'], { code: 'INVALID_CONFIG' })
  if (!(busyTimeoutMs >= 0 && busyTimeoutMs < 2 ** 31))
    throw new RedriveError(
      'INVALID_CONFIG',
      `busyTimeoutMs must be a number of milliseconds from 0 to 2147483647, got ${String(busyTimeoutMs).slice(0, 40)}`,
    )
}

/** Maximum number of letters, changes or ids in one call to the thread. */
const maxCallItems = 256

/** Maximum number of chunks of one large batch in flight. */
const maxCallsAhead = 2

/**
 * A store in a SQLite file, for one machine and any number of its processes. A worker thread has
 * the file open, so that waiting for the disk never blocks the caller's event loop.
 */
export function sqliteStore(options: SqliteStoreOptions): Store {
  return new SqliteStore(options)
}

class SqliteStore implements Store {
  readonly powers: Powers = {
    kind: 'sqlite',
    durable: true,
    shared: true,
    search: 'substring',
    wakeups: 'local',
  }
  readonly records: Records
  readonly #thread: StoreThread
  readonly #watchers = new Watchers()
  readonly #life = new Lifetime('sqlite', { release: () => this.#thread.close() })

  constructor(options: SqliteStoreOptions) {
    checkOptions(options)
    const { path, synchronous = 'full', busyTimeoutMs = 5000, clock = systemClock } = options
    const wake = (): void => this.#watchers.notify()
    this.#thread = openStoreThread({ path, synchronous, busyTimeoutMs }, clock, wake)
    this.records = sqliteRecords(() => this.#use())
  }

  open(): Promise<void> {
    return this.#life.open(() => this.#thread.call('open', null))
  }

  close(): Promise<void> {
    this.#watchers.clear()
    return this.#life.close(() => this.#thread.close())
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    const thread = this.#use()
    return this.#inChunks(letters, async (some) => {
      const sent = some.map((letter) => sendLetter(letter))
      const ask = capacity ? { letters: sent, capacity } : { letters: sent }
      const others = await thread.call('add', ask, sent.length)
      const results = some.map((): AddResult => ({ kind: 'added' }))
      for (const [position, result] of others) results[position] = result
      return results
    })
  }

  async get(ids: readonly string[]): Promise<DeadLetter[]> {
    const thread = this.#use()
    const letters = await this.#inChunks(ids, (some) => thread.call('get', some, some.length))
    return letters.map(receiveWhole)
  }

  async original(id: string): Promise<Payload | undefined> {
    const letter = await this.#use().call('original', id)
    return letter ? decodeOriginal(receiveLetter(letter)) : undefined
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    const thread = this.#use()
    const search = searchOf(query)
    if (search.limit === 0) return { items: [] }
    const { letters, next } = await thread.call('find', search)
    const items = letters.map(search.whole ? receiveWhole : receiveSummary)
    return next ? { items, cursor: writeCursor({ order: search.order, ...next }) } : { items }
  }

  async tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    const thread = this.#use()
    checkTally(by, filter)
    return new Map(await thread.call('tally', { by, filter }, 0))
  }

  async totals(): Promise<Total[]> {
    return this.#use().call('totals', null, 0)
  }

  async stored(ids: readonly string[]): Promise<StoredLetter[]> {
    const thread = this.#use()
    const letters = await this.#inChunks(ids, (some) => thread.call('stored', some, some.length))
    return letters.map(receiveStored)
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    const thread = this.#use()
    return this.#inChunks(letters, (some) => thread.call('keep', some.map(sendStored), some.length))
  }

  async keepTotals(totals: readonly Total[]): Promise<void> {
    await this.#use().call('keepTotals', totals)
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const thread = this.#use()
    checkLease(request.leaseMs)
    const { letters, nextDueMs } = await thread.call('claim', request, request.limit)
    const claimed = letters.map(receiveWhole)
    return nextDueMs === undefined
      ? { letters: claimed }
      : { letters: claimed, nextDueAt: toTimestamp(nextDueMs) }
  }

  async renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    const thread = this.#use()
    checkLease(leaseMs)
    return this.#inChunks(leases, (some) =>
      thread.call('renew', { leases: some, leaseMs }, some.length),
    )
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    const thread = this.#use()
    return this.#inChunks(changes, async (some) => {
      const { groups, order } = sendChanges(some)
      const codes = await thread.call('apply', groups, some.length)
      const results: ApplyResult[] = []
      codes.forEach((code, n) => (results[order[n]!] = applyResults[code]!))
      return results
    })
  }

  async applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]> {
    const thread = this.#use()
    if (!haveLetterIds(letters)) return this.#life.track(applyEach(this, letters, moves))
    return applyToDistinct(letters, async (distinct) => {
      const ids = distinct.map(({ id }) => id)
      const versions = distinct.map(({ version }) => version)
      const request = { ids, versions, moves: sendBulkMoves(moves) }
      const codes = await thread.call('applyAll', request, ids.length)
      return codes.map((code) => applyResults[code]!)
    })
  }

  async remove(which: LetterFilter): Promise<number> {
    const thread = this.#use()
    checkRemoval(which)
    if (!which.ids) return thread.call('remove', which)
    const gone = await this.#inChunks(which.ids, async (ids) => [
      await thread.call('remove', { ...which, ids: [...ids] }),
    ])
    return gone.reduce((sum, count) => sum + count, 0)
  }

  watch(listener: () => void): () => void {
    return this.#watchers.add(listener)
  }

  health(): Promise<StoreHealth> {
    return this.#life.health(() => this.#thread.call('health', null))
  }

  /**
   * Sends a small batch in one call and a large one in several, so that other calls run in between.
   * Large batches are tracked: they may be between two calls when the store closes. The thread
   * itself waits for its calls.
   */
  #inChunks<T, R>(all: readonly T[], send: (some: readonly T[]) => Promise<R[]>): Promise<R[]> {
    if (all.length === 0) return Promise.resolve([])
    if (all.length <= maxCallItems) return send(all)
    return this.#life.track(inChunks(all, send))
  }

  #use(): StoreThread {
    this.#life.check()
    return this.#thread
  }
}

/**
 * Sends chunks, a few ahead, and joins the results in order. Rejects only after all chunks that
 * were sent have settled, so that nothing is written after the rejection.
 */
async function inChunks<T, R>(all: readonly T[], send: (some: T[]) => Promise<R[]>): Promise<R[]> {
  const calls: Promise<R[]>[] = []
  try {
    for (let start = 0; start < all.length; start += maxCallItems) {
      const call = send(all.slice(start, start + maxCallItems))
      // The first rejection is reported; the others must not count as unhandled.
      call.catch(() => {})
      calls.push(call)
      await calls[calls.length - 1 - maxCallsAhead]
    }
    return (await Promise.all(calls)).flat()
  } finally {
    await Promise.allSettled(calls)
  }
}

function receiveWhole(sent: SentLetter): DeadLetter {
  return decodeLetter(receiveLetter(sent))
}

function receiveSummary(sent: SentLetter): LetterSummary {
  return decodeSummary(receiveLetter(sent))
}
