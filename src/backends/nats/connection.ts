import {
  jetstream,
  jetstreamManager,
  type JetStreamClient,
  type JetStreamManager,
} from '@nats-io/jetstream'
import {
  connect,
  type Msg,
  type NatsConnection,
  type NodeConnectionOptions,
  type Payload,
  type Subscription,
} from '@nats-io/transport-node'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { hasMethods } from '../../letter/reading.ts'
import { refuseClient } from '../injected-client.ts'
import { Pull, type PullRequest, type PullContext } from './pull.ts'
import { toRedriveError } from './errors.ts'

/** Time limit of every request. */
const timeoutMs = 5000

/** Rejects a client that is not a connection of NATS. */
export function checkConnection(client: unknown): void {
  if (!hasMethods(client, 'publish', 'request', 'status', 'getServer'))
    refuseClient('client', 'a connection of @nats-io/transport-node: await connect(…)', client)
}

/**
 * One connection to NATS with JetStream. It reconnects by itself; while it is disconnected, every
 * call is rejected at once instead of being queued.
 */
export class JetStreamConnection {
  readonly connection: NatsConnection
  readonly streams: JetStreamManager
  readonly #client: JetStreamClient
  readonly #place: string
  readonly #clock: Clock
  /** Whether the connection belongs to the application. */
  readonly #isInjected: boolean
  readonly #statuses: ReturnType<NatsConnection['status']>
  readonly #site: PullContext
  /** Called when the connection breaks, to end the calls that wait for the server. */
  readonly #waiting = new Set<() => void>()
  /** Pulls without a waiter, until the server has acknowledged their end. */
  readonly #leaving = new Set<Promise<void>>()
  #isDisconnected = false

  /** Opens a new connection. */
  static async open(
    options: NodeConnectionOptions,
    place: string,
    clock: Clock,
  ): Promise<JetStreamConnection> {
    try {
      const connection = await connect({
        // Otherwise every request creates two errors with stacks in case it fails. Errors are
        // translated anyway.
        noAsyncTraces: true,
        name: 'redrive',
        timeout: timeoutMs,
        maxReconnectAttempts: -1,
        // Otherwise the client gives up at the second refusal, as when a server starts before its
        // users are loaded.
        ignoreAuthErrorAbort: true,
        reconnectTimeWait: 250,
        reconnectJitter: 250,
        pingInterval: timeoutMs,
        maxPingOut: 2,
        ...options,
      })
      try {
        const streams = await jetstreamManager(connection, { timeout: timeoutMs })
        return new JetStreamConnection(connection, streams, place, clock)
      } catch (error) {
        await connection.close()
        throw error
      }
    } catch (error) {
      throw toRedriveError(error, place)
    }
  }

  /** Uses the connection of the application, which closes it. */
  static async use(connection: NatsConnection, clock: Clock): Promise<JetStreamConnection> {
    const place = connection.getServer()
    try {
      const streams = await jetstreamManager(connection, { timeout: timeoutMs })
      return new JetStreamConnection(connection, streams, place, clock, true)
    } catch (error) {
      throw toRedriveError(error, place)
    }
  }

  constructor(
    connection: NatsConnection,
    streams: JetStreamManager,
    place: string,
    clock: Clock,
    isInjected = false,
  ) {
    this.#isInjected = isInjected
    this.#statuses = connection.status()
    this.connection = connection
    this.streams = streams
    this.#client = jetstream(connection, { timeout: timeoutMs })
    this.#place = place
    this.#clock = clock
    this.#site = {
      connection,
      clock,
      graceMs: timeoutMs,
      drain: (subscription) => this.#drain(subscription),
      check: (stream, consumer) => this.call(() => streams.consumers.info(stream, consumer)),
    }
    void this.#watch()
  }

  publish: JetStreamClient['publish'] = (subject, payload, options) =>
    this.call(() => this.#client.publish(subject, payload, { timeout: timeoutMs, ...options }))

  /** Returns the answer of the server. */
  request(subject: string, body?: Payload): Promise<Msg> {
    return this.call(() => this.connection.request(subject, body, { timeout: timeoutMs }))
  }

  /**
   * Publishes several messages, and resolves when the server has received them all: cheaper than
   * one answer per message.
   */
  publishAll(words: readonly (readonly [subject: string, body: string])[]): Promise<void> {
    return this.call(async () => {
      for (const [subject, body] of words) this.connection.publish(subject, body)
      await this.#flush()
    })
  }

  /** Runs a call of the client and translates its errors. */
  async call<T>(act: () => Promise<T>): Promise<T> {
    if (this.#isDisconnected) throw this.#lostError()
    try {
      return await act()
    } catch (error) {
      throw toRedriveError(error, this.#place)
    }
  }

  /** Waits for the first message, and returns it with all that is available at that time. */
  pull(ask: PullRequest): Promise<Msg[]> {
    return this.call(async () => {
      const pull = new Pull(ask, this.#site)
      const broken = (): void => pull.fail(this.#lostError())
      this.#waiting.add(broken)
      try {
        return await pull.answer
      } finally {
        this.#waiting.delete(broken)
      }
    })
  }

  /** Releases stray messages first. All of this waits for the server, which may be unreachable. */
  async close(): Promise<void> {
    if (this.connection.isClosed()) return
    if (this.#isInjected) return this.#leave()
    if (this.#isDisconnected) return this.connection.close()
    const cancel = this.#clock.timer(timeoutMs, () => void this.connection.close())
    const closed = this.connection.closed()
    await Promise.race([Promise.all(this.#leaving), closed])
    // A drain that waits for an answer does not end when the connection is closed meanwhile.
    await Promise.race([this.connection.drain().catch(() => this.connection.close()), closed])
    cancel()
  }

  /**
   * Ends our use of the application's connection. A pull that the server does not confirm in time
   * ends by itself.
   */
  async #leave(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      const cancel = this.#clock.timer(timeoutMs, resolve)
      void Promise.all(this.#leaving).finally(() => (cancel(), resolve()))
    })
    await stopped
    ;(this.#statuses as { stop?: () => void }).stop?.()
  }

  #drain(subscription: Subscription): void {
    const leaving = subscription
      .drain()
      .catch(() => {})
      .finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
  }

  /**
   * The server answers a ping after everything that was sent before it. A lost connection gives no
   * answer.
   */
  #flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => {
        cancel()
        this.#waiting.delete(broken)
        if (error) reject(toRedriveError(error, this.#place))
        else resolve()
      }
      const broken = (): void => end(this.#lostError())
      const cancel = this.#clock.timer(timeoutMs, () => end(new Error('a ping was not answered')))
      this.#waiting.add(broken)
      this.connection.flush().then(() => end(), end)
    })
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#statuses) {
      if (type === 'reconnect') this.#isDisconnected = false
      if (type !== 'disconnect') continue
      this.#isDisconnected = true
      for (const broken of this.#waiting) broken()
    }
  }

  #lostError(): RedriveError {
    return new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `nats ${this.#place}: the connection is lost and reconnects by itself: try again`,
    )
  }
}
