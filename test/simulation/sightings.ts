/**
 * What a set of runs must have come across. A simulation that never sees a case proves nothing about it, so a large set that
 * missed one fails.
 */
export const required = [
  'late settle rejected',
  'renew lost',
  'lapsed lease taken over',
  'rescue beat a late settle',
  'late settle beat the rescue',
  'poison parked',
  'applied-then-error on add',
  'applied-then-error on claim',
  'applied-then-error on apply',
  'applied-then-error on renew',
  'dedupe hit',
  'lane head came to rest and the next went on',
  'clock stepped back with a pending retry',
  'graceful release',
  'person settled during a lease',
  'handler timed out',
  'handler stuck',
  'queue full',
  'resolved letter evicted',
  'breaker opened',
  'breaker closed again',
  'unknown settle found written',
  'same id captured again',
  'id conflict',
  'dependency held a letter back',
  'orphan parked',
  'expired letter parked',
  'letter without a handler parked',
  'letter woken by a new handler',
  'process crashed mid-run',
  'process paused past its lease',
  'letter removed',
  'letter archived by the sweep',
  'edit raced by a worker',
] as const
export type Sighting = (typeof required)[number]

export class Sightings {
  readonly #counts = new Map<string, number>()

  see(what: Sighting | `applied-then-error on ${string}`): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Counts in how many runs each was seen. */
  static total(runs: readonly ReadonlyMap<string, number>[]): Map<string, number> {
    const total = new Map<string, number>(required.map((what) => [what, 0]))
    for (const run of runs)
      for (const what of run.keys()) total.set(what, (total.get(what) ?? 0) + 1)
    return total
  }
}
