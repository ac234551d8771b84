import { systemClock, type Clock } from '../../clock.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { Change } from '../../letter/moves.ts'
import {
  matches,
  maxLimit,
  type LetterFilter,
  type LetterQuery,
  type Page,
} from '../../letter/query.ts'
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
  SearchOptions,
} from '../../store.ts'
import { Feeder } from './feeder.ts'
import type { SearchIndex } from './search-index.ts'

export interface FollowOptions {
  clock?: Clock
  /** How often everything is compared. 10 minutes unless said. */
  passMs?: number
}

/** A store whose letters are also in an index for full text. */
export interface FollowedStore extends Store {
  /** Letters that have the words, best first, as the store has them now. What changed a moment ago may not be found yet. */
  search(text: string, options?: SearchOptions): Promise<LetterSummary[]>
  /** Resolves once the index has all that the store had at this moment. */
  caughtUp(): Promise<void>
}

/**
 * The store keeps the truth and answers everything; the index is fed from it afterwards. No write waits for the index or
 * fails because of it.
 */
export function follow(
  truth: Store,
  index: SearchIndex,
  options: FollowOptions = {},
): FollowedStore {
  return new Followed(truth, index, options)
}

class Followed implements FollowedStore {
  readonly powers: Powers
  readonly records: Records
  readonly #truth: Store
  readonly #index: SearchIndex
  readonly #feeder: Feeder
  /** What a caller's transaction brings is found by the next comparing of everything: nobody here sees it commit. */
  readonly within?: NonNullable<Store['within']>

  constructor(truth: Store, index: SearchIndex, options: FollowOptions) {
    const { clock = systemClock, passMs = 600_000 } = options
    this.powers = truth.powers
    this.records = truth.records
    this.#truth = truth
    if (truth.within) this.within = (client) => truth.within!(client)
    this.#index = index
    this.#feeder = new Feeder(truth, index, clock, passMs)
  }

  async open(): Promise<void> {
    await this.#truth.open()
    this.#feeder.start()
  }

  async close(): Promise<void> {
    await this.#feeder.end()
    await this.#index.close()
    await this.#truth.close()
  }

  caughtUp(): Promise<void> {
    return this.#feeder.caughtUp()
  }

  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    const ids = await this.#index.search(text, options)
    if (ids.length === 0) return []
    const { items } = await this.#truth.find({ ids, limit: maxLimit })
    const found = new Map(items.map((letter) => [letter.id, letter]))
    return ids.flatMap((id) => {
      const letter = found.get(id)
      return letter && matches(letter, options.among ?? {}) ? [letter] : []
    })
  }

  async add(letters: readonly DeadLetter[], capacity?: Capacity): Promise<AddResult[]> {
    const results = await this.#truth.add(letters, capacity)
    this.#feeder.note(
      results.flatMap((result, at) => {
        if (result.kind === 'added') return [letters[at]!.id]
        return result.kind === 'duplicate' && result.by === 'dedupeKey' ? [result.of] : []
      }),
    )
    if (results.some((result) => result.kind === 'added' && result.evicted)) this.#feeder.noteAny()
    return results
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    const claim = await this.#truth.claim(request)
    this.#feeder.note(claim.letters.map(({ id }) => id))
    return claim
  }

  async apply(changes: readonly Change[]): Promise<ApplyResult[]> {
    const results = await this.#truth.apply(changes)
    const written = changes.filter((_, at) => results[at] === 'written')
    this.#feeder.note(written.map(({ id }) => id))
    return results
  }

  async remove(which: LetterFilter): Promise<number> {
    const gone = await this.#truth.remove(which)
    if (which.ids) this.#feeder.note(which.ids)
    else if (gone > 0) this.#feeder.noteAny()
    return gone
  }

  async keep(letters: readonly StoredLetter[]): Promise<KeepResult[]> {
    const results = await this.#truth.keep(letters)
    const written = letters.filter((_, at) => results[at] === 'written')
    this.#feeder.note(written.map(({ letter }) => letter.id))
    return results
  }

  /** The index says how far behind it is. That it is away is a problem, but none of the store. */
  async health(): Promise<StoreHealth> {
    const health = await this.#truth.health()
    const { waiting, completedAt, problem } = this.#feeder.standing()
    const whole = completedAt === undefined ? 'not compared yet' : `all compared at ${completedAt}`
    return {
      ok: health.ok,
      checks: { ...health.checks, search: `${waiting} changes to go, ${whole}` },
      problems:
        problem === undefined ? health.problems : [...health.problems, `search: ${problem}`],
    }
  }

  get(ids: readonly string[]): Promise<DeadLetter[]> {
    return this.#truth.get(ids)
  }

  original(id: string): Promise<Payload | undefined> {
    return this.#truth.original(id)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query: LetterQuery): Promise<Page<LetterSummary>>
  find(query: LetterQuery): Promise<Page<DeadLetter | LetterSummary>> {
    return this.#truth.find(query)
  }

  tally(by: TallyKey, filter?: LetterFilter): Promise<Map<string, number>> {
    return this.#truth.tally(by, filter)
  }

  totals(): Promise<Total[]> {
    return this.#truth.totals()
  }

  stored(ids: readonly string[]): Promise<StoredLetter[]> {
    return this.#truth.stored(ids)
  }

  keepTotals(totals: readonly Total[]): Promise<void> {
    return this.#truth.keepTotals(totals)
  }

  renew(leases: readonly LeaseRef[], leaseMs: number): Promise<boolean[]> {
    return this.#truth.renew(leases, leaseMs)
  }

  watch(listener: () => void): () => void {
    return this.#truth.watch(listener)
  }
}
