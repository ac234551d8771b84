import {
  createInbox,
  type Msg,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node'
import type { Clock } from '../../clock/clock.ts'
import { headersIn, isDelivery } from './packing.ts'

/** The request of one pull. */
export interface PullRequest {
  stream: string
  consumer: string
  max: number
  /** 0: only messages that are available now. */
  waitMs: number
  signal: AbortSignal
  /** Gets messages that arrive after nobody waits any more. */
  stray: (message: Msg) => void
}

/** What a pull needs from its connection. */
export interface PullContext {
  connection: NatsConnection
  clock: Clock
  /** How late an answer may arrive. */
  graceMs: number
  /** Stops deliveries, and receives those that are in flight. */
  drain: (subscription: Subscription) => void
  /** Queries the state of the consumer. */
  check: (stream: string, consumer: string) => Promise<unknown>
}

/**
 * How long to wait for further messages after the first one. The server reports when there are no
 * more.
 */
const lingerMs = 250

/** An answer that arrives this shortly before its time limit is not early. */
const earlyMs = 50

/**
 * Waits for the first message, and returns it with all that is available at that time. The
 * subscription ends with the pull. When nobody waits any more, it is drained: the server takes back
 * messages that it was about to deliver, and those already in flight are strays.
 */
export class Pull {
  readonly answer: Promise<Msg[]>
  readonly #ask: PullRequest
  readonly #site: PullContext
  readonly #inbox = createInbox()
  readonly #subscription: Subscription
  readonly #endMs: number
  readonly #got: Msg[] = []
  #settle: { resolve: (got: Msg[]) => void; reject: (error: unknown) => void }
  #cancel: () => void
  #patient: boolean
  #over = false

  constructor(ask: PullRequest, site: PullContext) {
    this.#ask = ask
    this.#site = site
    this.#endMs = site.clock.mono() + ask.waitMs
    this.#patient = ask.waitMs === 0
    const { promise, resolve, reject } = Promise.withResolvers<Msg[]>()
    this.answer = promise
    this.#settle = { resolve, reject }
    this.#subscription = site.connection.subscribe(this.#inbox, {
      callback: (error, message) => (error ? this.fail(error) : this.#onMessage(message)),
    })
    this.#cancel = site.clock.timer(ask.waitMs + site.graceMs, () => void this.#late())
    ask.signal.addEventListener('abort', this.#leave, { once: true })
    // Both options together mean: wait for the first message, and not for the second.
    const until = ask.waitMs > 0 ? { expires: ask.waitMs * 1e6 } : {}
    this.#request({ batch: ask.max, no_wait: true, ...until })
  }

  /** Ends the pull. Messages that have arrived are returned all the same. */
  fail(error: unknown): void {
    this.#end(false, error)
  }

  #leave = (): void => this.#end(false)

  #onMessage(message: Msg): void {
    if (!isDelivery(message)) return this.#onStatus(message)
    if (this.#over) return this.#ask.stray(message)
    this.#got.push(message)
    if (this.#got.length === this.#ask.max) return this.#end(true)
    if (this.#got.length > 1) return
    this.#cancel()
    this.#cancel = this.#site.clock.timer(lingerMs, this.#leave)
  }

  /**
   * 404 and 408 mean that there are no more messages; 100 is a heartbeat of the server; everything
   * else is an error.
   */
  #onStatus(message: Msg): void {
    const headers = headersIn(message)
    const code = headers?.code ?? 0
    if (this.#over || code === 100) return
    if (code !== 404 && code !== 408)
      return this.#end(true, new Error(headers?.status ?? 'an unknown status'))
    const leftMs = Math.ceil(this.#endMs - this.#site.clock.mono())
    if (this.#patient || this.#got.length > 0 || leftMs < earlyMs) return this.#end(true)
    // The server did not wait, as when other pulls request more than there is. A request for a
    // single message always waits.
    this.#patient = true
    this.#request({ batch: 1, expires: leftMs * 1e6 })
  }

  /**
   * Servers have been seen to miscount after a purge by others, and then to send nothing. Querying
   * the consumer repairs it.
   */
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
