import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { lifetime, type Lifetime } from '../lifetime.ts'
import { checkRemoval, checkTally } from '../../check/filter.ts'
import { unpack, unpackOriginal } from '../rows/unpack.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import type { LetterFilter, LetterQuery, Page } from '../../letter/query.ts'
import { addressOf, settingsIn } from '../../backends/redis/address.ts'
import { inspect, refuseDangers } from '../../backends/redis/safety.ts'
import { isUnwelcome } from '../../backends/redis/errors.ts'
import { textOf, wireTo } from '../../backends/redis/connection.ts'
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
  DriftReport,
} from '../../store.ts'
import { adder, keepLetters, type Add } from './adding.ts'
import { applier, claimLetters, renewer, type Apply, type Renew } from './claiming.ts'
import { deskOf, type Desk } from './desk.ts'
import { fetchAll, storedOf } from './fetching.ts'
import { findLetters, removeLetters, tallyLetters } from './finding.ts'
import { keptOf, originalOf } from './form.ts'
import { checkDrift } from './fsck.ts'
import { listen } from './listening.ts'
import { migrate } from './migrate.ts'
import { redisRecords } from './records.ts'
import { scripts } from './scripts.ts'
import { tenant } from './tenant.ts'
import { totalFields, totalsIn } from './tally.ts'
import { Watchers } from '../../backends/watchers.ts'

export interface RedisStoreOptions {
  /**
   * `redis://user:password@host:6379/0`, or `rediss://` over TLS; several hosts, with commas between them, for a cluster.
   * The settings below may also stand in it, behind a question mark.
   */
  url: string
  /** What all keys of the store begin with, in braces: one server can have several stores. `redrive` unless said. */
  prefix?: string
  /** Whose time counts. The server's own unless one is given. */
  clock?: Clock
  /** Opens also on a server that may lose letters. */
  allowVolatile?: boolean
  /** How many replicas must have a write before it is acknowledged. None unless said. */
  waitReplicas?: number
  /** How long a call may take. 5 seconds unless said. */
  timeoutMs?: number
}

const knownOptions = keysOf<RedisStoreOptions>({
  url: true,
  prefix: true,
  clock: true,
  allowVolatile: true,
  waitReplicas: true,
  timeoutMs: true,
})

export interface RedisStore extends Store {
  /** Looks for letters, indexes and counts that have come apart, and puts them right when told to. */
  fsck(options?: { repair?: boolean }): Promise<DriftReport>
}

