import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { applyToDistinct } from '../apply-each.ts'
import { Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { decodeLetter, decodeOriginal } from '../rows/decode.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { BulkMoves, Change } from '../../letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from '../../letter/query.ts'
import { serverOf, settingsIn } from '../../backends/redis/address.ts'
import { checkUrlOrClient } from '../../backends/injected-client.ts'
import { checkSchema, inspect, refuseDangers } from '../../backends/redis/safety.ts'
import { isRefusal } from '../../backends/redis/errors.ts'
import { RedisConnection, toText, type RedisClient } from '../../backends/redis/connection.ts'
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
  DriftReport,
} from '../../store.ts'
import { createAdder, keepLetters, type Add } from './add-letters.ts'
import { applyToAll } from './apply-all.ts'
import { createApplier, type Apply } from './apply-changes.ts'
import { claimLetters, createRenewer, type Renew } from './claim-letters.ts'
import { createContext, type StoreContext } from './context.ts'
import { decodeStored, loadLetter, loadOriginal } from './decode.ts'
import { fetchLetters } from './fetch-letters.ts'
import { findLetters, removeLetters, tallyLetters } from './find-letters.ts'
import { checkDrift } from './fsck.ts'
import { listen } from './listen.ts'
import { redisRecords } from './records.ts'
import { scripts } from './scripts.ts'
import { tenant } from './tenant.ts'
import { totalFields, totalsIn } from './tally.ts'
import { Watchers } from '../../backends/watchers.ts'

export interface RedisStoreOptions {
  /**
   * `redis://user:password@host:6379/0`, or `rediss://` over TLS; several hosts, separated by
   * commas, for a cluster. May contain the options below, as in `?prefix=…`.
   */
  url?: string
  /**
   * A connected client of the application, from `createClient` of the `redis` package, which stays
   * open when the store closes. A duplicate of it subscribes to wake-ups. Either `url` or `client`
   * is required.
   */
  client?: RedisClient
  /**
   * The beginning of all keys, in braces: one server can have several stores. Default: `redrive`.
   */
  prefix?: string
  /** The time for leases and due times. Default: the clock of the server. */
  clock?: Clock
  /** Opens the store even if the server may lose letters. Default: false. */
  allowVolatile?: boolean
  /** How many replicas must have a write before it is acknowledged. Default: 0. */
  waitReplicas?: number
  /** The time limit of a call. Default: 5000. */
  timeoutMs?: number
}

/** Version 3 has binary rows. */
const schemaVersion = 3

const knownOptions = keysOf<RedisStoreOptions>({
  url: true,
  client: true,
  prefix: true,
  clock: true,
  allowVolatile: true,
  waitReplicas: true,
  timeoutMs: true,
})

export interface RedisStore extends Store {
  /** Finds inconsistencies between letters, indexes and counts, and repairs them with `repair`. */
  fsck(options?: { repair?: boolean }): Promise<DriftReport>
}

