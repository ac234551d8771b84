import { createClient, RESP_TYPES, type RedisClientType } from 'redis'
import { sleep, systemClock } from '../../clock.ts'
import { RedriveError } from '../../errors.ts'
import { shownNode, type Address, type Node } from './address.ts'
import type { Script } from './scripts.ts'
import { isLoading, isMoved, isNoScript, isUnwelcome, troubleOf } from './trouble.ts'

export type Argument = string | Buffer
/** Text comes as bytes. */
export type Reply = number | Buffer | null | Reply[]

export interface WireOptions {
  address: Address
  /** The hash tag that all keys of the store have, braces included. */
  tag: string
  /** How long one call may take. */
  timeoutMs: number
  /** How many replicas must have a write before it is acknowledged. */
  waitReplicas: number
}

/** The way to the server: one connection for calls and one for wake-ups, made when they are needed and again when they break. */
export interface Wire {
  /** Runs a script on the keys of the store. */
  run(script: Script, args: readonly Argument[]): Promise<Reply>
  ask(...args: Argument[]): Promise<Reply>
  /** Calls the listener for every message on the channel, until told to stop. */
  listen(channel: string, heard: () => void): () => void
  /** The server in use, as people write it. */
  place(): string
  close(): Promise<void>
}

export function wireTo(options: WireOptions): Wire {
  return new RedisWire(options)
}

type Client = RedisClientType<{}, {}, {}, 2>

/** How long a call waits for a server that does not answer the door, and the pauses between knocks. */
const knockMs = 1000
const firstPauseMs = 25

/** How often one call follows a slot from node to node. */
const maxMoves = 3

/** How long replicas may take over a write. Calls wait for one another meanwhile. */
const maxWaitMs = 1000

/** How long to wait before listening anew, once the connection for wake-ups broke. */
const listenAgainMs = 1000

class RedisWire implements Wire {
  readonly #options: WireOptions
  /** Nodes to try, the one in use first. */
  #nodes: Node[]
  #client: Client | undefined
  #connecting: Promise<Client> | undefined
  #closed = false

  constructor(options: WireOptions) {
    this.#options = options
    this.#nodes = [...options.address.nodes]
  }

  place(): string {
    return shownNode(this.#nodes[0]!)
  }

  async run(script: Script, args: readonly Argument[]): Promise<Reply> {
    const rest: Argument[] = ['1', this.#options.tag, ...args]
    return this.#within(async (client) => {
      try {
        return await this.#sent(client, ['EVALSHA', script.sha, ...rest], script.writes)
      } catch (error) {
        if (!isNoScript(error)) throw error
        return this.#sent(client, ['EVAL', script.source, ...rest], script.writes)
      }
    })
  }

  ask(...args: Argument[]): Promise<Reply> {
    return this.#within((client) => client.sendCommand<Reply>(args))
  }

  /**
   * A write with the question whether replicas have it, both on their way before either is answered: asked on another
   * connection, it would be answered about other writes.
   */
  async #sent(client: Client, args: Argument[], writes: boolean): Promise<Reply> {
    const reply = client.sendCommand<Reply>(args)
    const { waitReplicas, timeoutMs } = this.#options
    if (!writes || waitReplicas === 0) return reply
    const waitMs = Math.min(maxWaitMs, Math.floor(timeoutMs / 2))
    const wait = ['WAIT', String(waitReplicas), String(waitMs)]
    const [done, copies] = await Promise.allSettled([reply, client.sendCommand<number>(wait)])
    if (done.status === 'rejected') throw done.reason
    if (copies.status === 'rejected') throw copies.reason
    if (copies.value < waitReplicas)
      throw new RedriveError(
        'STORE_UNAVAILABLE',
        `redis ${this.place()}: ${copies.value} of ${waitReplicas} replicas took the write within ${waitMs} ms; ` +
          'the master has it, and it may be kept: repeating it is harmless',
      )
    return done.value
  }

  /**
   * Makes a call. It is made again only when the server refused it unread: because another node owns the slot, or because
   * it has just started and is loading its data.
   */
  async #within(call: (client: Client) => Promise<Reply>): Promise<Reply> {
    const endMs = systemClock.mono() + knockMs
    let moves = 0
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2)
      try {
        const client = await this.#connected()
        return await this.#limited(client, call(client))
      } catch (error) {
        if (isMoved(error) && moves++ < maxMoves) this.#follow((error as Error).message)
        else if (!isLoading(error) || systemClock.mono() + pauseMs > endMs)
          throw troubleOf(error, this.place())
        else await sleep(systemClock, pauseMs)
      }
  }

  /** A call with its limit in time. After that the connection is given up, since its answers may still come. */
  #limited(client: Client, reply: Promise<Reply>): Promise<Reply> {
    const { timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const cancel = systemClock.timer(timeoutMs, () => {
        this.#drop(client)
        const message = `redis ${this.place()}: no answer within ${timeoutMs} ms; what was asked may have been done`
        reject(new RedriveError('STORE_UNAVAILABLE', message))
      })
      reply.then(resolve, reject).finally(cancel)
    })
  }

  /** The node that owns the slot, as another node said: "MOVED 3999 127.0.0.1:6381". */
  #follow(refusal: string): void {
    const [, host, port] = /^MOVED \d+ (.*):(\d+)/.exec(refusal) ?? []
    const owner = { host: host || this.#nodes[0]!.host, port: Number(port) }
    this.#prefer(owner)
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
    if (this.#closed) throw new RedriveError('CLOSED', 'the redis store is closed')
    if (this.#client?.isReady) return this.#client
    this.#connecting ??= this.#knock().finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  /** Tries every node, again for a moment, so that a restart or a broken connection is not a failed call. */
  async #knock(): Promise<Client> {
    const endMs = systemClock.mono() + knockMs
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
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
      const late = systemClock.mono() + pauseMs > endMs
      if (this.#closed || late || isUnwelcome(failure)) throw failure
      await sleep(systemClock, pauseMs)
    }
  }

  async #connect(node: Node): Promise<Client> {
    const { tls, database, username, password } = this.#options.address
    const client = createClient({
      RESP: 2,
      database,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      socket: {
        ...node,
        ...(tls ? { tls: true as const } : {}),
        connectTimeout: this.#options.timeoutMs,
        reconnectStrategy: false,
      },
      name: 'redrive',
      disableOfflineQueue: true,
      disableClientInfo: true,
      maintNotifications: 'disabled',
      commandOptions: {
        timeout: 0,
        typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer },
      },
    }) as unknown as Client
    // Every call learns of its own failure; without a listener the event would end the process.
    client.on('error', () => this.#drop(client))
    await this.#limited(
      client,
      client.connect().then(() => null),
    )
    return client
  }

  listen(channel: string, heard: () => void): () => void {
    let stopped = false
    let client: Client | undefined
    let cancel = (): void => {}
    const again = (): void => {
      cancel()
      if (stopped) return
      cancel = systemClock.timer(listenAgainMs, () => void start())
    }
    const start = async (): Promise<void> => {
      try {
        client = await this.#connect(this.#nodes[0]!)
        client.on('error', again)
        await client.subscribe(channel, heard)
        if (stopped) this.#drop(client)
      } catch {
        again()
      }
    }
    void start()
    return () => {
      stopped = true
      cancel()
      if (client) this.#drop(client)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#connecting?.catch(() => {})
    if (this.#client) this.#drop(this.#client)
  }
}
