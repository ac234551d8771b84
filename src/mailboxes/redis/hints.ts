import type { Clock } from '../../clock/clock.ts'
import { onAbort } from '../../clock/on-abort.ts'
import { Backoff } from '../../clock/retry.ts'
import type { Wire } from '../../backends/redis/connection.ts'

/**
 * Word that there may be something to receive. It is no more than that: one that is lost costs a moment, since whoever waits looks
 * again by itself; and one too many costs a look.
 */
export interface Hints {
  /** Grows with every hint. Read it before looking, so that a hint during the look is not missed. */
  readonly count: number
  /** Resolves on the first hint after `seen`, after `ms`, after a nap, and when the signal aborts. */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<void>
  /** Wakes everybody, and hears no more. */
  stop(): void
}

export function hintsOn(wire: Wire, channel: string, clock: Clock): Hints {
  return new Subscription(wire, channel, clock)
}

/** How long anybody sleeps without looking: while hints are heard, since one may be lost, and while none can be. */
const hearingNapMs = 1000
const deafNapMs = 250

const resubscribeDelay = { firstMs: 500, maxMs: 5000 }

class Subscription implements Hints {
  readonly #wire: Wire
  readonly #channel: string
  readonly #clock: Clock
  readonly #backoff: Backoff
  readonly #sleepers = new Set<() => void>()
  #count = 0
  #state: 'new' | 'deaf' | 'hearing' | 'stopped' = 'new'
  #leave = (): void => {}
  #cancel = (): void => {}

  constructor(wire: Wire, channel: string, clock: Clock) {
    this.#wire = wire
    this.#channel = channel
    this.#clock = clock
    this.#backoff = new Backoff(clock, resubscribeDelay)
  }

  get count(): number {
    return this.#count
  }

  wait(seen: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#state === 'new') void this.#subscribe()
    if (seen !== this.#count || signal.aborted || this.#state === 'stopped')
      return Promise.resolve()
    const napMs = Math.min(ms, this.#state === 'hearing' ? hearingNapMs : deafNapMs)
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel()
        forget()
        this.#sleepers.delete(wake)
        resolve()
      }
      const cancel = this.#clock.timer(napMs, wake)
      const forget = onAbort(signal, wake)
      this.#sleepers.add(wake)
    })
  }

  stop(): void {
    this.#state = 'stopped'
    this.#cancel()
    this.#leave()
    this.#tell()
  }

  #tell(): void {
    this.#count += 1
    for (const wake of this.#sleepers) wake()
  }

  async #subscribe(): Promise<void> {
    this.#state = 'deaf'
    let broke = false
    const broken = (): void => {
      if (broke) return
      broke = true
      this.#again()
    }
    try {
      const leave = await this.#wire.subscribe(this.#channel, () => this.#tell(), broken)
      if (this.#isStopped() || broke) return leave()
      this.#leave = leave
      this.#state = 'hearing'
      this.#backoff.reset()
      // What was said before could not be heard.
      this.#tell()
    } catch {
      broken()
    }
  }

  #again(): void {
    if (this.#isStopped()) return
    this.#leave()
    this.#state = 'deaf'
    this.#cancel = this.#clock.timer(this.#backoff.nextMs(), () => void this.#subscribe())
  }

  #isStopped(): boolean {
    return this.#state === 'stopped'
  }
}
