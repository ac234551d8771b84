import type { Clock } from '../../clock/clock.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import {
  admits,
  closedBreaker,
  deferMs,
  forgives,
  stepBreaker,
  type BreakerEvent,
  type BreakerState,
} from '../../policy/breaker.ts'
import {
  availableRuns,
  newBucket,
  refillMs,
  shareOf,
  spend,
  type BucketState,
  type Budget,
} from '../../policy/budget.ts'
import {
  adaptLimit,
  afterOutage,
  roomFor,
  unlimited,
  type ConcurrencyState,
} from '../../policy/concurrency.ts'
import type { FlowSettings } from '../../policy/flow-control.ts'
import type { FailedRunResult, RunResult } from '../run-result.ts'

export interface LimiterOptions {
  kind: 'queue' | 'dependency'
  name: string
  clock: Clock
  hub: ObserverHub
  settings: () => FlowSettings
  /** Maximum number of handlers that run at once in this process. */
  maxConcurrent: number
  /** Number of live workers that share the budget. */
  workers: () => number
}

/** State of the flow control of a queue or dependency in this process. */
export interface LimiterStatus {
  kind: 'queue' | 'dependency'
  name: string
  /** State of the circuit breaker. */
  state: BreakerState['kind']
  /** When an open breaker lets the next letter run as a probe. */
  until?: string
  inFlight: number
  /** Maximum number of letters that run at once, while there is a limit. */
  limit?: number
  /** True after an outage: the limit doubles with each round of successes. */
  recovering?: true
}

/**
 * Circuit breaker, rate limit and adaptive concurrency of one queue or dependency. Decides how many
 * letters may be claimed; the others stay pending and use up no retries.
 */
export class Limiter {
  readonly #options: LimiterOptions
  /**
   * Start of each run, by the letter as claimed: a letter may have two runs, one of them released
   * with a handler that ignores its signal.
   */
  readonly #inFlight = new Map<DeadLetter, number>()
  #breaker: BreakerState = closedBreaker
  #concurrency: ConcurrencyState = unlimited
  #bucket: BucketState

  constructor(options: LimiterOptions) {
    this.#options = options
    this.#bucket = newBucket(options.clock.mono())
  }

  /** Whether an outage of the dependency caused this failure, so that the run is not counted. */
  blamesOutage(letter: DeadLetter, { judged, report }: FailedRunResult): boolean {
    const { breaker } = this.#options.settings()
    const run = { ...judged, isPartial: report.remaining !== undefined }
    return (
      breaker !== false && forgives(this.#breaker, letter, run, this.#options.clock.now(), breaker)
    )
  }

  /** Minimum delay of a letter whose failure was caused by an outage. */
  deferMs(letter: DeadLetter): number {
    const { breaker } = this.#options.settings()
    if (breaker === false || this.#breaker.kind === 'closed') return 0
    const waitMs =
      this.#breaker.kind === 'open' ? this.#breaker.untilMs - this.#options.clock.mono() : 0
    return deferMs(waitMs, letter.backoffMs, breaker)
  }

  /** Number of letters that may start now. */
  capacity(): number {
    const { breaker, budget, concurrency } = this.#options.settings()
    const nowMs = this.#options.clock.mono()
    const inFlight = this.#inFlight.size
    return Math.min(
      breaker === false ? Infinity : admits(this.#breaker, nowMs, breaker),
      budget ? availableRuns(this.#bucket, this.#ownShare(budget), nowMs) : Infinity,
      roomFor(this.#concurrency, inFlight, concurrency),
    )
  }

  /** Time until there is capacity without any run ending. Infinity: only a run that ends helps. */
  waitMs(): number {
    const { breaker, budget } = this.#options.settings()
    const nowMs = this.#options.clock.mono()
    const openMs = this.#breaker.kind === 'open' ? this.#breaker.untilMs - nowMs : 0
    if (breaker !== false && openMs > 0) return openMs
    return budget ? refillMs(this.#bucket, this.#ownShare(budget), nowMs) || Infinity : Infinity
  }

  begin(letter: DeadLetter, atMs: number): void {
    const { budget, breaker } = this.#options.settings()
    this.#inFlight.set(letter, atMs)
    if (budget) this.#bucket = spend(this.#bucket, this.#ownShare(budget), atMs)
    if (breaker !== false && this.#breaker.kind !== 'closed')
      this.#setBreaker(
        stepBreaker(this.#breaker, { type: 'started', letterId: letter.id, atMs }, breaker),
      )
  }

  end(letter: DeadLetter, result: RunResult, atMs: number): void {
    const { settings, maxConcurrent } = this.#options
    const { breaker, concurrency } = settings()
    const startedMs = this.#inFlight.get(letter) ?? atMs
    const inFlight = this.#inFlight.size
    this.#inFlight.delete(letter)
    if (breaker !== false) {
      const event = breakerEvent(letter.id, result, atMs)
      const closes = this.#setBreaker(stepBreaker(this.#breaker, event, breaker))
      if (closes) {
        this.#concurrency = afterOutage(atMs, concurrency)
        return
      }
    }
    if (result.kind !== 'resolved' && result.kind !== 'failed') return
    const end =
      result.kind === 'failed'
        ? { type: 'failed' as const, category: result.judged.category, startedMs, atMs }
        : { type: 'succeeded' as const }
    this.#concurrency = adaptLimit(this.#concurrency, end, inFlight, maxConcurrent, concurrency)
  }

  status(): LimiterStatus {
    const { kind, name } = this.#options
    const { limit, recovering } = this.#concurrency
    return {
      kind,
      name,
      state: this.#breaker.kind,
      ...this.#openUntil(),
      inFlight: this.#inFlight.size,
      ...(Number.isFinite(limit) ? { limit: Math.floor(limit) } : {}),
      ...(recovering ? { recovering } : {}),
    }
  }

  #ownShare(budget: Budget): Budget {
    return shareOf(budget, this.#options.workers())
  }

  /** Returns whether this closes the breaker. */
  #setBreaker(after: BreakerState): boolean {
    const before = this.#breaker
    this.#breaker = after
    if (after.kind === before.kind) return false
    const { hub, name, kind } = this.#options
    hub.emit({ type: 'breaker', kind, name, state: after.kind, ...this.#openUntil() })
    return after.kind === 'closed'
  }

  /** Durations use the monotonic clock; only timestamps for people are wall time. */
  #openUntil(): { until?: string } {
    if (this.#breaker.kind !== 'open') return {}
    const { clock } = this.#options
    return { until: toTimestamp(clock.now() + this.#breaker.untilMs - clock.mono()) }
  }
}

function breakerEvent(letterId: string, result: RunResult, atMs: number): BreakerEvent {
  if (result.kind !== 'failed')
    return { type: result.kind === 'resolved' ? 'succeeded' : 'ended', letterId, atMs }
  const { category, failure } = result.judged
  const asked = failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }
  return { type: 'failed', letterId, atMs, category, ...asked }
}