/**
 * A store in Redis, for any number of processes. Every write is one script, and so is atomic. All
 * keys have one hash tag: in a cluster, a store is on one node.
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  checkKeys('options of redisStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  checkUrlOrClient(options.url, options.client, 'client')
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return new RedisLetterStore({
    ...settingsIn(options.url ?? '', ['waitReplicas', 'timeoutMs']),
    ...(Object.fromEntries(given) as unknown as RedisStoreOptions),
  })
}

class RedisLetterStore implements RedisStore {
  readonly records: Records
  readonly #allowVolatile: boolean
  readonly #context: StoreContext
  readonly #add: Add
  readonly #apply: Apply
  readonly #renew: Renew
  readonly #watchers = new Watchers()
  readonly #life = new Lifetime('redis', {
    release: () => this.#context.connection.disconnect(),
    isRefusal,
  })
  #stopListening: (() => void) | undefined
  #durable: boolean | undefined

  constructor(options: RedisStoreOptions) {
    checkOptions(options)
    const { prefix = 'redrive', waitReplicas = 0, timeoutMs = 5000, clock } = options
    this.#allowVolatile = options.allowVolatile === true
    const tag = `{${prefix}}`
    const server = serverOf(options)
    const limits = { waitReplicas, timeoutMs, connectMs: timeoutMs }
    const connection = new RedisConnection({ tenant, server, tag, ...limits })
    this.#context = createContext(connection, tag, clock, () => this.#watchers.notify())
    this.#add = createAdder(this.#context)
    this.#apply = createApplier(this.#context)
    this.#renew = createRenewer(this.#context)
    this.records = redisRecords((work) => this.#do(work))
  }

  get powers(): Powers {
    const durable = this.#durable ?? !this.#allowVolatile
    return { kind: 'redis', durable, shared: true, search: 'substring', wakeups: 'all' }
  }

  async open(): Promise<void> {
    const { connection } = this.#context
    await this.#life.open(async () => {
      const inspection = await inspect(connection)
      refuseDangers(inspection, connection, this.#allowVolatile)
      await checkSchema(connection, schemaVersion)
      this.#durable = inspection.durable
    })
    if (this.#watchers.size > 0) this.#listen()
  }

  close(): Promise<void> {
    this.#watchers.clear()
    this.#stopListening?.()
    return this.#life.close(() => this.#context.connection.close())
  }

  add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#do(() => this.#add(letters, capacity))
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#do(async ({ connection }) => {
      const found = await fetchLetters(connection, ids, 'whole')
      return found.map(({ id, parts }) => decodeLetter(loadLetter(id, parts)))
    })
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#do(async ({ connection }) => {
      const [found] = await fetchLetters(connection, [id], 'whole')
      return found && decodeOriginal(loadOriginal(id, found.parts))
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#do((context) => findLetters(context, query))
  }

  tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#do(async (context) => {
      checkTally(by, filter)
      return tallyLetters(context, by, filter)
    })
  }

  totals(): Promise<Total[]> {
    return this.#do(async ({ connection, tag }) =>
      totalsIn((await connection.send('HGETALL', `${tag}:totals`)) as Buffer[]),
    )
  }

  stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#do(async ({ connection }) => {
      const found = await fetchLetters(connection, ids, 'whole')
      return found.map(decodeStored)
    })
  }

  keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#do((context) => keepLetters(context, letters))
  }

  keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#do(async ({ connection }) => {
      if (totals.length > 0) await connection.run(scripts.keepTotals, totalFields(totals))
    })
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#do((context) => claimLetters(context, request))
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#do(() => this.#renew(leases, leaseMs))
  }

  apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#do(() => this.#apply(changes))
  }

  applyAll(letters: readonly LetterVersion[], moves: BulkMoves): Promise<ApplyResult[]> {
    return this.#do((context) =>
      applyToDistinct(letters, (distinct) => applyToAll(context, distinct, moves)),
    )
  }

  remove(which: LetterFilter): Promise<number> {
    return this.#do(async (context) => {
      checkRemoval(which)
      return removeLetters(context, which)
    })
  }

  watch(listener: () => void): () => void {
    const leave = this.#watchers.add(listener)
    this.#listen()
    return () => {
      leave()
      if (this.#watchers.size > 0) return
      this.#stopListening?.()
      this.#stopListening = undefined
    }
  }

  /**
   * Subscribes to wake-ups of other processes, while the store is open. Wake-ups of this process
   * need no message.
   */
  #listen(): void {
    if (this.#life.state !== 'open') return
    const { connection, tag } = this.#context
    this.#stopListening ??= listen(connection, `${tag}:wake`, () => this.#watchers.notify())
  }

  health(): Promise<StoreHealth> {
    const { connection, tag, lostWrites } = this.#context
    return this.#life.health(async () => {
      const { checks, dangers } = await inspect(connection)
      lostWrites.observe(
        Number(toText((await connection.send('HGET', `${tag}:meta`, 'moves')) ?? 0)),
      )
      const problems = this.#allowVolatile ? [] : dangers
      problems.push(...lostWrites.problems())
      return { ok: problems.length === 0, checks, problems }
    })
  }

  fsck(options: { repair?: boolean } = {}): Promise<DriftReport> {
    return this.#do(({ connection, tag }) => checkDrift(connection, tag, options.repair === true))
  }

  #do<T>(work: (context: StoreContext) => Promise<T>): Promise<T> {
    return this.#life.run(() => work(this.#context))
  }
}

function checkOptions({ prefix, waitReplicas = 0, timeoutMs = 1 }: RedisStoreOptions): void {
  if (prefix !== undefined && (prefix === '' || /[{}\s]/.test(prefix)))
    throw invalid(
      `prefix must be a non-empty string without braces or spaces, got ${JSON.stringify(prefix)}`,
    )
  if (!Number.isInteger(waitReplicas) || waitReplicas < 0)
    throw invalid(`waitReplicas must be an integer of at least 0, got ${waitReplicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be a number above 0, got ${timeoutMs}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
