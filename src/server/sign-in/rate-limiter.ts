import type { Clock } from '../../clock/clock.ts'
import { availableRuns, refillMs, spend, type Budget } from '../../policy/budget.ts'

interface Bucket {
  tokens: number
  atMs: number
}

/** Buckets that are kept. The one that was used longest ago goes first. */
const maxKeys = 10_000

/** A token bucket for each key. Buckets start full. */
export class RateLimiter {
  readonly #clock: Clock
  readonly #budget: Required<Budget>
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock, budget: Required<Budget>) {
    this.#clock = clock
    this.#budget = budget
  }

  /** Takes one token. Returns 0, or the time until there is one again. */
  take(key: string): number {
    const nowMs = this.#clock.mono()
    const bucket = this.#buckets.get(key) ?? { tokens: this.#budget.burst, atMs: nowMs }
    const isFree = availableRuns(bucket, this.#budget, nowMs) > 0
    this.#buckets.delete(key)
    this.#buckets.set(key, isFree ? spend(bucket, this.#budget, nowMs) : bucket)
    if (this.#buckets.size > maxKeys) this.#buckets.delete(this.#buckets.keys().next().value!)
    return isFree ? 0 : Math.max(1, refillMs(bucket, this.#budget, nowMs))
  }
}
