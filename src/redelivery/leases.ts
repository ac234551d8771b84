import { nextTurn, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { LeaseRef, Store } from '../store.ts'

/** A lease of this worker. Its signal aborts when the lease is lost or can no longer be renewed. */
export interface HeldLease extends LeaseRef {
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
 * Renews the leases of running letters: one call for all of them every third of a lease, so that
 * one or two slow answers do no harm. If the store does not answer, the signal of the handler
 * aborts before the lease ends. The epoch prevents a late result from replacing that of another
 * worker.
 */
export class LeaseKeeper {
  readonly #held = new Set<HeldLease>()
  readonly #options: LeaseOptions
  /** There is at most one timer and one renewal at a time. */
  #cancelTick: (() => void) | undefined
  #renewing = false

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  hold(lease: HeldLease): void {
    this.#held.add(lease)
    this.#scheduleTick()
  }

  drop(lease: HeldLease): void {
    this.#held.delete(lease)
    if (this.#held.size > 0) return
    this.#cancelTick?.()
    this.#cancelTick = undefined
  }

  #scheduleTick(): void {
    if (this.#cancelTick || this.#held.size === 0) return
    this.#cancelTick = this.#options.clock.timer(this.#options.leaseMs / 3, () => {
      this.#cancelTick = undefined
      this.#scheduleTick()
      void this.#tick()
    })
  }

  async #tick(): Promise<void> {
    if (this.#renewing) {
      // If this process was paused, the answer may have arrived and only has to be read.
      await nextTurn()
      if (this.#renewing) this.#abortOverdue([...this.#held])
      return
    }
    this.#renewing = true
    await this.#renew([...this.#held])
    this.#renewing = false
  }

  async #renew(leases: HeldLease[]): Promise<void> {
    const { store, clock, leaseMs, onError } = this.#options
    const requestedMs = clock.mono()
    try {
      const renewed = await store.renew(leases, leaseMs)
      for (const [index, lease] of leases.entries()) {
        if (renewed[index]) lease.leaseEndsMs = requestedMs + leaseMs
        else if (this.#held.delete(lease))
          abort(lease, 'another worker took over the lease, or someone settled the letter')
      }
    } catch (error) {
      onError(error)
      this.#abortOverdue(leases)
    }
  }

  #abortOverdue(leases: HeldLease[]): void {
    const { clock, leaseMs } = this.#options
    for (const lease of leases)
      if (clock.mono() + leaseMs / 3 >= lease.leaseEndsMs)
        abort(lease, 'the lease could not be renewed in time')
  }
}

function abort({ controller }: HeldLease, reason: string): void {
  controller.abort(new RedriveError('LEASE_LOST', reason))
}
