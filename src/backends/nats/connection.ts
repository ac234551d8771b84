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
import { Pull, type PullAsk, type PullSite } from './pull.ts'
import { hasMethods, refuseClient } from '../injected-client.ts'
import { toRedriveError } from './errors.ts'

/** How long anything that is asked may take. */
const timeoutMs = 5000

/** One connection. It comes back by itself; while it is away, everything is refused at once rather than kept for later. */
export interface Wire {
  readonly connection: NatsConnection
  readonly streams: JetStreamManager
  publish: JetStreamClient['publish']
  /** What the server answers. */
  request(subject: string, body?: Payload): Promise<Msg>
  /** Says several things, and resolves when the server has heard them all: cheaper than an answer to each. */
  tell(words: readonly (readonly [subject: string, body: string])[]): Promise<void>
  /** Waits for the first message, and brings what else is there at that moment. */
  pull(ask: PullAsk): Promise<Msg[]>
  /** Any call of the client, with its errors turned into ours. */
  call<T>(act: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

export async function wireTo(
  options: NodeConnectionOptions,
  place: string,
  clock: Clock,
): Promise<Wire> {
  try {
    const connection = await connect({
      // Else every request makes two errors with stacks, should it fail. What fails is told in our own words.
      noAsyncTraces: true,
      name: 'redrive',
      timeout: timeoutMs,
      maxReconnectAttempts: -1,
      // Else it gives up for good at the second refusal, as when a server starts before its users are known to it.
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: 250,
      reconnectJitter: 250,
      pingInterval: timeoutMs,
      maxPingOut: 2,
      ...options,
    })
    try {
      const streams = await jetstreamManager(connection, { timeout: timeoutMs })
      return new OneWire(connection, streams, place, clock)
    } catch (error) {
      await connection.close()
      throw error
    }
  } catch (error) {
    throw toRedriveError(error, place)
  }
}

/** Uses the connection of the application, which closes it. */
export async function useConnection(connection: NatsConnection, clock: Clock): Promise<Wire> {
  const place = connection.getServer()
  try {
    const streams = await jetstreamManager(connection, { timeout: timeoutMs })
    return new OneWire(connection, streams, place, clock, true)
  } catch (error) {
    throw toRedriveError(error, place)
  }
}

/** Rejects a client that is not a connection of NATS. */
export function checkConnection(client: unknown): void {
  if (!hasMethods(client, 'publish', 'request', 'status', 'getServer'))
    refuseClient('client', 'a connection of @nats-io/transport-node: await connect(…)', client)
}

class OneWire implements Wire {
  readonly connection: NatsConnection
  readonly streams: JetStreamManager
  readonly #client: JetStreamClient
  readonly #place: string
  readonly #clock: Clock
  /** Whether the connection belongs to the application. */
  readonly #isInjected: boolean
  readonly #statuses: ReturnType<NatsConnection['status']>
  readonly #site: PullSite
  /** How those end who wait for the server when the connection breaks. */
  readonly #waiting = new Set<() => void>()
  /** Pulls that nobody waits for any more, until the server has heard so. */
  readonly #leaving = new Set<Promise<void>>()
  #away = false

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

  request(subject: string, body?: Payload): Promise<Msg> {
    return this.call(() => this.connection.request(subject, body, { timeout: timeoutMs }))
  }

  tell(words: readonly (readonly [subject: string, body: string])[]): Promise<void> {
    return this.call(async () => {
      for (const [subject, body] of words) this.connection.publish(subject, body)
      await this.#heard()
    })
  }

  async call<T>(act: () => Promise<T>): Promise<T> {
    if (this.#away) throw this.#gone()
    try {
      return await act()
    } catch (error) {
      throw toRedriveError(error, this.#place)
    }
  }

  pull(ask: PullAsk): Promise<Msg[]> {
    return this.call(async () => {
      const pull = new Pull(ask, this.#site)
      const broken = (): void => pull.fail(this.#gone())
      this.#waiting.add(broken)
      try {
        return await pull.answer
      } finally {
        this.#waiting.delete(broken)
      }
    })
  }

  /** What comes for nobody is given back first. All of this waits for the server, which may be away. */
  async close(): Promise<void> {
    if (this.connection.isClosed()) return
    if (this.#isInjected) return this.#leave()
    if (this.#away) return this.connection.close()
    const cancel = this.#clock.timer(timeoutMs, () => void this.connection.close())
    const closed = this.connection.closed()
    await Promise.race([Promise.all(this.#leaving), closed])
    // A drain that waits for an answer does not end when the connection is closed meanwhile.
    await Promise.race([this.connection.drain().catch(() => this.connection.close()), closed])
    cancel()
  }

  /** Ends our use of the application's connection. A pull that the server does not confirm in time ends by itself. */
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

  /** The server answers a ping after all that was said before it. Nobody answers on a connection that is lost. */
  #heard(): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => {
        cancel()
        this.#waiting.delete(broken)
        if (error) reject(toRedriveError(error, this.#place))
        else resolve()
      }
      const broken = (): void => end(this.#gone())
      const cancel = this.#clock.timer(timeoutMs, () => end(new Error('a ping was not answered')))
      this.#waiting.add(broken)
      this.connection.flush().then(() => end(), end)
    })
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#statuses) {
      if (type === 'reconnect') this.#away = false
      if (type !== 'disconnect') continue
      this.#away = true
      for (const broken of this.#waiting) broken()
    }
  }

  #gone(): RedriveError {
    return new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `nats ${this.#place}: the connection is lost and comes back by itself: try again`,
    )
  }
}
