import type { BrakeSettings } from '../policy/flow-control.ts'
import type { Clock } from '../clock/clock.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import {
  admits,
  breaker,
  closedBreaker,
  deferMs,
  forgives,
  type BreakerState,
} from '../policy/breaker.ts'
import {
  affordable,
  freshBucket,
  refillMs,
  shareOf,
  spend,
  type BucketState,
  type Budget,
} from '../policy/budget.ts'
import { adapted, roomFor, unlimited, type ConcurrencyState } from '../policy/concurrency.ts'
import type { Verdict } from './settle.ts'

export interface GateOptions {
  kind: 'queue' | 'dependency'
  name: string
  clock: Clock
  hub: ObserverHub
  settings: () => BrakeSettings
  /** Handlers that this process runs at the same time at the most. */
  maxConcurrent: number
  /** Living workers that share the budget. */
  workers: () => number
}

/** How a gate stands, for people. */
export interface GateStatus {
  kind: 'queue' | 'dependency'
  name: string
  state: BreakerState['kind']
  /** When an open one lets the next letter try. */
  until?: string
  inFlight: number
  /** How many letters may run at the same time, while there is a limit. */
  limit?: number
}

/**
 * What stands before a queue, or before what several queues need: its breaker, its budget and its pace. A gate
 * decides how many letters may be claimed; those that may not wait where they are, untouched, and nothing is spent.
 */
export class Gate {
  readonly #options: GateOptions
  /** When each run was started. Of a letter that was given back there may be two: handlers go on that do not hear. */
  readonly #inFlight = new Map<string, number>()
  #breaker: BreakerState = closedBreaker
  #pace: ConcurrencyState = unlimited
  #bucket: BucketState

  constructor(options: GateOptions) {
    this.#options = options
    this.#bucket = freshBucket(options.clock.mono())
  }

  /** Whether an outage behind this gate made a run fail, so that the run is not counted. */
  forgives(letter: DeadLetter, { judged, said }: Verdict & { kind: 'failed' }): boolean {
    const { breaker: rules } = this.#options.settings()
    const run = { ...judged, isPartial: said?.remaining !== undefined }
    const now = this.#options.clock.now()
    return rules !== false && forgives(this.#breaker, letter, run, now, rules)
  }

  /** How long a letter has to wait, at least, whose run an outage made fail. */
  deferMs(letter: DeadLetter): number {
    const { breaker: rules } = this.#options.settings()
    if (rules === false || this.#breaker.kind === 'closed') return 0
    const waitMs =
      this.#breaker.kind === 'open' ? this.#breaker.untilMs - this.#options.clock.mono() : 0
    return deferMs(waitMs, letter.backoffMs, rules)
  }

  /** How many letters may start now. */
  room(): number {
    const { breaker: rules, budget, concurrency } = this.#options.settings()
    const nowMs = this.#options.clock.mono()
    return Math.min(
      rules === false ? Infinity : admits(this.#breaker, nowMs, rules),
      budget ? affordable(this.#bucket, this.#part(budget), nowMs) : Infinity,
      concurrency === false ? Infinity : roomFor(this.#pace, this.#inFlight.size, concurrency),
    )
  }

  /** How long until time alone makes room. Infinity when it will not. */
  waitMs(): number {
    const { breaker: rules, budget } = this.#options.settings()
    const nowMs = this.#options.clock.mono()
    const open = rules !== false && this.#breaker.kind === 'open' ? this.#breaker.untilMs : nowMs
    if (open > nowMs) return open - nowMs
    return budget ? refillMs(this.#bucket, this.#part(budget), nowMs) || Infinity : Infinity
  }

  begin(letter: DeadLetter): void {
    const { clock, settings } = this.#options
    const nowMs = clock.mono()
    const { budget, breaker: rules } = settings()
    this.#inFlight.set(runOf(letter), nowMs)
    if (budget) this.#bucket = spend(this.#bucket, this.#part(budget), nowMs)
    if (rules !== false && this.#breaker.kind !== 'closed')
      this.#step(
        breaker(this.#breaker, { type: 'started', letterId: letter.id, atMs: nowMs }, rules),
      )
  }

  end(letter: DeadLetter, verdict: Verdict): void {
    const { clock, settings, maxConcurrent } = this.#options
    const { breaker: rules, concurrency } = settings()
    const atMs = clock.mono()
    const run = runOf(letter)
    const startedMs = this.#inFlight.get(run) ?? atMs
    const inFlight = this.#inFlight.size
    this.#inFlight.delete(run)
    if (rules !== false)
      this.#step(breaker(this.#breaker, happened(letter.id, verdict, atMs), rules))
    if (concurrency === false || (verdict.kind !== 'resolved' && verdict.kind !== 'failed')) return
    const end =
      verdict.kind === 'failed'
        ? { type: 'failed' as const, category: verdict.judged.category, startedMs, atMs }
        : { type: 'succeeded' as const }
    this.#pace = adapted(this.#pace, end, inFlight, maxConcurrent, concurrency)
  }

  status(): GateStatus {
    const { kind, name } = this.#options
    const { limit } = this.#pace
    return {
      kind,
      name,
      state: this.#breaker.kind,
      ...this.#until(),
      inFlight: this.#inFlight.size,
      ...(Number.isFinite(limit) ? { limit: Math.floor(limit) } : {}),
    }
  }

  #part(budget: Budget): Budget {
    return shareOf(budget, this.#options.workers())
  }

  #step(after: BreakerState): void {
    const before = this.#breaker
    this.#breaker = after
    if (after.kind === before.kind) return
    const { hub, name, kind } = this.#options
    hub.emit({ type: 'breaker', kind, name, state: after.kind, ...this.#until() })
  }

  /** Durations go by the monotonic clock; only what people are told is wall time. */
  #until(): { until?: string } {
    if (this.#breaker.kind !== 'open') return {}
    const { clock } = this.#options
    return { until: toTimestamp(clock.now() + this.#breaker.untilMs - clock.mono()) }
  }
}

function runOf({ id, epoch }: DeadLetter): string {
  return `${id}:${epoch}`
}

function happened(letterId: string, verdict: Verdict, atMs: number): Parameters<typeof breaker>[1] {
  if (verdict.kind !== 'failed')
    return { type: verdict.kind === 'resolved' ? 'succeeded' : 'ended', letterId, atMs }
  const { category, failure } = verdict.judged
  const asked = failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }
  return { type: 'failed', letterId, atMs, category, ...asked }
}
