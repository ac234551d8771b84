import type { Socket } from 'node:net'
import amqplib, { type ChannelModel, type RecoveringChannelModel } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import { toRedriveError } from './errors.ts'

export interface RabbitmqConnectionOptions<T> {
  url: string
  /** The name of the connection in the management tools of the server. */
  title: string
  clock: Clock
  /** Time limit of every operation. */
  timeoutMs: number
  /** Creates the channels on a new connection. Called again after each reconnect. */
  setup: (model: ChannelModel) => Promise<T>
}

const reconnectDelay = { firstMs: 100, maxMs: 5000 }
/** A silent server is detected after two heartbeats. */
const heartbeatSeconds = 10

/** Time limit of a graceful close. */
export const closeTimeoutMs = 2000

/** The client throws errors of listeners, and error events without a listener. */
export const ignore = (): void => {}

interface Waiter<T> {
  resolve: (built: T) => void
  reject: (error: unknown) => void
}

/** A connection that reconnects by itself, and recreates its channels. */
export class RabbitmqConnection<T> {
  /** The server without secrets, for messages. */
  readonly place: string
  readonly #options: RabbitmqConnectionOptions<T>
  readonly #url: URL
  readonly #waiting = new Set<Waiter<T>>()
  #opening: Promise<void> | undefined
  #connection: RecoveringChannelModel | undefined
  #model: ChannelModel | undefined
  #built: T | undefined
  #blocked: string | undefined
  #lastError: unknown

  constructor(options: RabbitmqConnectionOptions<T>) {
    this.#options = options
    this.#url = parseUrl(options.url)
    this.place = this.#url.host
  }

  /** Why the server blocks publishing at present. */
  get blocked(): string | undefined {
    return this.#blocked
  }

  /** The result of `setup`, while connected. */
  get current(): T | undefined {
    return this.#built
  }

