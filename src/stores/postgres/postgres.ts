import { copyOf } from '../../letter/copy.ts'
import { systemClock } from '../../clock/clock.ts'
import { checkKeys } from '../../check/keys.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { toTimestamp } from '../../letter/time.ts'
import { resolved } from '../rows/codes.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { checkLease } from '../lease.ts'
import { Lifetime } from '../lifetime.ts'
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
import { Watchers } from '../../backends/watchers.ts'
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
import { addIn, candidatesOf, type AddRequest } from './add.ts'
import { storeAddressOf, type StoreAddress } from './address.ts'
import { applyIn, renewIn, type Renewal } from './apply.ts'
import type { StoreContext } from './context.ts'
import { claimIn, queuesOf } from './claim.ts'
import { readTotals, writeTotals } from './counters.ts'
import { dropBefore, type DroppedMonths } from './drop-months.ts'
import { find } from './find.ts'
import { keep, stored } from './keep.ts'
import { findSchemaProblem, prepare } from './opening.ts'
import { monthCreator } from './partitions.ts'
import { optionKeys, type PostgresStoreOptions } from './options.ts'
import { QueueNames } from './queue-names.ts'
import { readLetters } from './read-letters.ts'
import { postgresRecords } from './records.ts'
import { remove } from './remove.ts'
import { schemaVersion } from './schema.ts'
import { CounterSlots } from './slots.ts'
import { tally } from './tally.ts'
import { tenant } from './tenant.ts'
import { sendInParts, runBatch } from './batches.ts'
import { addWithin } from './within.ts'

export type { DroppedMonths } from './drop-months.ts'
export type { PostgresStoreOptions } from './options.ts'

/**
 * A store on Postgres can also add letters in a transaction of the caller, and drop whole months.
 */
export interface PostgresStore extends Store {
  /**
   * Adds letters in a transaction that the caller has begun on this `pg` connection: they are
   * stored, and workers are woken, when it commits.
   */
  within(client: Queryable): Pick<Store, 'add'>
  /**
   * With `partitions`: removes the months before this one, like `2026-01`, in which every letter is
   * resolved or archived. A month with other letters stays, and so does the current one. Each
   * letter counts as removed.
   */
  dropBefore(month: string): Promise<DroppedMonths>
}

/** The maximum number of letters, changes or ids in one transaction. */
const maxItems = 256
/** Payload bytes that count as one more letter in a batch. */
const bytesPerItem = 64 * 1024

/** A store in a schema of a Postgres database, for any number of processes and machines. */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  checkKeys('options of postgresStore', options, optionKeys, { code: 'INVALID_CONFIG' })
  return new PostgresLetterStore(options)
}

