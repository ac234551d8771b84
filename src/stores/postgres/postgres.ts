import type { Pool } from 'pg'
import { systemClock, type Clock } from '../../clock/clock.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import { resolved } from '../rows/codes.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { lifetime, type Lifetime } from '../lifetime.ts'
import { pack } from '../rows/pack.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { searchOf } from '../search.ts'
import { packStored } from '../rows/stored.ts'
import { unpack, unpackOriginal } from '../rows/unpack.ts'
import { PostgresConnection } from '../../backends/postgres/connection.ts'
import { isRefusal } from '../../backends/postgres/errors.ts'
import { inspect } from '../../backends/postgres/inspect.ts'
import { Notifications } from '../../backends/postgres/notifications.ts'
import type { Queryable } from '../../backends/postgres/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { watchers, type Watchers } from '../../backends/watchers.ts'
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
import { addIn, candidatesOf, type Wanted } from './add.ts'
import { storeAddressOf, type StoreAddress } from './address.ts'
import { applyIn, renewIn, type Renewal } from './apply.ts'
import type { Books } from './books.ts'
import { claimIn, queuesOf } from './claim.ts'
import { readTotals, writeTotals } from './counters.ts'
import { dropBefore, type DroppedMonths } from './drop-months.ts'
import { find } from './find.ts'
import { keep, stored } from './keep.ts'
import { findSchemaProblem, prepare } from './opening.ts'
import { monthKeeper } from './partitions.ts'
import { queueNames } from './queue-names.ts'
import { lettersById } from './reading.ts'
import { postgresRecords } from './records.ts'
import { remove } from './remove.ts'
import { schemaVersion } from './schema.ts'
import { slotsOf, type Slots } from './slots.ts'
import { tally } from './tally.ts'
import { tenant } from './tenant.ts'
import { inParts, together } from './together.ts'
import { addWithin } from './within.ts'

export type { DroppedMonths } from './drop-months.ts'

export interface PostgresStoreOptions {
  /** `postgres://user@host:5432/database`. May contain other options, as in `?schema=…`. Either `url` or `pool` is required. */
  url?: string
  /** A pool of the application, which stays open when the store closes. One more connection, with its options, listens. */
  pool?: Pool
  /** The schema of the tables. Default: `redrive`. Also `?schema=` in the URL. */
  schema?: string
  /**
   * Connections of this store, half of them only for capture, claim, renew and settle; one more listens. Default: 10. Also
   * `?poolSize=` in the URL. Not with `pool`.
   */
  poolSize?: number
  /** Opens the store even if the server's settings would break a guarantee. Also `?allowUnsafe=true` in the URL. */
  allowUnsafe?: boolean
  /**
   * Stores the letters of each month in tables of their own, for `dropBefore`. Only for a new schema; an existing schema without
   * partitions is rejected. Also `?partitions=` in the URL.
   */
  partitions?: 'month'
  /** For tests: the time for leases and due times. Default: the clock of the server. */
  clock?: Clock
}

const knownOptions = keysOf<PostgresStoreOptions>({
  url: true,
  pool: true,
  schema: true,
  poolSize: true,
  allowUnsafe: true,
  partitions: true,
  clock: true,
})

/** A store on Postgres can also write within a transaction of its caller, and drop whole months. */
export interface PostgresStore extends Store {
  /**
   * Captures that belong to a transaction which the caller has begun on this connection of `pg`: they are kept, and workers
   * are woken, when it commits.
   */
  within(client: Queryable): Pick<Store, 'add'>
  /**
   * Where letters are kept by month (`partitions`): removes the months before this one, like `2026-01`, in which every letter is
   * resolved or archived. A month with other letters stays, and so does the present one. Each letter counts as removed.
   */
  dropBefore(month: string): Promise<DroppedMonths>
}

/** Letters, changes or ids that go in one transaction. */
const maxItems = 256
/** Payload bytes that count as one more letter in a batch. */
const bytesPerItem = 64 * 1024

/** Letters in a schema of a Postgres database, for any number of processes and machines. */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  checkKeys('options of postgresStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  return new SharedStore(options)
}

