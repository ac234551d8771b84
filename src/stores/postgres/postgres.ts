import { systemClock } from '../../clock/clock.ts'
import { checkKeys } from '../../check/keys.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { encodeChange, type RowChange } from '../rows/change.ts'
import { decodeLetter, decodeOriginal } from '../rows/decode.ts'
import { Batcher, splitResults } from '../../backends/batcher.ts'
import { applyToDistinct } from '../apply-each.ts'
import { checkLease } from '../lease.ts'
import { Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { searchOf } from '../search.ts'
import { PostgresConnection } from '../../backends/postgres/connection.ts'
import { isRefusal } from '../../backends/postgres/errors.ts'
import { inspect } from '../../backends/postgres/inspect.ts'
import { Notifications } from '../../backends/postgres/notifications.ts'
import type { Queryable } from '../../backends/postgres/query.ts'
import { Watchers } from '../../backends/watchers.ts'
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
  KeptLetter,
  StoredLetter,
  StoreHealth,
  TallyKey,
  Total,
} from '../../store.ts'
import { addRequestOf } from './add.ts'
import { Adder } from './adder.ts'
import { storeAddressOf, type StoreAddress } from './address.ts'
import { applyChanges, renewLeases, type Renewal } from './apply.ts'
import { applyAll } from './bulk.ts'
import type { StoreContext } from './context.ts'
import { claim } from './claim.ts'
import { readTotals, writeTotals } from './counters.ts'
import { dropBefore, type DroppedMonths } from './drop-months.ts'
import { find } from './find.ts'
import { incomingOf, keep, stored } from './keep.ts'
import { findSchemaProblem, prepare } from './opening.ts'
import { monthCreator } from './partitions.ts'
import { optionKeys, type PostgresStoreOptions } from './options.ts'
import { plannerSettings } from './planner.ts'
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

/** The maximum number of changes or ids in one statement. */
const maxItems = 500

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
  readonly #context: StoreContext
  readonly #notifications: Notifications
  readonly #watchers = new Watchers()
  readonly #slots: CounterSlots
  readonly #adder: Adder
  readonly #changes: Batcher<RowChange[], ApplyResult[]>
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
    const connection = new PostgresConnection({
      address,
      clock,
      tenant,
      separateSides: true,
      plannerSettings,
    })
    this.#connection = connection
    this.#notifications = new Notifications({
      connection,
      clock,
      channel: `redrive_${connection.schema}`,
      onNotification: () => this.#watchers.notify(),
    })
    this.#slots = new CounterSlots(connection, clock)
    this.#context = {
      connection,
      clock,
      queues: new QueueNames(connection),
      now: () => (own ? Math.trunc(own.now()) : null),
      withSlot: (use) => this.#slots.use(use),
      wake: () => this.#wake(),
    }
    this.records = postgresRecords(this.#context, (work) => this.#use(work))
    const batches = { maxInFlight: 2, maxBatchCost: maxItems }
    this.#adder = new Adder(this.#context)
    this.#changes = new Batcher(batches, (calls) => runBatch(calls, (some) => this.#applyAll(some)))
    this.#renewals = new Batcher({ maxInFlight: 1, maxBatchCost: maxItems }, (calls) =>
      runBatch(calls, (some) => this.#renewAll(some)),
    )
  }

  open(): Promise<void> {
    return this.#life.open(async () => {
      this.#context.queues.forget()
      const now = (): number => this.#context.clock.now()
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
      return this.#adder.add(letters, capacity)
    })
  }

  /** Runs in the background: months are created long before they are needed. */
  #startCreatingMonths(): void {
    if (this.#createMonths) void this.#life.track(this.#createMonths())
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
            letters.map((letter) => addRequestOf(letter, capacity)),
          )
        }),
    }
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#use(async (context) => {
      const found = await readLetters(context, ids, 'whole')
      return ids.flatMap((id) => {
        const kept = found.get(id)
        return kept ? [decodeLetter(kept)] : []
      })
    })
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#use(async (context) => {
      const kept = (await readLetters(context, [id], 'captured')).get(id)
      return kept && decodeOriginal(kept)
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

  keep(letters: readonly KeptLetter[]): Promise<KeepResult[]> {
    return this.#use((context) => {
      const incoming = letters.map(incomingOf)
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
      return claim(context, request)
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
    return splitResults(await renewLeases(this.#context, calls.flat()), calls)
  }

  apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#use(() =>
      sendInParts(changes.map(encodeChange), maxItems, (some) =>
        this.#changes.call([...some], some.length),
      ),
    )
  }

  async #applyAll(calls: RowChange[][]): Promise<ApplyResult[][]> {
    return splitResults(await applyChanges(this.#context, calls.flat()), calls)
  }

  applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]> {
    return this.#use((context) =>
      applyToDistinct(letters, (distinct) =>
        sendInParts(distinct, maxItems, (some) => applyAll(this, context, some, moves)),
      ),
    )
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
    return this.#life.run(() => work(this.#context))
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0)
