import { systemClock, type Clock } from '../../clock/clock.ts'
import { checkKeys, keysOf } from '../../check/keys.ts'
import { passThrough } from '../pass-through.ts'
import type { LetterSummary } from '../../letter/letter.ts'
import { matches, maxLimit } from '../../letter/query.ts'
import type { SearchOptions, Store, StoreHealth } from '../../store.ts'
import { Feeder } from './feeder.ts'
import type { SearchIndex } from './search-index.ts'

export interface FollowOptions {
  clock?: Clock
  /** The interval between full comparisons of the index with the store. Default: 600,000. */
  passMs?: number
}

const knownOptions = keysOf<FollowOptions>({ clock: true, passMs: true })

/** A store whose letters are also in a full-text index. */
export interface FollowedStore extends Store {
  /**
   * Letters with these words, best first, as the store has them now. The index may not have recent
   * changes yet.
   */
  search(text: string, options?: SearchOptions): Promise<LetterSummary[]>
  /** Resolves once the index has everything that the store had at the time of the call. */
  caughtUp(): Promise<void>
}

/**
 * Adds full-text search to a store. The store remains the source of truth; the index is fed from
 * the store asynchronously. No write waits for the index or fails because of it. Letters of a
 * caller's transaction are fed by the next full comparison, since its commit is not visible here.
 */
export function follow(
  store: Store,
  index: SearchIndex,
  options: FollowOptions = {},
): FollowedStore {
  checkKeys('options of follow', options, knownOptions, { code: 'INVALID_CONFIG' })
  const { clock = systemClock, passMs = 600_000 } = options
  const feeder = new Feeder(store, index, clock, passMs)
  return passThrough(store, {
    ...reportChanges(store, feeder),
    open: async () => {
      await store.open()
      feeder.start()
    },
    close: async () => {
      await feeder.stop()
      await index.close()
      await store.close()
    },
    search: (text: string, searchOptions: SearchOptions = {}) =>
      search(store, index, text, searchOptions),
    caughtUp: () => feeder.caughtUp(),
    health: async () => withIndexHealth(await store.health(), feeder),
  })
}

/** Wraps the operations that change letters, to report the changes to the feeder. */
function reportChanges(
  store: Store,
  feeder: Feeder,
): Pick<Store, 'add' | 'claim' | 'apply' | 'applyAll' | 'remove' | 'keep'> {
  return {
    async add(letters, capacity) {
      const results = await store.add(letters, capacity)
      feeder.queueChanges(
        results.flatMap((result, at) => {
          if (result.kind === 'added') return [letters[at]!.id]
          return result.kind === 'duplicate' && result.by === 'dedupeKey' ? [result.of] : []
        }),
      )
      if (results.some((result) => result.kind === 'added' && result.evicted))
        feeder.requestComparison()
      return results
    },
    async claim(request) {
      const claim = await store.claim(request)
      feeder.queueChanges(claim.letters.map(({ id }) => id))
      return claim
    },
    async apply(changes) {
      const results = await store.apply(changes)
      const written = changes.filter((_, at) => results[at] === 'written')
      feeder.queueChanges(written.map(({ id }) => id))
      return results
    },
    async applyAll(letters, moves) {
      const results = await store.applyAll(letters, moves)
      const written = letters.filter((_, at) => results[at] === 'written')
      feeder.queueChanges(written.map(({ id }) => id))
      return results
    },
    async remove(filter) {
      const removed = await store.remove(filter)
      if (filter.ids) feeder.queueChanges(filter.ids)
      else if (removed > 0) feeder.requestComparison()
      return removed
    },
    async keep(letters) {
      const results = await store.keep(letters)
      const written = letters.filter((_, at) => results[at] === 'written')
      feeder.queueChanges(written.map(({ letter }) => letter.id))
      return results
    },
  }
}

async function search(
  store: Store,
  index: SearchIndex,
  text: string,
  options: SearchOptions,
): Promise<LetterSummary[]> {
  const ids = await index.search(text, options)
  if (ids.length === 0) return []
  const { items } = await store.find({ ids, limit: maxLimit })
  const letters = new Map(items.map((letter) => [letter.id, letter]))
  return ids.flatMap((id) => {
    const letter = letters.get(id)
    return letter && matches(letter, options.among ?? {}) ? [letter] : []
  })
}

/** Adds the status of the index. A problem of the index does not make the store unhealthy. */
function withIndexHealth(health: StoreHealth, feeder: Feeder): StoreHealth {
  const { waiting, completedAt, problem } = feeder.status()
  const comparison =
    completedAt === undefined ? 'not compared yet' : `all compared at ${completedAt}`
  return {
    ok: health.ok,
    checks: { ...health.checks, search: `${waiting} changes pending, ${comparison}` },
    problems: problem === undefined ? health.problems : [...health.problems, `search: ${problem}`],
  }
}
