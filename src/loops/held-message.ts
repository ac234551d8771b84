import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import type { Message } from '../mailbox.ts'
import { Heartbeat } from './heartbeat.ts'
import type { LeaseExtender } from './lease-extender.ts'

interface HeldMessageOptions {
  clock: Clock
  leaseMs: number
  /** The heartbeat of the loop. It beats whenever the work does. */
  loopHeartbeat: Heartbeat
  extender: LeaseExtender
}

/**
 * A message in process, with a signal that aborts when its lease is lost, or when the loop stops
 * and the work does not end in time.
 */
export class HeldMessage {
  readonly message: Message
  /** Beats of the work extend the lease. */
  readonly heartbeat: Heartbeat
  readonly #clock: Clock
  readonly #controller = new AbortController()
  readonly #detach: () => void
  #cancel: () => void
  /** The end of the lease for which the timer is set. */
  #visibleAt: Timestamp
  #endReason: 'lost' | 'stopped' | undefined
  #released = false

  constructor(message: Message, { clock, leaseMs, loopHeartbeat, extender }: HeldMessageOptions) {
    this.message = message
    this.#clock = clock
    this.heartbeat = new Heartbeat(clock)
    this.heartbeat.observe(() => loopHeartbeat.beat())
    this.#detach = extender.attach(message, this.heartbeat, {
      extended: (seconds) => this.#setExpiry(Math.max(seconds * 1000, this.#leftMs())),
      lost: () => this.#lose(),
    })
    this.#cancel = clock.timer(leaseMs, () => this.#expire())
    this.#visibleAt = message.visibleAt
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Why the signal aborted, if it did. */
  get ended(): 'lost' | 'stopped' | undefined {
    return this.#endReason
  }

  stop(): void {
    this.#end('stopped', new RedriveError('CLOSED', 'the loop is stopping'))
  }

  release(): void {
    this.#released = true
    this.#cancel()
    this.#detach()
  }

  #setExpiry(ms: number): void {
    // An extension may have been in flight.
    if (this.#endReason === 'lost' || this.#released) return
    this.#cancel()
    this.#cancel = this.#clock.timer(ms, () => this.#expire())
    this.#visibleAt = this.message.visibleAt
  }

  /** Loses the lease, unless the work has extended the message itself. */
  #expire(): void {
    const leftMs = this.#leftMs()
    if (this.message.visibleAt !== this.#visibleAt && leftMs > 0) this.#setExpiry(leftMs)
    else this.#lose()
  }

  #leftMs(): number {
    return toMs(this.message.visibleAt) - this.#clock.now()
  }

  #lose(): void {
    this.#end('lost', new RedriveError('LEASE_LOST', 'the lease of the message has expired'))
  }

  #end(endReason: 'lost' | 'stopped', reason: RedriveError): void {
    this.#endReason ??= endReason
    this.#controller.abort(reason)
  }
}
