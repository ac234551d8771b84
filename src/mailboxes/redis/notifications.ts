import { systemClock, type Clock } from '../../clock/clock.ts'
import type { RedisConnection } from '../../backends/redis/connection.ts'

/** The poll interval while subscribed, since a notification may be lost, and while not. */
const subscribedPollMs = 1000
const unsubscribedPollMs = 250

/** The pause before subscribing again. */
const retryPauseMs = 500

/**
 * Notifications that messages may be available. They are only hints: a lost one costs a short
 * delay, since receivers also poll; an unnecessary one costs a poll.
 */
export class Notifications {
  readonly #connection: RedisConnection
  readonly #channel: string
  readonly #clock: Clock
  readonly #waiters = new Set<() => void>()
  #count = 0
  #state: 'new' | 'unsubscribed' | 'subscribed' | 'stopped' = 'new'
  #unsubscribe = (): void => {}
  #cancel = (): void => {}

  constructor(connection: RedisConnection, channel: string, clock: Clock) {
    this.#connection = connection
    this.#channel = channel
    this.#clock = clock
  }

  /**
   * Grows with every notification. Read it before polling, so that a notification during the poll
   * is not missed.
   */
  get count(): number {
    return this.#count
  }

  /**
   * Resolves on the first notification after `seen`, after `ms`, after the poll interval, or when
   * the signal aborts.
   */
  wait(seen: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#state === 'new') void this.#subscribe()
    if (seen !== this.#count || signal.aborted || this.#state === 'stopped')
      return Promise.resolve()
    const pollMs = Math.min(
      ms,
      this.#state === 'subscribed' ? subscribedPollMs : unsubscribedPollMs,
    )
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel()
        signal.removeEventListener('abort', wake)
        this.#waiters.delete(wake)
        resolve()
      }
      const cancel = this.#clock.timer(pollMs, wake)
      signal.addEventListener('abort', wake, { once: true })
      this.#waiters.add(wake)
    })
  }

  /** Wakes all waiters, and unsubscribes. */
  stop(): void {
    this.#state = 'stopped'
    this.#cancel()
    this.#unsubscribe()
    this.#notify()
  }

  #notify(): void {
    this.#count += 1
    for (const wake of this.#waiters) wake()
  }

  async #subscribe(): Promise<void> {
    this.#state = 'unsubscribed'
    let isBroken = false
    const onBroken = (): void => {
      if (isBroken) return
      isBroken = true
      this.#retry()
    }
    try {
      const unsubscribe = await this.#connection.subscribe(
        this.#channel,
        () => this.#notify(),
        onBroken,
      )
      if (this.#isStopped() || isBroken) return unsubscribe()
      this.#unsubscribe = unsubscribe
      this.#state = 'subscribed'
      // Earlier notifications were missed.
      this.#notify()
    } catch {
      onBroken()
    }
  }

  #retry(): void {
    if (this.#isStopped()) return
    this.#unsubscribe()
    this.#state = 'unsubscribed'
    const pauseMs = retryPauseMs * (0.5 + this.#clock.random())
    this.#cancel = systemClock.timer(pauseMs, () => void this.#subscribe())
  }

  #isStopped(): boolean {
    return this.#state === 'stopped'
  }
}
