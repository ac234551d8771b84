import type { Clock } from '../clock.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { ObserverHub } from '../observer.ts'
import { toTimestamp } from '../letter/time.ts'
import {
  admits,
  breaker,
  closedBreaker,
  type BreakerSettings,
  type BreakerState,
} from '../policy/breaker.ts'
import type { Verdict } from './settle.ts'

interface BreakerOptions {
  clock: Clock
  hub: ObserverHub
  breakerFor: (queue: string) => Partial<BreakerSettings> | false
}

/** Which queues may be claimed from now, and how much. */
export interface Sorted {
  /** Claim as many as there are slots. */
  open: string[]
  /** Claim a few, to see whether it works again. */
  probing: { queues: string[]; limit: number }[]
  /** How long until a queue that has to wait may be tried again. */
  recheckMs: number
}

/**
 * A breaker per queue, in this process. A queue whose breaker is open is simply not claimed from: its letters
 * wait where they are, and no retry is spent on a dependency that is known to be down.
 */
export class Breakers {
  readonly #states = new Map<string, BreakerState>()
  readonly #options: BreakerOptions

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  sort(queues: readonly string[]): Sorted {
    const nowMs = this.#options.clock.mono()
    const sorted: Sorted = { open: [], probing: [], recheckMs: Infinity }
    for (const queue of queues) {
      const state = this.#states.get(queue)
      const room = state ? admits(state, nowMs, this.#settings(queue)) : Infinity
      if (room === Infinity) sorted.open.push(queue)
      else if (room > 0) sorted.probing.push({ queues: [queue], limit: room })
      else if (state?.kind === 'open')
        sorted.recheckMs = Math.min(sorted.recheckMs, state.untilMs - nowMs)
    }
    return sorted
  }

  begin(letter: DeadLetter): void {
    if (this.#states.has(letter.queue)) this.#step(letter, { type: 'started' })
  }

  end(letter: DeadLetter, verdict: Verdict): void {
    if (this.#options.breakerFor(letter.queue) === false) return
    if (verdict.kind === 'failed')
      this.#step(letter, { type: 'failed', category: verdict.judged.category })
    else if (this.#states.has(letter.queue))
      this.#step(letter, { type: verdict.kind === 'resolved' ? 'succeeded' : 'ended' })
  }

  #settings(queue: string): Partial<BreakerSettings> {
    return this.#options.breakerFor(queue) || {}
  }

  /** Durations go by the monotonic clock; only what observers are told is wall time. */
  #step({ queue, id: letterId }: DeadLetter, event: Happened): void {
    const { clock, hub } = this.#options
    const atMs = clock.mono()
    const before = this.#states.get(queue) ?? closedBreaker
    const after = breaker(before, { ...event, letterId, atMs }, this.#settings(queue))
    this.#states.set(queue, after)
    if (after.kind === before.kind) return
    const until =
      after.kind === 'open' ? { until: toTimestamp(clock.now() + after.untilMs - atMs) } : {}
    hub.emit({ type: 'breaker', queue, state: after.kind, ...until })
  }
}

/** What happened to a letter, as far as it is not the same for all events. */
type Happened =
  | { type: 'started' | 'succeeded' | 'ended' }
  | { type: 'failed'; category: DeadLetter['category'] }
