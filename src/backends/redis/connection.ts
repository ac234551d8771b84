import { createClient, RESP_TYPES, type RedisClientType } from 'redis'
import { systemClock } from '../../clock/clock.ts'
import { retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import { hasMethods } from '../../letter/reading.ts'
import { refuseClient } from '../injected-client.ts'
import { formatNode, type Address, type Node } from './address.ts'
import type { Script } from './script.ts'
import type { Tenant } from './tenant.ts'
import { isLoading, isMoved, isNoScript, isRefusal, toRedriveError } from './errors.ts'

export type Argument = string | Buffer
/** Strings are returned as bytes. */
export type Reply = number | Buffer | null | Reply[]

export function toText(reply: Reply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString() : String(reply ?? '')
}

/** The part that we use of a client of the `redis` package, made by `createClient`. */
export interface RedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly isWatching: boolean
  sendCommand(args: readonly Argument[], options?: object): Promise<unknown>
  subscribe(channel: string, listener: () => void): Promise<unknown>
  duplicate(): unknown
}

export interface RedisConnectionOptions {
  tenant: Tenant
  /** The address to connect to, or the client of the application. */
  server: { address: Address } | { client: RedisClient }
  /** The hash tag of all keys of the tenant, with braces. */
  tag: string
  /** The time limit for opening a connection. */
  connectMs: number
  /** The time limit of a call. */
  timeoutMs: number
  /** How many replicas must have a write before it is acknowledged. */
  waitReplicas: number
}

type Client = RedisClientType<{}, {}, {}, 2>

/**
 * How long to retry connecting, or a call that the server refused because it is loading its data.
 */
const retries = { clock: systemClock, firstMs: 25, maxMs: 1000, limitMs: 1000 }

/** How often one call follows a slot from node to node. */
const maxMoves = 3

/** The time limit for replicas to receive a write. Other calls wait meanwhile. */
const maxWaitMs = 1000

/** Replies as RESP 2 has them, which an injected client with RESP 3 would convert. */
const typeMapping = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.MAP]: Array }

/**
 * The connection to a server. Without a client of the application, it is opened on demand and again
 * after a loss, and follows the keys of the tenant in a cluster.
 */
export class RedisConnection {
  readonly tenant: Tenant
  readonly tag: string
  readonly #options: RedisConnectionOptions
  /** The client of the application, which closes it. */
  readonly #injected: Client | undefined
  /** Nodes to try, the current one first. */
  #nodes: Node[]
  #client: Client | undefined
  #connecting: Promise<Client> | undefined
  #isClosed = false

  constructor(options: RedisConnectionOptions) {
    const { server } = options
    this.tenant = options.tenant
    this.tag = options.tag
    this.#options = options
    this.#injected = 'client' in server ? checkClient(server.client) : undefined
    this.#nodes = 'client' in server ? [nodeOf(this.#injected!)] : [...server.address.nodes]
  }

