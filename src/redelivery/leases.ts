import { nextTurn, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { LeaseRef, Store } from '../store.ts'

/** Something held under a lease: its signal aborts when the lease is lost or can no longer be trusted. */
export interface Held extends LeaseRef {
  /** On the monotonic clock. */
  leaseEndsMs: number
  controller: AbortController
}

interface LeaseOptions {
  store: Store
  clock: Clock
  leaseMs: number
  onError: (error: unknown) => void
}

/**
 * Keeps the leases of running letters alive: one call for all of them every third of a lease, so that a slow
 * answer or two can be missed. When the store does not answer, a handler is told to stop before its lease ends;
 * the epoch makes sure that whatever it still does cannot be settled over somebody else.
 */
export class LeaseKeeper {
  readonly #held = new Set<Held>()
  readonly #options: LeaseOptions
  /** There is one timer and one renewal at a time. */
  #cancelTick: (() => void) | undefined
  #renewing = false

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  hold(held: Held): void {
    this.#held.add(held)
    this.#tickLater()
  }

  letGo(held: Held): void {
    this.#held.delete(held)
    if (this.#held.size > 0) return
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  #tickLater(): void {
    if (this.#cancelTick || this.#held.size === 0) return
    this.#cancelTick = this.#options.clock.timer(this.#options.leaseMs / 3, () => {
      this.#cancelTick = undefined
      this.#tickLater()
      void this.#tick()
    })
  }

  async #tick(): Promise<void> {
    if (this.#renewing) {
      // When it was this process that stood still, the answer may be there and only has to be read.
      await nextTurn()
      if (this.#renewing) this.#loseOverdue([...this.#held])
      return
    }
    this.#renewing = true
    await this.#renew([...this.#held])
    this.#renewing = false
  }

  async #renew(held: Held[]): Promise<void> {
    const { store, clock, leaseMs, onError } = this.#options
    const askedMs = clock.mono()
    try {
      const kept = await store.renew(held, leaseMs)
      for (const [index, one] of held.entries()) {
        if (kept[index]) one.leaseEndsMs = askedMs + leaseMs
        else if (this.#held.delete(one))
          lose(one, 'the lease was taken over, or someone else settled the letter')
      }
    } catch (error) {
      onError(error)
      this.#loseOverdue(held)
    }
  }

  #loseOverdue(held: Held[]): void {
    const { clock, leaseMs } = this.#options
    for (const one of held)
      if (clock.mono() + leaseMs / 3 >= one.leaseEndsMs)
        lose(one, 'the lease could not be renewed in time')
  }
}

function lose(held: Held, why: string): void {
  held.controller.abort(new RedriveError('LEASE_LOST', why))
}