/**
 * Letters in Redis, for any number of processes. Every verb that writes is one script, so it happens whole or not at all.
 * All keys have one hash tag: in a cluster a store lives on one node.
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  checkKeys('options of redisStore', options, knownOptions, { code: 'INVALID_CONFIG' })
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return new ScriptedStore({
    ...settingsIn(options.url, ['waitReplicas', 'timeoutMs']),
    ...(Object.fromEntries(given) as unknown as RedisStoreOptions),
  })
}

class ScriptedStore implements RedisStore {
  readonly records: Records
  readonly #allowVolatile: boolean
  readonly #desk: Desk
  readonly #add: Add
  readonly #apply: Apply
  readonly #renew: Renew
  readonly #watchers = new Watchers()
  readonly #life: Lifetime = lifetime('redis', {
    release: () => this.#desk.wire.disconnect(),
    isRefusal: isUnwelcome,
  })
  #stopListening: (() => void) | undefined
  #durable: boolean | undefined

  constructor(options: RedisStoreOptions) {
    checkOptions(options)
    const { url, prefix = 'redrive', waitReplicas = 0, timeoutMs = 5000, clock } = options
    this.#allowVolatile = options.allowVolatile === true
    const tag = `{${prefix}}`
    const address = addressOf(url)
    const wire = wireTo({ tenant, address, tag, waitReplicas, timeoutMs, connectMs: timeoutMs })
    this.#desk = deskOf(wire, tag, clock, () => this.#watchers.notify())
    this.#add = adder(this.#desk)
    this.#apply = applier(this.#desk)
    this.#renew = renewer(this.#desk)
    this.records = redisRecords((work) => this.#do(work))
  }

  get powers(): Powers {
    const durable = this.#durable ?? !this.#allowVolatile
    return { kind: 'redis', durable, shared: true, search: 'substring', wakeups: 'all' }
  }

  async open(): Promise<void> {
    const { wire } = this.#desk
    await this.#life.open(async () => {
      const findings = await inspect(wire)
      refuseDangers(findings, wire, this.#allowVolatile)
      await migrate(this.#desk)
      this.#durable = findings.durable
    })
    if (this.#watchers.size > 0) this.#listen()
  }

  close(): Promise<void> {
    this.#watchers.clear()
    this.#stopListening?.()
    return this.#life.close(() => this.#desk.wire.close())
  }

  add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    return this.#do(() => this.#add(letters, capacity))
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#do(async ({ wire }) => {
      const found = await fetchAll(wire, ids)
      return found.map(({ id, fields }) => unpack(keptOf(id, fields)))
    })
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#do(async ({ wire }) => {
      const [found] = await fetchAll(wire, [id])
      return found && unpackOriginal(originalOf(id, found.fields))
    })
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#do((desk) => findLetters(desk, query))
  }

  tally(by: TallyKey, filter: LetterFilter = {}): Promise<Map<string, number>> {
    return this.#do(async (desk) => {
      checkTally(by, filter)
      return tallyLetters(desk, by, filter)
    })
  }

  totals(): Promise<Total[]> {
    return this.#do(async ({ wire, tag }) =>
      totalsIn((await wire.ask('HGETALL', `${tag}:totals`)) as Buffer[]),
    )
  }

  stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#do(async ({ wire }) => {
      const found = await fetchAll(wire, ids)
      return found.map(({ id, fields }) => storedOf(id, fields))
    })
  }

  keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    return this.#do((desk) => keepLetters(desk, letters))
  }

  keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#do(async ({ wire }) => {
      if (totals.length > 0) await wire.run(scripts.keepTotals, totalFields(totals))
    })
  }

  claim(request: ClaimRequest): Promise<Claim> {
    return this.#do((desk) => claimLetters(desk, request))
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#do(() => this.#renew(leases, leaseMs))
  }

  apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    return this.#do(() => this.#apply(changes))
  }

  remove(which: LetterFilter): Promise<number> {
    return this.#do(async (desk) => {
      checkRemoval(which)
      return removeLetters(desk, which)
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

  /** Hears what other processes do, while the store is open. Its own doings it knows without. */
  #listen(): void {
    if (this.#life.state !== 'open') return
    const { wire, tag } = this.#desk
    this.#stopListening ??= listen(wire, `${tag}:wake`, () => this.#watchers.notify())
  }

  health(): Promise<StoreHealth> {
    const { wire, tag, witness, search } = this.#desk
    return this.#life.health(async () => {
      const { checks, dangers } = await inspect(wire)
      witness.saw(Number(textOf((await wire.ask('HGET', `${tag}:meta`, 'moves')) ?? 0)))
      const problems = this.#allowVolatile ? [] : dangers
      problems.push(...witness.problems(search.strays()))
      return { ok: problems.length === 0, checks, problems }
    })
  }

  fsck(options: { repair?: boolean } = {}): Promise<DriftReport> {
    return this.#do(({ wire, tag }) => checkDrift(wire, tag, options.repair === true))
  }

  #do<T>(work: (desk: Desk) => Promise<T>): Promise<T> {
    return this.#life.run(() => work(this.#desk))
  }
}

function checkOptions({ prefix, waitReplicas = 0, timeoutMs = 1 }: RedisStoreOptions): void {
  if (prefix !== undefined && (prefix === '' || /[{}\s]/.test(prefix)))
    throw invalid('prefix must be a word without braces or spaces')
  if (!Number.isInteger(waitReplicas) || waitReplicas < 0)
    throw invalid(`waitReplicas must be a whole number from 0 on, not ${waitReplicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be a number above 0, not ${timeoutMs}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
