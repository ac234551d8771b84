import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node'
import type { Clock } from '../../clock/clock.ts'
import { headersIn, isDelivery } from './packing.ts'

/** What one pull asks of the consumer. */
export interface PullAsk {
  stream: string
  consumer: string
  max: number
  /** 0: only what is there. */
  waitMs: number
  signal: AbortSignal
  /** Gets what comes when nobody waits for it any more. */
  stray: (message: Msg) => void
}

/** What a pull needs of its connection. */
export interface PullSite {
  connection: NatsConnection
  clock: Clock
  /** How long after its time an answer may still come. */
  graceMs: number
  /** Lets the server deliver no more, and hears what is on its way. */
  drain: (subscription: Subscription) => void
  /** Asks how the consumer is. */
  check: (stream: string, consumer: string) => Promise<unknown>
}

/** How long to wait for the rest of what is there, once the first message has come. The server says when that was all. */
const lingerMs = 250

/** An answer that comes so little before its time is no early one. */
const earlyMs = 50

/**
 * Waits for the first message, and brings what else is there at that moment. Its subscription lives as long as it does. When nobody waits any
 * more it is drained: the server puts back by itself what it was about to deliver, and what is on its way already is a stray.
 */
export class Pull {
  readonly answer: Promise<Msg[]>
  readonly #ask: PullAsk
  readonly #site: PullSite
  readonly #inbox = createInbox()
  readonly #subscription: Subscription
  readonly #endMs: number
  readonly #got: Msg[] = []
  #settle: { resolve: (got: Msg[]) => void; reject: (error: unknown) => void }
  #cancel: () => void
  #patient: boolean
  #over = false

  constructor(ask: PullAsk, site: PullSite) {
    this.#ask = ask
    this.#site = site
    this.#endMs = site.clock.mono() + ask.waitMs
    this.#patient = ask.waitMs === 0
    const { promise, resolve, reject } = Promise.withResolvers<Msg[]>()
    this.answer = promise
    this.#settle = { resolve, reject }
    this.#subscription = site.connection.subscribe(this.#inbox, {
      callback: (error, message) => (error ? this.fail(error) : this.#hear(message)),
    })
    this.#cancel = site.clock.timer(ask.waitMs + site.graceMs, () => void this.#late())
    ask.signal.addEventListener('abort', this.#leave, { once: true })
    // Both at once mean: wait for the first message, and do not wait for the second.
    const until = ask.waitMs > 0 ? { expires: ask.waitMs * 1e6 } : {}
    this.#request({ batch: ask.max, no_wait: true, ...until })
  }

  /** What has come is brought nevertheless. */
  fail(error: unknown): void {
    this.#end(false, error)
  }

  #leave = (): void => this.#end(false)

  #hear(message: Msg): void {
    if (!isDelivery(message)) return this.#told(message)
    if (this.#over) return this.#ask.stray(message)
    this.#got.push(message)
    if (this.#got.length === this.#ask.max) return this.#end(true)
    if (this.#got.length > 1) return
    this.#cancel()
    this.#cancel = this.#site.clock.timer(lingerMs, this.#leave)
  }

  /** 404 and 408 say that there is no more; 100 that the server lives; everything else is trouble. */
  #told(message: Msg): void {
    const headers = headersIn(message)
    const code = headers?.code ?? 0
    if (this.#over || code === 100) return
    if (code !== 404 && code !== 408)
      return this.#end(true, new Error(headers?.status ?? 'an answer of no known kind'))
    const leftMs = Math.ceil(this.#endMs - this.#site.clock.mono())
    if (this.#patient || this.#got.length > 0 || leftMs < earlyMs) return this.#end(true)
    // It did not wait, as when more is asked for by others than there is. One message alone is always waited for.
    this.#patient = true
    this.#request({ batch: 1, expires: leftMs * 1e6 })
  }

  /** Servers have been seen to count wrongly after a purge by others, and then say nothing. Asking how the consumer is repairs it. */
  async #late(): Promise<void> {
    try {
      await this.#site.check(this.#ask.stream, this.#ask.consumer)
      this.#end(false)
    } catch (error) {
      this.#end(false, error)
    }
  }

  #end(served: boolean, error?: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#cancel()
    this.#ask.signal.removeEventListener('abort', this.#leave)
    if (served || this.#subscription.isClosed()) this.#subscription.unsubscribe()
    else this.#site.drain(this.#subscription)
    if (error !== undefined && this.#got.length === 0) this.#settle.reject(error)
    else this.#settle.resolve(this.#got)
  }

  #request(wish: { batch: number; no_wait?: true; expires?: number }): void {
    const { stream, consumer } = this.#ask
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
    this.#site.connection.publish(subject, JSON.stringify(wish), { reply: this.#inbox })
  }
}
