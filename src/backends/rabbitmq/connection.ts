import type { Socket } from 'node:net'
import amqplib, { type ChannelModel, type RecoveringChannelModel } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import { toRedriveError } from './errors.ts'

export interface LinkOptions<T> {
  url: string
  /** For people who look at the server's connections. */
  title: string
  clock: Clock
  /** How long anything may take. */
  timeoutMs: number
  /** Builds on a new connection all that is needed of it. Called again after each loss. */
  setup: (model: ChannelModel) => Promise<T>
}

/** A connection that comes back, with what was built on it. */
export interface Link<T> {
  /** For messages: the server without secrets. */
  readonly place: string
  /** Why the server does not take messages for now. */
  readonly blocked: string | undefined
  /** What was built, while the connection stands. */
  readonly current: T | undefined
  /** Rejects when the server cannot be reached now. From then on the link looks after itself. */
  open(): Promise<void>
  /** What was built; waits a while for the connection to come back, then MAILBOX_UNAVAILABLE. */
  get(): Promise<T>
  /** Builds anew what is of no more use. */
  renew(built: T): void
  /** The same without asking a server that does not answer. */
  cut(built: T): void
  close(): Promise<void>
}

export function linkTo<T>(options: LinkOptions<T>): Link<T> {
  return new RecoveringLink(options)
}

const reconnectDelay = { firstMs: 100, maxMs: 5000 }
/** A silent server is noticed after two of these. */
const heartbeatSeconds = 10

/** How long a proper end may take. */
export const closingMs = 2000

/** The client throws what listeners throw, and what nobody listens to. */
export const ignore = (): void => {}

interface Waiting<T> {
  resolve: (built: T) => void
  reject: (error: unknown) => void
}

class RecoveringLink<T> implements Link<T> {
  readonly place: string
  readonly #options: LinkOptions<T>
  readonly #url: URL
  readonly #waiting = new Set<Waiting<T>>()
  #opening: Promise<void> | undefined
  #connection: RecoveringChannelModel | undefined
  #model: ChannelModel | undefined
  #built: T | undefined
  #blocked: string | undefined
  #lastError: unknown

  constructor(options: LinkOptions<T>) {
    this.#options = options
    this.#url = addressOf(options.url)
    this.place = this.#url.host
  }

  get blocked(): string | undefined {
    return this.#blocked
  }

  get current(): T | undefined {
    return this.#built
  }

  async open(): Promise<void> {
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = undefined
      throw toRedriveError(error, this.place)
    })
    await this.#opening
  }

  get(): Promise<T> {
    if (this.#built !== undefined) return Promise.resolve(this.#built)
    if (!this.#connection)
      return Promise.reject(
        new RedriveError('CLOSED', `there is no connection to ${this.place}: await open() first`),
      )
    const { clock, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const cancel = clock.timer(timeoutMs, () => waiting.reject(this.#away()))
      const leave = (): void => {
        cancel()
        this.#waiting.delete(waiting)
      }
      const waiting: Waiting<T> = {
        resolve: (built) => (leave(), resolve(built)),
        reject: (error) => (leave(), reject(error)),
      }
      this.#waiting.add(waiting)
    })
  }

  renew(built: T): void {
    const model = this.#forget(built)
    model?.close().catch(ignore)
  }

  cut(built: T): void {
    const model = this.#forget(built)
    if (model) destroy(model)
  }

  async close(): Promise<void> {
    await this.#opening?.catch(ignore)
    const connection = this.#connection
    this.#opening = undefined
    this.#connection = undefined
    this.#built = undefined
    for (const { reject } of this.#waiting) reject(this.#away())
    if (!connection) return
    const { clock, timeoutMs } = this.#options
    const closing = connection.close()
    await within(
      clock,
      Math.min(timeoutMs, closingMs),
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
        // Whoever opens hears of it; from then on there is no end to trying.
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

  /** Whatever goes wrong on the way is told to the client, which then tries again. */
  async #build(model: ChannelModel): Promise<void> {
    const { clock, timeoutMs, setup } = this.#options
    let built: T | undefined
    let isLost = false
    writeTogether(model)
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
      built = await within(clock, timeoutMs, setup(model), 'the server did not answer')
    } catch (error) {
      // The client would ask for a proper end, and could wait for it for ever.
      if (!isLost) await destroyed(model)
      throw error
    }
    if (isLost) throw new Error('the connection was lost while it was made')
    this.#model = model
    this.#built = built
    for (const { resolve } of this.#waiting) resolve(built)
  }

  #forget(built: T): ChannelModel | undefined {
    if (this.#built !== built) return undefined
    this.#built = undefined
    return this.#model
  }

  #away(): RedriveError {
    return toRedriveError(this.#lastError ?? new Error('there is no connection'), this.place)
  }
}

/** What the client has no way to do is done to its socket. */
function socketOf(model: ChannelModel): Socket {
  return (model.connection as unknown as { stream: Socket }).stream
}

/** The client writes each frame by itself. All of one turn go out together: in one call of the system, and as few packets as there can be. */
function writeTogether(model: ChannelModel): void {
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

/** Ends a connection without asking. */
function destroy(model: ChannelModel): void {
  socketOf(model).destroy(new Error('the connection was given up'))
}

function destroyed(model: ChannelModel): Promise<void> {
  return new Promise((resolve) => {
    model.once('close', () => resolve())
    destroy(model)
  })
}

/** What the promise gives, or MAILBOX_UNAVAILABLE when it takes too long. */
export function within<T>(
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

/** The URL, with a heartbeat in it. INVALID_INPUT when it is none. */
function addressOf(url: string): URL {
  if (!/^amqps?:\/\//i.test(url) || !URL.canParse(url))
    throw new RedriveError(
      'INVALID_INPUT',
      'a RabbitMQ URL begins with amqp:// or amqps://, as in amqp://user:password@localhost:5672/vhost',
    )
  const address = new URL(url)
  if (!address.searchParams.has('heartbeat'))
    address.searchParams.set('heartbeat', String(heartbeatSeconds))
  return address
}
