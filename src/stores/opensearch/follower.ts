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
  /** The interval of full comparisons. Default: 600,000. */
  passMs?: number
}

const knownOptions = keysOf<FollowOptions>({ clock: true, passMs: true })

/** A store whose letters are also in a full-text index. */
export interface FollowedStore extends Store {
  /**
   * Letters with these words, best first, as the store has them now. Recent changes may not be
   * found yet.
   */
  search(text: string, options?: SearchOptions): Promise<LetterSummary[]>
  /** Resolves once the index has everything that the store had at the time of the call. */
  caughtUp(): Promise<void>
}

/**
 * The store remains the source of truth and answers everything; the index is fed from it
 * asynchronously. No write waits for the index or fails because of it. Letters of a caller's
 * transaction are found by the next full comparison, since its commit is not visible here.
 */
export function follow(
  truth: Store,
  index: SearchIndex,
  options: FollowOptions = {},
): FollowedStore {
  checkKeys('options of follow', options, knownOptions, { code: 'INVALID_CONFIG' })
  const { clock = systemClock, passMs = 600_000 } = options
  const feeder = new Feeder(truth, index, clock, passMs)
  return passThrough(truth, {
    ...noted(truth, feeder),
    open: async () => {
      await truth.open()
      feeder.start()
    },
    close: async () => {
      await feeder.end()
      await index.close()
      await truth.close()
    },
    search: (text: string, asked: SearchOptions = {}) => search(truth, index, text, asked),
    caughtUp: () => feeder.caughtUp(),
    health: async () => healthWith(await truth.health(), feeder),
  })
}

/** The operations that change letters, and report their ids to the feeder. */
function noted(
  truth: Store,
  feeder: Feeder,
): Pick<Store, 'add' | 'claim' | 'apply' | 'applyAll' | 'remove' | 'keep'> {
  return {
    async add(letters, capacity) {
      const results = await truth.add(letters, capacity)
      feeder.note(
        results.flatMap((result, at) => {
          if (result.kind === 'added') return [letters[at]!.id]
          return result.kind === 'duplicate' && result.by === 'dedupeKey' ? [result.of] : []
        }),
      )
      if (results.some((result) => result.kind === 'added' && result.evicted)) feeder.noteAny()
      return results
    },
    async claim(request) {
      const claim = await truth.claim(request)
      feeder.note(claim.letters.map(({ id }) => id))
      return claim
    },
    async apply(changes) {
      const results = await truth.apply(changes)
      const written = changes.filter((_, at) => results[at] === 'written')
      feeder.note(written.map(({ id }) => id))
      return results
    },
    async applyAll(request) {
      const result = await truth.applyAll(request)
      if (result.written > 0) feeder.noteAny()
      return result
    },
    async remove(which) {
      const gone = await truth.remove(which)
      if (which.ids) feeder.note(which.ids)
      else if (gone > 0) feeder.noteAny()
      return gone
    },
    async keep(letters) {
      const results = await truth.keep(letters)
      const written = letters.filter((_, at) => results[at] === 'written')
      feeder.note(written.map(({ letter }) => letter.id))
      return results
    },
  }
}

async function search(
  truth: Store,
  index: SearchIndex,
  text: string,
  options: SearchOptions,
): Promise<LetterSummary[]> {
  const ids = await index.search(text, options)
  if (ids.length === 0) return []
  const { items } = await truth.find({ ids, limit: maxLimit })
  const found = new Map(items.map((letter) => [letter.id, letter]))
  return ids.flatMap((id) => {
    const letter = found.get(id)
    return letter && matches(letter, options.among ?? {}) ? [letter] : []
  })
}

/** Adds the lag of the index. An unreachable index is a problem, but not of the store. */
function healthWith(health: StoreHealth, feeder: Feeder): StoreHealth {
  const { waiting, completedAt, problem } = feeder.status()
  const whole = completedAt === undefined ? 'not compared yet' : `all compared at ${completedAt}`
  return {
    ok: health.ok,
    checks: { ...health.checks, search: `${waiting} changes pending, ${whole}` },
    problems: problem === undefined ? health.problems : [...health.problems, `search: ${problem}`],
  }
}
