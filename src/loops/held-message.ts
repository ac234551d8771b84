import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import type { Message } from '../mailbox.ts'
import { Heartbeat } from './heartbeat.ts'
import type { LeaseExtender } from './lease-extender.ts'

interface Holding {
  clock: Clock
  leaseMs: number
  /** Of the loop: it beats whenever the work does. */
  pulse: Heartbeat
  extender: LeaseExtender
}

/** A message under way, with a signal that aborts when its lease is lost, and when the loop stops and the work takes too long to end. */
export class HeldMessage {
  readonly message: Message
  /** Beats of the work extend the lease. */
  readonly heartbeat: Heartbeat
  readonly #clock: Clock
  readonly #controller = new AbortController()
  readonly #detach: () => void
  #cancel: () => void
  /** When the lease ends, as far as the timer knows. */
  #visibleAt: Timestamp
  #why: 'lost' | 'stopped' | undefined
  #over = false

  constructor(message: Message, { clock, leaseMs, pulse, extender }: Holding) {
    this.message = message
    this.#clock = clock
    this.heartbeat = new Heartbeat(clock)
    this.heartbeat.observe(() => pulse.beat())
    this.#detach = extender.attach(message, this.heartbeat, {
      extended: (seconds) => this.#lastsFor(Math.max(seconds * 1000, this.#leftMs())),
      lost: () => this.#lose(),
    })
    this.#cancel = clock.timer(leaseMs, () => this.#lapse())
    this.#visibleAt = message.visibleAt
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Why the signal aborted, if it did. */
  get ended(): 'lost' | 'stopped' | undefined {
    return this.#why
  }

  stop(): void {
    this.#end('stopped', new RedriveError('CLOSED', 'the loop is stopping'))
  }

  letGo(): void {
    this.#over = true
    this.#cancel()
    this.#detach()
  }

  #lastsFor(ms: number): void {
    // An extension may have been on its way.
    if (this.#why === 'lost' || this.#over) return
    this.#cancel()
    this.#cancel = this.#clock.timer(ms, () => this.#lapse())
    this.#visibleAt = this.message.visibleAt
  }

  /** The work may have extended the message itself. */
  #lapse(): void {
    const leftMs = this.#leftMs()
    if (this.message.visibleAt !== this.#visibleAt && leftMs > 0) this.#lastsFor(leftMs)
    else this.#lose()
  }

  #leftMs(): number {
    return toMs(this.message.visibleAt) - this.#clock.now()
  }

  #lose(): void {
    this.#end('lost', new RedriveError('LEASE_LOST', 'the lease of the message has lapsed'))
  }

  #end(why: 'lost' | 'stopped', reason: RedriveError): void {
    this.#why ??= why
    this.#controller.abort(reason)
  }
}