class SharedStore implements PostgresStore {
  readonly powers: Powers = {
    kind: 'postgres',
    durable: true,
    shared: true,
    search: 'substring',
    wakeups: 'all',
  }
  readonly records: Records
  readonly #address: StoreAddress
  readonly #connection: PostgresConnection
  readonly #books: Books
  readonly #notifications: Notifications
  readonly #watchers: Watchers = watchers()
  readonly #slots: Slots
  readonly #adds: Batcher<Wanted[], AddResult[]>
  readonly #changes: Batcher<readonly Change[], ApplyResult[]>
  readonly #renewals: Batcher<Renewal[], boolean[]>
  readonly #life: Lifetime = lifetime('postgres', {
    release: () => this.#connection.disconnect(),
    isRefusal,
  })
  #keepMonths: (() => Promise<void>) | undefined

  constructor(options: PostgresStoreOptions) {
    const { clock = systemClock } = options
    const own = options.clock
    this.#address = storeAddressOf(options)
    const address = this.#address
    const connection = new PostgresConnection({ address, clock, tenant, separateSides: true })
    this.#connection = connection
    this.#notifications = new Notifications({
      connection,
      clock,
      channel: `redrive_${connection.schema}`,
      onNotification: () => this.#watchers.tell(),
    })
    this.#slots = slotsOf(connection, clock)
    this.#books = {
      connection,
      clock,
      queues: queueNames(connection),
      now: () => (own ? Math.trunc(own.now()) : null),
      withSlot: (use) => this.#slots.use(use),
      wake: () => this.#wake(),
    }
    this.records = postgresRecords((work) => this.#use(work))
    const batches = { maxInFlight: 2, maxBatchCost: maxItems }
    this.#adds = new Batcher(batches, (asks) => together(asks, (some) => this.#addAll(some)))
    this.#changes = new Batcher(batches, (asks) => together(asks, (some) => this.#applyAll(some)))
    this.#renewals = new Batcher({ maxInFlight: 1, maxBatchCost: maxItems }, (asks) =>
      together(asks, (some) => this.#renewAll(some)),
    )
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      this.#books.queues.forget()
      const now = (): number => this.#books.clock.now()
      const byMonth = await prepare(this.#connection, this.#address, now())
      this.#keepMonths = byMonth ? monthKeeper(this.#connection, now) : undefined
      await this.#keepMonths?.()
    })
  }

  close(): Promise<void> {
    return this.#life.close(async () => {
      this.#watchers.clear()
      await this.#notifications.stop()
      await this.#slots.idle()
      await this.#connection.close()
    })
  }

  add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#use(async () => {
      this.#makeMonths()
      const wanted = wantedOf(letters, capacity)
      const send = (some: readonly Wanted[]): Promise<AddResult[]> =>
        this.#adds.call([...some], sumOf(some.map(weightOf)))
      return inParts(wanted, maxItems, send, weightOf)
    })
  }

  /** Nobody waits for it: months are made long before they are needed. */
  #makeMonths(): void {
    if (this.#keepMonths) void this.#life.track(this.#keepMonths())
  }

  /** Letters of several calls. */
  async #addAll(asks: Wanted[][]): Promise<AddResult[][]> {
    const all = asks.flat()
    const results = all.some(isIntricate)
      ? await inParts(all, 1, (some) => this.#addSome(some))
      : await this.#addSome(all)
    return splitResults(results, asks)
  }

  async #addSome(wanted: readonly Wanted[]): Promise<AddResult[]> {
    const candidates = await candidatesOf(this.#books, wanted)
    const { results, woken } = await this.#write((tx, slot) =>
      addIn(this.#books, tx, candidates, slot),
    )
    if (await woken) this.#wake()
    return results
  }

  #write<T>(work: (tx: Transaction, slot: number) => Promise<T>): Promise<T> {
    return this.#slots.use((slot) => this.#connection.transaction('hot', (tx) => work(tx, slot)))
  }

  within(client: Queryable): Pick<Store, 'add'> {
    return {
      add: (letters, capacity) =>
        this.#use((books) => {
          this.#makeMonths()
          return addWithin(books, client, this.#notifications.channel, wantedOf(letters, capacity))
        }),
    }
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#use(async (books) => {
      const found = await lettersById(books, ids, 'whole')
      return ids.flatMap((id) => {
        const kept = found.get(id)
        return kept ? [unpack(kept)] : []
      })
    })
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#use(async (books) => {
      const kept = (await lettersById(books, [id], 'captured')).get(id)
      return kept && unpackOriginal(kept)
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#use(async (books) => {
      const search = searchOf(query)
      if (search.limit === 0) return { items: [] }
      const { items, next } = await find(books, search)
      return next ? { items, cursor: writeCursor({ order: search.order, ...next }) } : { items }
    })
  }

  tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#use(async (books) => {
      checkTally(by, filter)
      return tally(books, by, filter)
    })
  }

  totals(): Promise<Total[]> {
    return this.#use(({ connection, queues }) => readTotals(connection, queues))
  }

  stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#use((books) => inParts(ids, maxItems, (some) => stored(books, some)))
  }

  keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#use((books) => {
      const incoming = letters.map((one) => ({
        packed: packStored(one),
        edit: one.original ? one.letter.payload.bytes : null,
      }))
      const ids = new Set(letters.map(({ letter }) => letter.id))
      const most = ids.size === letters.length ? maxItems : 1
      return inParts(incoming, most, (some) => keep(books, some))
    })
  }

  keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#use(async ({ connection, queues }) => {
      if (totals.length > 0)
        await this.#slots.use((slot) => writeTotals(connection, queues, totals, slot))
    })
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#use(async (books) => {
      checkLease(request.leaseMs)
      const queues = await queuesOf(books, request)
      const { letters, nextDueMs } = await this.#write((tx, slot) =>
        claimIn(books, tx, request, queues, slot),
      )
      const next = await nextDueMs
      const claimed = letters.map(unpack)
      return next === undefined
        ? { letters: claimed }
        : { letters: claimed, nextDueAt: toTimestamp(next) }
    })
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#use(() => {
      checkLease(leaseMs)
      const renewals = leases.map((lease) => ({ ...lease, leaseMs }))
      return inParts(renewals, maxItems, (some) => this.#renewals.call([...some], some.length))
    })
  }

  async #renewAll(asks: Renewal[][]): Promise<boolean[][]> {
    const work = (tx: Transaction): Promise<boolean[]> => renewIn(this.#books, tx, asks.flat())
    return splitResults(await this.#connection.transaction('hot', work, { repeatable: true }), asks)
  }

  apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#use(() =>
      inParts(changes, maxItems, (some) => this.#changes.call(structuredClone(some), some.length)),
    )
  }

  async #applyAll(asks: (readonly Change[])[]): Promise<ApplyResult[][]> {
    const { results, woken } = await this.#write((tx, slot) =>
      applyIn(this.#books, tx, asks.flat(), slot),
    )
    if (await woken) this.#wake()
    return splitResults(results, asks)
  }

  remove(which: LetterFilter): Promise<number> {
    return this.#use(async (books) => {
      checkRemoval(which)
      if (!which.ids) return remove(books, which)
      const gone = await inParts([...new Set(which.ids)], maxItems, async (ids) => [
        await remove(books, { ...which, ids: [...ids] }),
      ])
      return sumOf(gone)
    })
  }

  dropBefore(month: string): Promise<DroppedMonths> {
    return this.#use((books) => dropBefore(books, month))
  }

  watch(listener: () => void): () => void {
    if (this.#life.state === 'closed') return () => {}
    this.#notifications.listen()
    return this.#watchers.add(listener)
  }

  /** Letters may have become due: wakes watchers here at once, and those of other processes by a notification. */
  #wake(): void {
    this.#watchers.tell()
    this.#notifications.notify()
  }

  health(): Promise<StoreHealth> {
    return this.#life.health(async () => {
      const { checks, problems } = await inspect((sql) => this.#connection.read(sql))
      const problem = await findSchemaProblem(this.#connection)
      if (problem !== undefined) problems.push(problem)
      const { place, schema } = this.#connection
      const all = { place, schema: `${schema}, version ${schemaVersion}`, ...checks }
      return {
        ok: problems.length === 0,
        checks: { ...all, wakeups: this.#notifications.state },
        problems,
      }
    })
  }

  #use<T>(work: (books: Books) => T | Promise<T>): Promise<T> {
    return this.#life.run(() => work(this.#books))
  }
}

function wantedOf(letters: readonly DeadLetter[], capacity: Capacity | undefined): Wanted[] {
  return letters.map((letter) => ({ packed: pack(letter), capacity }))
}

function weightOf({ packed }: Wanted): number {
  return 1 + Math.floor(packed[4].byteLength / bytesPerItem)
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0)

/** To make room, a letter may have to go that another of the batch brings, or waits for. */
const isIntricate = ({ packed, capacity }: Wanted): boolean =>
  capacity?.overflow === 'evict-resolved' &&
  (packed[0][1] === resolved || packed[6]?.dependsOn !== undefined)
