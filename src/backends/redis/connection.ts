import { createClient, RESP_TYPES, type RedisClientType } from 'redis'
import { systemClock } from '../../clock/clock.ts'
import { retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import { shownNode, type Address, type Node } from './address.ts'
import type { Script } from './script.ts'
import type { Tenant } from './tenant.ts'
import { isLoading, isMoved, isNoScript, isUnwelcome, toRedriveError } from './errors.ts'

export type Argument = string | Buffer
/** Text comes as bytes. */
export type Reply = number | Buffer | null | Reply[]

export function textOf(reply: Reply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString() : String(reply ?? '')
}

export interface WireOptions {
  tenant: Tenant
  address: Address
  /** The hash tag that all keys of the tenant have, braces included. */
  tag: string
  /** How long one connection may take to stand. */
  connectMs: number
  /** How long one call may take. */
  timeoutMs: number
  /** How many replicas must have a write before it is acknowledged. */
  waitReplicas: number
}

/** The way to the server: a connection for calls, made when it is needed and again when it breaks. */
export interface Wire {
  readonly tenant: Tenant
  readonly tag: string
  /** Runs a script on the keys of the tenant. */
  run(script: Script, args: readonly Argument[]): Promise<Reply>
  ask(...args: Argument[]): Promise<Reply>
  /** Hears a channel on a connection of its own. Resolves once it does; `broken` is called when it no longer does. */
  subscribe(channel: string, heard: () => void, broken: () => void): Promise<() => void>
  /** The server in use, as people write it. */
  place(): string
  /** Ends the connection for calls. The next call makes another. */
  disconnect(): Promise<void>
  close(): Promise<void>
}

export function wireTo(options: WireOptions): Wire {
  return new RedisWire(options)
}

type Client = RedisClientType<{}, {}, {}, 2>

/** How long to retry connecting, or a call that the server refused because it is loading its data. */
const retries = { clock: systemClock, firstMs: 25, maxMs: 1000, limitMs: 1000 }

/** How often one call follows a slot from node to node. */
const maxMoves = 3

/** How long replicas may take over a write. Calls wait for one another meanwhile. */
const maxWaitMs = 1000

class RedisWire implements Wire {
  readonly tenant: Tenant
  readonly tag: string
  readonly #options: WireOptions
  /** Nodes to try, the one in use first. */
  #nodes: Node[]
  #client: Client | undefined
  #connecting: Promise<Client> | undefined
  #closed = false

  constructor(options: WireOptions) {
    this.tenant = options.tenant
    this.tag = options.tag
    this.#options = options
    this.#nodes = [...options.address.nodes]
  }

  place(): string {
    return shownNode(this.#nodes[0]!)
  }

  run(script: Script, args: readonly Argument[]): Promise<Reply> {
    const { sha, source, copied } = script
    return this.#within((client) =>
      this.#sent(client, ['EVALSHA', sha, '1', this.tag, ...args], copied).catch(
        (error: unknown) => {
          if (!isNoScript(error)) throw error
          return this.#sent(client, ['EVAL', source, '1', this.tag, ...args], copied)
        },
      ),
    )
  }

  ask(...args: Argument[]): Promise<Reply> {
    return this.#within((client) => client.sendCommand<Reply>(args))
  }

  #sent(client: Client, args: Argument[], copied: boolean): Promise<Reply> {
    const reply = client.sendCommand<Reply>(args)
    return copied && this.#options.waitReplicas > 0 ? this.#copied(client, reply) : reply
  }

  /**
   * A script with the question whether replicas have what it wrote, both on their way before either is answered: asked on
   * another connection, it would be answered about other writes.
   */
  async #copied(client: Client, reply: Promise<Reply>): Promise<Reply> {
    const { waitReplicas, timeoutMs } = this.#options
    const waitMs = Math.min(maxWaitMs, Math.floor(timeoutMs / 2))
    const wait = ['WAIT', String(waitReplicas), String(waitMs)]
    const [done, copies] = await Promise.allSettled([reply, client.sendCommand<number>(wait)])
    if (done.status === 'rejected') throw done.reason
    if (copies.status === 'rejected') throw copies.reason
    if (copies.value < waitReplicas)
      throw new RedriveError(
        this.tenant.unavailable,
        `redis ${this.place()}: ${copies.value} of ${waitReplicas} replicas took the write within ${waitMs} ms; ` +
          this.tenant.shortOfCopies,
      )
    return done.value
  }

  /**
   * Makes a call. It is made again only when the server refused it unread: because another node owns the slot, or because
   * it has just started and is loading its data.
   */
  async #within(call: (client: Client) => Promise<Reply>): Promise<Reply> {
    let moves = 0
    const callOwner = async (): Promise<Reply> => {
      for (;;)
        try {
          const client = this.#client?.isReady ? this.#client : await this.#connected()
          return await this.#limited(client, call(client))
        } catch (error) {
          if (!isMoved(error) || moves++ >= maxMoves) throw error
          this.#follow((error as Error).message)
        }
    }
    try {
      return await retry({ ...retries, shouldRetry: isLoading }, callOwner)
    } catch (error) {
      throw toRedriveError(error, this.place(), this.tenant)
    }
  }

  /** A call with its limit in time. After that the connection is given up, since its answers may still come. */
  #limited(
    client: Client,
    reply: Promise<Reply>,
    timeoutMs = this.#options.timeoutMs,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const cancel = systemClock.timer(timeoutMs, () => {
        this.#drop(client)
        const message = `redis ${this.place()}: no answer within ${timeoutMs} ms; what was asked may have been done`
        reject(new RedriveError(this.tenant.unavailable, message))
      })
      reply.then(resolve, reject).finally(cancel)
    })
  }

  /** The node that owns the slot, as another node said: "MOVED 3999 127.0.0.1:6381". */
  #follow(refusal: string): void {
    const [, host, port] = /^MOVED \d+ (.*):(\d+)/.exec(refusal) ?? []
    this.#prefer({ host: host || this.#nodes[0]!.host, port: Number(port) })
    const client = this.#client
    this.#client = undefined
    // Other calls still wait for its answers.
    void client?.close().catch(() => {})
  }

  #prefer(node: Node): void {
    const others = this.#nodes.filter((one) => one.host !== node.host || one.port !== node.port)
    this.#nodes = [node, ...others]
  }

  #drop(client: Client): void {
    if (this.#client === client) this.#client = undefined
    if (client.isOpen) client.destroy()
  }

  async #connected(): Promise<Client> {
    this.#mustBeOpen()
    if (this.#client?.isReady) return this.#client
    // Retried, so that a restart of the server or a broken connection is not a failed call.
    const shouldRetry = (error: unknown): boolean => !this.#closed && !isUnwelcome(error)
    this.#connecting ??= retry({ ...retries, shouldRetry }, () => this.#connectAny()).finally(
      () => (this.#connecting = undefined),
    )
    return this.#connecting
  }

  /** Connects to the first node that answers. */
  async #connectAny(): Promise<Client> {
    let failure: unknown
    for (const node of this.#nodes)
      try {
        const client = await this.#connect(node)
        this.#prefer(node)
        if (this.#closed) this.#drop(client)
        return (this.#client = client)
      } catch (error) {
        failure = error
      }
    throw failure
  }

  async #connect(node: Node): Promise<Client> {
    const { address, connectMs } = this.#options
    const { tls, database, username, password } = address
    const client = createClient({
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
      // The client's own limit would fail calls without a word; ours is in #limited.
      commandOptions: { timeout: 0, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    }) as unknown as Client
    // Every call learns of its own failure; without a listener the event would end the process.
    client.on('error', () => this.#drop(client))
    await this.#limited(
      client,
      client.connect().then(() => null),
      connectMs,
    )
    return client
  }

  async subscribe(channel: string, heard: () => void, broken: () => void): Promise<() => void> {
    this.#mustBeOpen()
    const client = await this.#connect(this.#nodes[0]!)
    client.on('error', broken)
    try {
      await this.#limited(
        client,
        client.subscribe(channel, heard).then(() => null),
      )
    } catch (error) {
      this.#drop(client)
      throw error
    }
    return () => this.#drop(client)
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RedriveError('CLOSED', `the redis ${this.tenant.noun} is closed`)
  }

  async disconnect(): Promise<void> {
    await this.#connecting?.catch(() => {})
    if (this.#client) this.#drop(this.#client)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.disconnect()
  }
}
