/**
 * Cases that a large set of runs must cover. A simulation that never reaches a case proves nothing
 * about it, so a large set that misses one fails.
 */
export const required = [
  'late settle rejected',
  'renew lost',
  'expired lease taken over',
  'rescue beat a late settle',
  'late settle beat the rescue',
  'poison parked',
  'applied-then-error on add',
  'applied-then-error on claim',
  'applied-then-error on apply',
  'applied-then-error on renew',
  'dedupe hit',
  'lane head settled and the next was claimed',
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
export type CoveredCase = (typeof required)[number]

export class Coverage {
  readonly #counts = new Map<string, number>()

  record(what: CoveredCase | `applied-then-error on ${string}`): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Number of runs that covered each case. */
  static total(runs: readonly ReadonlyMap<string, number>[]): Map<string, number> {
    const total = new Map<string, number>(required.map((what) => [what, 0]))
    for (const run of runs)
      for (const what of run.keys()) total.set(what, (total.get(what) ?? 0) + 1)
    return total
  }
}