  /**
   * Rejects if the server is unreachable now. After the first success, the connection reconnects by
   * itself.
   */
  async open(): Promise<void> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = undefined
      throw toRedriveError(error, this.place)
    })
    await this.#opening
  }

  /**
   * Returns the result of `setup`; waits for a reconnect, then rejects with MAILBOX_UNAVAILABLE.
   */
  get(): Promise<T> {
    if (this.#built !== undefined) return Promise.resolve(this.#built)
    if (!this.#connection)
      return Promise.reject(
        new RedriveError(
          'CLOSED',
          `there is no connection to ${this.place}: call and await open() first`,
        ),
      )
    const { clock, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const cancel = clock.timer(timeoutMs, () => waiting.reject(this.#unreachableError()))
      const leave = (): void => {
        cancel()
        this.#waiting.delete(waiting)
      }
      const waiting: Waiter<T> = {
        resolve: (built) => (leave(), resolve(built)),
        reject: (error) => (leave(), reject(error)),
      }
      this.#waiting.add(waiting)
    })
  }

  /** Reconnects to replace channels that are broken. */
  renew(built: T): void {
    const model = this.#forget(built)
    model?.close().catch(ignore)
  }

  /** Like `renew`, without a closing handshake, for a server that does not answer. */
  abandon(built: T): void {
    const model = this.#forget(built)
    if (model) destroy(model)
  }

  async close(): Promise<void> {
    await this.#opening?.catch(ignore)
    const connection = this.#connection
    this.#opening = undefined
    this.#connection = undefined
    this.#built = undefined
    for (const { reject } of this.#waiting) reject(this.#unreachableError())
    if (!connection) return
    const { clock, timeoutMs } = this.#options
    const closing = connection.close()
    await limitTime(
      clock,
      Math.min(timeoutMs, closeTimeoutMs),
      closing,
      'the connection did not close',
    ).catch(() => {
      if (this.#model) destroy(this.#model)
    })
  }

  async #connect(): Promise<void> {
    const { clock, timeoutMs, title } = this.#options
    const backoff = new Backoff(clock, reconnectDelay)
    this.#connection = await amqplib.connect(this.#url.href, {
      noDelay: true,
      timeout: timeoutMs,
      clientProperties: { connection_name: title },
      recovery: {
        // The first connection is not retried, so that `open` rejects; later ones are retried
        // forever.
        initialMaxRetries: 0,
        calculateDelay: (attempt) => {
          if (attempt === 1) backoff.reset()
          return backoff.nextMs()
        },
        setup: (model: ChannelModel) => this.#build(model),
      },
    })
    this.#connection.on('error', ignore)
    this.#connection.on('connect-failed', (error) => (this.#lastError = error))
    this.#connection.on('disconnect', (error) => (this.#lastError = error))
  }

  /** Sets up a connection. After an error, the client reconnects. */
  async #build(model: ChannelModel): Promise<void> {
    const { clock, timeoutMs, setup } = this.#options
    let built: T | undefined
    let isLost = false
    corkFrames(model)
    model.on('error', ignore)
    model.on('blocked', (reason) => (this.#blocked = reason || 'no reason given'))
    model.on('unblocked', () => (this.#blocked = undefined))
    model.on('close', () => {
      isLost = true
      if (this.#model !== model) return
      this.#built = undefined
      this.#blocked = undefined
    })
    try {
      built = await limitTime(clock, timeoutMs, setup(model), 'the server did not answer')
    } catch (error) {
      // The client would wait for a closing handshake, possibly forever.
      if (!isLost) await destroyAndWait(model)
      throw error
    }
    if (isLost) throw new Error('the connection was lost during its setup')
    this.#model = model
    this.#built = built
    for (const { resolve } of this.#waiting) resolve(built)
  }

  #forget(built: T): ChannelModel | undefined {
    if (this.#built !== built) return undefined
    this.#built = undefined
    return this.#model
  }

  #unreachableError(): RedriveError {
    return toRedriveError(this.#lastError ?? new Error('there is no connection'), this.place)
  }
}

/** The socket, for operations that the client does not offer. */
function socketOf(model: ChannelModel): Socket {
  return (model.connection as unknown as { stream: Socket }).stream
}

/**
 * The client writes each frame separately. Corking sends all frames of one tick with one system
 * call, in as few packets as possible.
 */
function corkFrames(model: ChannelModel): void {
  const socket = socketOf(model)
  const write = socket.write.bind(socket)
  socket.write = (frame: Uint8Array | string) => {
    if (socket.writableCorked === 0) {
      socket.cork()
      queueMicrotask(() => socket.uncork())
    }
    return write(frame)
  }
}

/** Ends a connection without a closing handshake. */
function destroy(model: ChannelModel): void {
  socketOf(model).destroy(new Error('the connection was abandoned'))
}

function destroyAndWait(model: ChannelModel): Promise<void> {
  return new Promise((resolve) => {
    model.once('close', () => resolve())
    destroy(model)
  })
}

/** Resolves with the promise, or rejects with MAILBOX_UNAVAILABLE after the time limit. */
export function limitTime<T>(
  clock: Clock,
  ms: number,
  promise: Promise<T>,
  otherwise: string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.timer(ms, () =>
      reject(new RedriveError('MAILBOX_UNAVAILABLE', `rabbitmq: ${otherwise} within ${ms} ms`)),
    )
    promise.then(resolve, reject).finally(cancel)
  })
}

/** Parses the URL and adds a heartbeat. Rejects an invalid URL with INVALID_INPUT. */
function parseUrl(url: string): URL {
  if (!/^amqps?:\/\//i.test(url) || !URL.canParse(url))
    throw new RedriveError(
      'INVALID_INPUT',
      'a RabbitMQ URL must start with amqp:// or amqps://, as in amqp://user:password@localhost:5672/vhost',
    )
  const address = new URL(url)
  if (!address.searchParams.has('heartbeat'))
    address.searchParams.set('heartbeat', String(heartbeatSeconds))
  return address
}