class PostgresLetterStore implements PostgresStore {
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
  readonly #books: StoreContext
  readonly #notifications: Notifications
  readonly #watchers = new Watchers()
  readonly #slots: CounterSlots
  readonly #adds: Batcher<AddRequest[], AddResult[]>
  readonly #changes: Batcher<readonly Change[], ApplyResult[]>
  readonly #renewals: Batcher<Renewal[], boolean[]>
  readonly #life = new Lifetime('postgres', {
    release: () => this.#connection.disconnect(),
    isRefusal,
  })
  #createMonths: (() => Promise<void>) | undefined

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
      onNotification: () => this.#watchers.notify(),
    })
    this.#slots = new CounterSlots(connection, clock)
    this.#books = {
      connection,
      clock,
      queues: new QueueNames(connection),
      now: () => (own ? Math.trunc(own.now()) : null),
      withSlot: (use) => this.#slots.use(use),
      wake: () => this.#wake(),
    }
    this.records = postgresRecords((work) => this.#use(work))
    const batches = { maxInFlight: 2, maxBatchCost: maxItems }
    this.#adds = new Batcher(batches, (calls) => runBatch(calls, (some) => this.#addAll(some)))
    this.#changes = new Batcher(batches, (calls) => runBatch(calls, (some) => this.#applyAll(some)))
    this.#renewals = new Batcher({ maxInFlight: 1, maxBatchCost: maxItems }, (calls) =>
      runBatch(calls, (some) => this.#renewAll(some)),
    )
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      this.#books.queues.forget()
      const now = (): number => this.#books.clock.now()
      const byMonth = await prepare(this.#connection, this.#address, now())
      this.#createMonths = byMonth ? monthCreator(this.#connection, now) : undefined
      await this.#createMonths?.()
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
      this.#startCreatingMonths()
      const wanted = addRequestsOf(letters, capacity)
      const send = (some: readonly AddRequest[]): Promise<AddResult[]> =>
        this.#adds.call([...some], sumOf(some.map(costOf)))
      return sendInParts(wanted, maxItems, send, costOf)
    })
  }

  /** Runs in the background: months are created long before they are needed. */
  #startCreatingMonths(): void {
    if (this.#createMonths) void this.#life.track(this.#createMonths())
  }

  /** Adds the letters of several calls. */
  async #addAll(calls: AddRequest[][]): Promise<AddResult[][]> {
    const all = calls.flat()
    const results = all.some(mayEvictOwnLetters)
      ? await sendInParts(all, 1, (some) => this.#addSome(some))
      : await this.#addSome(all)
    return splitResults(results, calls)
  }

  async #addSome(wanted: readonly AddRequest[]): Promise<AddResult[]> {
    const candidates = await candidatesOf(this.#books, wanted)
    const { results, shouldWake } = await this.#write((tx, slot) =>
      addIn(this.#books, tx, candidates, slot),
    )
    if (await shouldWake) this.#wake()
    return results
  }

  #write<T>(work: (tx: Transaction, slot: number) => Promise<T>): Promise<T> {
    return this.#slots.use((slot) => this.#connection.transaction('hot', (tx) => work(tx, slot)))
  }

  within(client: Queryable): Pick<Store, 'add'> {
    return {
      add: (letters, capacity) =>
        this.#use((context) => {
          this.#startCreatingMonths()
          return addWithin(
            context,
            client,
            this.#notifications.channel,
            addRequestsOf(letters, capacity),
          )
        }),
    }
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#use(async (context) => {
      const found = await readLetters(context, ids, 'whole')
      return ids.flatMap((id) => {
        const kept = found.get(id)
        return kept ? [unpack(kept)] : []
      })
    })
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#use(async (context) => {
      const kept = (await readLetters(context, [id], 'captured')).get(id)
      return kept && unpackOriginal(kept)
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#use(async (context) => {
      const search = searchOf(query)
      if (search.limit === 0) return { items: [] }
      const { items, next } = await find(context, search)
      return next ? { items, cursor: writeCursor({ order: search.order, ...next }) } : { items }
    })
  }

  tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#use(async (context) => {
      checkTally(by, filter)
      return tally(context, by, filter)
    })
  }

  totals(): Promise<Total[]> {
    return this.#use(({ connection, queues }) => readTotals(connection, queues))
  }

  stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#use((context) => sendInParts(ids, maxItems, (some) => stored(context, some)))
  }

  keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#use((context) => {
      const incoming = letters.map((one) => ({
        packed: packStored(one),
        edit: one.original ? one.letter.payload.bytes : null,
      }))
      const ids = new Set(letters.map(({ letter }) => letter.id))
      const most = ids.size === letters.length ? maxItems : 1
      return sendInParts(incoming, most, (some) => keep(context, some))
    })
  }

  keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#use(async ({ connection, queues }) => {
      if (totals.length > 0)
        await this.#slots.use((slot) => writeTotals(connection, queues, totals, slot))
    })
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#use(async (context) => {
      checkLease(request.leaseMs)
      const queues = await queuesOf(context, request)
      const { letters, nextDueMs } = await this.#write((tx, slot) =>
        claimIn(context, tx, request, queues, slot),
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
      return sendInParts(renewals, maxItems, (some) => this.#renewals.call([...some], some.length))
    })
  }

  async #renewAll(calls: Renewal[][]): Promise<boolean[][]> {
    const work = (tx: Transaction): Promise<boolean[]> => renewIn(this.#books, tx, calls.flat())
    return splitResults(
      await this.#connection.transaction('hot', work, { repeatable: true }),
      calls,
    )
  }

  apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#use(() =>
      sendInParts(changes, maxItems, (some) => this.#changes.call(copyOf(some), some.length)),
    )
  }

  async #applyAll(calls: (readonly Change[])[]): Promise<ApplyResult[][]> {
    const { results, shouldWake } = await this.#write((tx, slot) =>
      applyIn(this.#books, tx, calls.flat(), slot),
    )
    if (await shouldWake) this.#wake()
    return splitResults(results, calls)
  }

  remove(which: LetterFilter): Promise<number> {
    return this.#use(async (context) => {
      checkRemoval(which)
      if (!which.ids) return remove(context, which)
      const gone = await sendInParts([...new Set(which.ids)], maxItems, async (ids) => [
        await remove(context, { ...which, ids: [...ids] }),
      ])
      return sumOf(gone)
    })
  }

  dropBefore(month: string): Promise<DroppedMonths> {
    return this.#use((context) => dropBefore(context, month))
  }

  watch(listener: () => void): () => void {
    if (this.#life.state === 'closed') return () => {}
    this.#notifications.listen()
    return this.#watchers.add(listener)
  }

  /**
   * Letters may have become due: wakes watchers here at once, and those of other processes by a
   * notification.
   */
  #wake(): void {
    this.#watchers.notify()
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

  #use<T>(work: (context: StoreContext) => T | Promise<T>): Promise<T> {
    return this.#life.run(() => work(this.#books))
  }
}

function addRequestsOf(
  letters: readonly DeadLetter[],
  capacity: Capacity | undefined,
): AddRequest[] {
  return letters.map((letter) => ({ packed: pack(letter), capacity }))
}

function costOf({ packed }: AddRequest): number {
  return 1 + Math.floor(packed[4].byteLength / bytesPerItem)
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0)

/** Whether making room may evict a letter that another letter of the batch adds or depends on. */
const mayEvictOwnLetters = ({ packed, capacity }: AddRequest): boolean =>
  capacity?.overflow === 'evict-resolved' &&
  (packed[0][1] === resolved || packed[6]?.dependsOn !== undefined)