  /** The current server, in messages. */
  get place(): string {
    return formatNode(this.#nodes[0]!)
  }

  /** Runs a script on the keys of the tenant. */
  run(script: Script, args: readonly Argument[]): Promise<Reply> {
    const { sha, source, isReplicated } = script
    return this.#call((client) =>
      this.#sendScript(client, ['EVALSHA', sha, '1', this.tag, ...args], isReplicated).catch(
        (error: unknown) => {
          if (!isNoScript(error)) throw error
          return this.#sendScript(client, ['EVAL', source, '1', this.tag, ...args], isReplicated)
        },
      ),
    )
  }

  /** Sends a command. */
  send(...args: Argument[]): Promise<Reply> {
    return this.#call((client) => this.#sendCommand(client, args))
  }

  /** An injected client drops a command that it could not send in time. */
  #sendCommand(client: Client, args: Argument[]): Promise<Reply> {
    const options = this.#injected ? { typeMapping, timeout: this.#options.timeoutMs } : undefined
    return client.sendCommand<Reply>(args, options)
  }

  #sendScript(client: Client, args: Argument[], isReplicated: boolean): Promise<Reply> {
    const reply = this.#sendCommand(client, args)
    return isReplicated && this.#options.waitReplicas > 0
      ? this.#awaitReplicas(client, reply)
      : reply
  }

  /**
   * Sends WAIT right behind the script: on another connection, WAIT would be about other writes.
   */
  async #awaitReplicas(client: Client, reply: Promise<Reply>): Promise<Reply> {
    const { waitReplicas, timeoutMs } = this.#options
    const waitMs = Math.min(maxWaitMs, Math.floor(timeoutMs / 2))
    const wait = this.#sendCommand(client, ['WAIT', String(waitReplicas), String(waitMs)])
    const [written, copies] = await Promise.allSettled([reply, wait])
    if (written.status === 'rejected') throw written.reason
    if (copies.status === 'rejected') throw copies.reason
    if (Number(copies.value) < waitReplicas)
      throw new RedriveError(
        this.tenant.unavailable,
        `redis ${this.place}: ${Number(copies.value)} of ${waitReplicas} replicas confirmed the write within ${waitMs} ms; ` +
          this.tenant.tooFewReplicas,
      )
    return written.value
  }

  /**
   * Makes a call. The call is repeated only if the server rejected it unread: because another node
   * owns the slot, or because the server has just started and is loading its data.
   */
  async #call(call: (client: Client) => Promise<Reply>): Promise<Reply> {
    let moves = 0
    const callOwner = async (): Promise<Reply> => {
      for (;;)
        try {
          const client = this.#client?.isReady ? this.#client : await this.#connect()
          return await this.#limit(client, call(client))
        } catch (error) {
          if (!isMoved(error) || this.#injected || moves++ >= maxMoves) throw error
          this.#followSlot((error as Error).message)
        }
    }
    try {
      return await retry({ ...retries, shouldRetry: isLoading }, callOwner)
    } catch (error) {
      throw toRedriveError(error, this.place, this.tenant)
    }
  }

  /** Limits the time of a call. After a timeout the connection is dropped, since it may be dead. */
  #limit(
    client: Client,
    reply: Promise<Reply>,
    timeoutMs = this.#options.timeoutMs,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const cancel = systemClock.timer(timeoutMs, () => {
        this.#drop(client)
        const message = `redis ${this.place}: no answer within ${timeoutMs} ms; the call may have taken effect`
        reject(new RedriveError(this.tenant.unavailable, message))
      })
      reply.then(resolve, reject).finally(cancel)
    })
  }

  /**
   * Prefers the node that owns the slot, as reported by another node: "MOVED 3999 127.0.0.1:6381".
   */
  #followSlot(refusal: string): void {
    const [, host, port] = /^MOVED \d+ (.*):(\d+)/.exec(refusal) ?? []
    this.#prefer({ host: host || this.#nodes[0]!.host, port: Number(port) })
    const client = this.#client
    this.#client = undefined
    // Not destroyed: other calls still wait for its replies.
    void client?.close().catch(() => {})
  }

  #prefer(node: Node): void {
    const others = this.#nodes.filter((one) => one.host !== node.host || one.port !== node.port)
    this.#nodes = [node, ...others]
  }

  #drop(client: Client): void {
    if (client === this.#injected) return
    if (this.#client === client) this.#client = undefined
    if (client.isOpen) client.destroy()
  }

  async #connect(): Promise<Client> {
    this.#mustBeOpen()
    if (this.#injected) return this.#useInjected(this.#injected)
    if (this.#client?.isReady) return this.#client
    // Retried, so that a restart of the server or a broken connection is not a failed call.
    const shouldRetry = (error: unknown): boolean => !this.#isClosed && !isRefusal(error)
    this.#connecting ??= retry({ ...retries, shouldRetry }, () => this.#connectAny()).finally(
      () => (this.#connecting = undefined),
    )
    return this.#connecting
  }

  #useInjected(client: Client): Client {
    if (client.isOpen) return client
    const message = `redis ${this.place}: client is not connected: await client.connect() first`
    throw new RedriveError(this.tenant.unavailable, message)
  }

  /** Connects to the first node that answers. */
  async #connectAny(): Promise<Client> {
    let failure: unknown
    for (const node of this.#nodes)
      try {
        const client = await this.#openClient(this.#createClient(node))
        this.#prefer(node)
        if (this.#isClosed) this.#drop(client)
        return (this.#client = client)
      } catch (error) {
        failure = error
      }
    throw failure
  }

  /**
   * A new client, not connected yet, for the node; with the options of the application's client if
   * there is one.
   */
  #createClient(node: Node): Client {
    const { server, connectMs } = this.#options
    if ('client' in server) return server.client.duplicate() as Client
    const { tls, database, username, password } = server.address
    return createClient({
      RESP: 2,
      database,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      socket: {
        ...node,
        ...(tls ? { tls: true as const } : {}),
        connectTimeout: connectMs,
        reconnectStrategy: false,
      },
      name: 'redrive',
      disableOfflineQueue: true,
      disableClientInfo: true,
      maintNotifications: 'disabled',
      // The client's own limit would fail calls without a message; ours is in #limit.
      commandOptions: { timeout: 0, typeMapping },
    }) as unknown as Client
  }

  async #openClient(client: Client): Promise<Client> {
    // Every call gets its own error; without a listener the event would end the process.
    client.on('error', () => this.#drop(client))
    await this.#limit(
      client,
      client.connect().then(() => null),
      this.#options.connectMs,
    )
    return client
  }

  /**
   * Subscribes to a channel over a separate connection, and returns a function that ends it.
   * `onBroken` is called when the connection is lost.
   */
  async subscribe(
    channel: string,
    onMessage: () => void,
    onBroken: () => void,
  ): Promise<() => void> {
    this.#mustBeOpen()
    const client = await this.#openClient(this.#createClient(this.#nodes[0]!))
    client.on('error', onBroken)
    try {
      await this.#limit(
        client,
        client.subscribe(channel, onMessage).then(() => null),
      )
    } catch (error) {
      this.#drop(client)
      throw error
    }
    return () => this.#drop(client)
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw new RedriveError('CLOSED', `the redis ${this.tenant.noun} is closed`)
  }

  /** Ends the connection for calls, unless it is the application's. The next call opens another. */
  async disconnect(): Promise<void> {
    await this.#connecting?.catch(() => {})
    if (this.#client) this.#drop(this.#client)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.disconnect()
  }
}

/**
 * Rejects clients of other packages, and those for clusters, sentinels and pools, which send
 * commands in another way.
 */
function checkClient(client: unknown): Client {
  const isClient =
    hasMethods(client, 'sendCommand', 'subscribe', 'duplicate') &&
    typeof (client as RedisClient).isWatching === 'boolean'
  if (!isClient)
    refuseClient(
      'client',
      'a client of the redis package: createClient(…); for a cluster use url',
      client,
    )
  return client as Client
}

function nodeOf({ options }: Client): Node {
  const { host, port } = (options?.socket ?? {}) as Partial<Node>
  return { host: host ?? 'localhost', port: port ?? 6379 }
}
