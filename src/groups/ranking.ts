import type { Clock } from '../clock/clock.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import type { GroupSearch } from './group-query.ts'
import { statusAt, untouched, type GroupState } from './life-cycle.ts'
import type { Merges } from './merges.ts'
import type { GroupRecords } from './records.ts'
import { growthOf, type Seen } from './seen.ts'
import type { GroupTracker } from './tracker.ts'

/** The order of more groups than this is used again for a short time. */
const maxFresh = 1000
const reuseMs = 1000
/** An order that is older than this is replaced while it is still used. */
const refreshMs = 500
const maxKept = 16

export interface RankingOptions {
  store: Store
  records: GroupRecords
  tracker: GroupTracker
  clock: Clock
}

type Ranked = [root: string, key: number]

/**
 * The order of groups. With many groups it may be a second old: counting all of them takes longer
 * than reading one page, whose counts are those of the moment. While pages are read often, the
 * order is replaced before it is too old, so that no page waits for it.
 */
export class Ranking {
  readonly #options: RankingOptions
  readonly #kept = new Map<string, { roots: readonly string[]; atMs: number }>()
  /** Orders that are being replaced. */
  readonly #refreshing = new Set<string>()

  constructor(options: RankingOptions) {
    this.#options = options
  }

  /** The roots of all groups that match, in the order of the search. */
  async roots(
    search: GroupSearch,
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
  ): Promise<readonly string[]> {
    const { filter, statuses, sort } = search
    const key = JSON.stringify([filter, statuses, sort])
    const kept = this.#kept.get(key)
    const ageMs = kept ? this.#options.clock.mono() - kept.atMs : Infinity
    if (!kept || ageMs >= reuseMs) return this.#rankAndKeep(key, search, states, merges)
    if (ageMs >= refreshMs && !this.#refreshing.has(key)) {
      this.#refreshing.add(key)
      // The error is dropped here. If it persists, the next call after `reuseMs` rejects with it.
      void this.#rankAndKeep(key, search, states, merges)
        .catch(() => {})
        .finally(() => this.#refreshing.delete(key))
    }
    return kept.roots
  }

  async #rankAndKeep(
    key: string,
    search: GroupSearch,
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
  ): Promise<readonly string[]> {
    const nowMs = this.#options.clock.mono()
    const roots = await this.#rank(search, states, merges)
    this.#kept.delete(key)
    if (this.#kept.size >= maxKept) this.#kept.clear()
    if (roots.length > maxFresh) this.#kept.set(key, { roots, atMs: nowMs })
    return roots
  }

  async #rank(
    { filter, statuses, sort }: GroupSearch,
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
  ): Promise<string[]> {
    const { store, clock } = this.#options
    const [tally, keys] = await Promise.all([
      store.tally('group', filter),
      sort === 'count' ? undefined : this.#sortKeys(sort, merges),
    ])
    const counts = new Map<string, number>()
    for (const [fingerprint, count] of tally) grow(counts, merges.rootOf(fingerprint), count)
    const at = toTimestamp(clock.now())
    const hasStatus = (root: string): boolean =>
      !statuses || statuses.includes(statusAt(states.get(root) ?? untouched, at))
    return [...counts]
      .filter(([root]) => hasStatus(root))
      .map(([root, count]): Ranked => [root, keys ? (keys.get(root) ?? -Infinity) : count])
      .sort(([a, one], [b, other]) => (one === other ? (a < b ? -1 : 1) : other > one ? 1 : -1))
      .map(([root]) => root)
  }

  /** What groups are sorted by: their last time, or their growth. */
  async #sortKeys(sort: 'lastSeen' | 'growth', merges: Merges): Promise<Map<string, number>> {
    const { records, tracker, clock } = this.#options
    const nowMs = clock.now()
    const keys = new Map<string, number>()
    const add = (fingerprint: string, seen: Seen): void => {
      const root = merges.rootOf(fingerprint)
      if (sort === 'growth') grow(keys, root, growthOf(seen, nowMs))
      else keys.set(root, Math.max(keys.get(root) ?? 0, toMs(seen.lastAt)))
    }
    for await (const [fingerprint, seen] of records.eachSeen()) add(fingerprint, seen)
    for (const [fingerprint, seen] of tracker.allPending()) add(fingerprint, seen)
    return keys
  }
}

function grow(sums: Map<string, number>, key: string, n: number): void {
  sums.set(key, (sums.get(key) ?? 0) + n)
}
