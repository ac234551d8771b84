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
  hub: ObserverHub
  breakerFor: (queue: string) => Partial<BreakerSettings> | false
}

/** Which queues may be claimed from now, and how much. */
export interface Sorted {
  /** Claim as many as there are slots. */
  open: string[]
  /** Claim a few, to see whether it works again. */
  probing: { queues: string[]; limit: number }[]
  /** When a queue that has to wait may be tried again. */
  recheckAtMs: number
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

  sort(queues: readonly string[], nowMs: number): Sorted {
    const sorted: Sorted = { open: [], probing: [], recheckAtMs: Infinity }
    for (const queue of queues) {
      const state = this.#states.get(queue)
      const room = state ? admits(state, nowMs, this.#settings(queue)) : Infinity
      if (room === Infinity) sorted.open.push(queue)
      else if (room > 0) sorted.probing.push({ queues: [queue], limit: room })
      else if (state?.kind === 'open')
        sorted.recheckAtMs = Math.min(sorted.recheckAtMs, state.untilMs)
    }
    return sorted
  }

  begin(letter: DeadLetter, nowMs: number): void {
    if (this.#states.has(letter.queue))
      this.#step(letter.queue, { type: 'started', letterId: letter.id, atMs: nowMs })
  }

  end(letter: DeadLetter, verdict: Verdict, nowMs: number): void {
    if (this.#options.breakerFor(letter.queue) === false) return
    const about = { letterId: letter.id, atMs: nowMs }
    if (verdict.kind === 'failed')
      this.#step(letter.queue, { type: 'failed', category: verdict.judged.category, ...about })
    else if (this.#states.has(letter.queue))
      this.#step(letter.queue, {
        type: verdict.kind === 'resolved' ? 'succeeded' : 'ended',
        ...about,
      })
  }

  #settings(queue: string): Partial<BreakerSettings> {
    return this.#options.breakerFor(queue) || {}
  }

  #step(queue: string, event: Parameters<typeof breaker>[1]): void {
    const before = this.#states.get(queue) ?? closedBreaker
    const after = breaker(before, event, this.#settings(queue))
    this.#states.set(queue, after)
    if (after.kind === before.kind) return
    const until = after.kind === 'open' ? { until: toTimestamp(after.untilMs) } : {}
    this.#options.hub.emit({ type: 'breaker', queue, state: after.kind, ...until })
  }
}
