// A TCP proxy on loopback that breaks connections as networks do. Its mode can change at run time.
import { once } from 'node:events'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { chance } from '../crash/chance.ts'
import { pipe, type Fate, type Flow, type Pipe } from './pipe.ts'

/** The flow of requests and of replies in each mode. */
const modes = {
  pass: ['pass', 'pass'],
  /**
   * Half-open: both sides stay connected and receive nothing. Held data arrives when the mode ends.
   */
  blackhole: ['hold', 'hold'],
  'hold requests': ['hold', 'pass'],
  'hold replies': ['pass', 'hold'],
  /** A connection that lost data delivers nothing more in that direction, in any later mode. */
  'drop requests': ['drop', 'pass'],
  'drop replies': ['pass', 'drop'],
  /** The first half of each next reply arrives, then the connection ends. */
  truncate: ['pass', 'pass'],
  /** Replies arrive as random bytes of the same length. */
  garbage: ['pass', 'pass'],
  /** All existing and new connections are reset. */
  reset: ['pass', 'pass'],
  /**
   * The port is closed. Existing connections stay open; `reset` them first to simulate a dead
   * server.
   */
  refuse: ['pass', 'pass'],
} as const satisfies Record<string, readonly [requests: Flow, replies: Flow]>

export type Mode = keyof typeof modes

type Direction = 'request' | 'reply'
export type ProxyEvent = 'connect' | 'cut' | 'reset' | `${Direction} ${Fate}`

export interface Proxy {
  readonly port: () => number
  /** The URL of a server, with the host and port of this proxy. */
  readonly through: (url: string) => string
  /** Resolves once the mode is active. Resets the event counts. */
  readonly set: (mode: Mode) => Promise<void>
  /** Delays each chunk by `ms` plus up to `jitter`, in both directions. The order is preserved. */
  readonly delay: (ms: number, jitter?: number) => void
  /** Ends one connection after exactly this many bytes of replies. */
  readonly cutAfter: (bytes: number) => void
  /**
   * Cuts the next connection that sends these words, once: before the server receives them, or when
   * the server replies with the same words, as Postgres does after a command. That reply is lost.
   */
  readonly cutAt: (words: string, when: 'before' | 'after') => void
  /** Resolves once an event has happened `times` times since the mode was set. */
  readonly seen: (event: ProxyEvent, times?: number) => Promise<void>
  /** Sends new connections to this server. */
  readonly aim: (url: string) => void
  /** Listens on another port. Existing connections stay open. */
  readonly move: () => Promise<void>
  readonly close: () => void
}

const nothing = Buffer.alloc(0)

/**
 * Ports that the system gives to nobody else. Otherwise another connection could take the port of a
 * proxy that refuses connections. A process claims a block of ports by listening on the first.
 */
const firstPort = 10_000
const portsPerBlock = 100
const blocks = 100

async function claimBlock(): Promise<number> {
  for (let tries = 0; tries < blocks; tries++) {
    const port = firstPort + ((process.pid + tries) % blocks) * portsPerBlock
    const claim = createServer()
    try {
      claim.listen(port, '127.0.0.1')
      await once(claim, 'listening')
      claim.unref()
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
  throw new Error('all blocks of ports are claimed')
}

let block: Promise<number> | undefined
let ports = 0
async function nextPort(): Promise<number> {
  const claimed = await (block ??= claimBlock())
  return claimed + 1 + (ports++ % (portsPerBlock - 1))
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  readonly pipes: readonly Pipe[]
}

/**
 * Creates a proxy for the server of a URL. The same seed gives the same jitter and random bytes.
 */
export async function createProxy(url: string, seed = 1): Promise<Proxy> {
  const random = chance(seed)
  const pairs = new Set<Pair>()
  const counts = new Map<ProxyEvent, number>()
  const waiters = new Set<() => void>()
  let target = new URL(url)
  let mode: Mode = 'pass'
  let latency = { ms: 0, jitter: 0 }
  let allowance: number | undefined
  let trap: { words: string; when: 'before' | 'after' } | undefined
  let listener: Server | undefined
  let port = 0

  const report = (event: ProxyEvent): void => {
    counts.set(event, (counts.get(event) ?? 0) + 1)
    for (const check of waiters) check()
  }

  const drawLatency = (): number => latency.ms + random.next() * latency.jitter

  /** Ends the connection normally after the last bytes; a reset could discard unread data. */
  const cut = (client: Socket, server: Socket, last: Buffer): undefined => {
    server.destroy()
    client.end(last)
    report('cut')
  }

  const alterReply = (client: Socket, server: Socket, chunk: Buffer): Buffer | undefined => {
    if (mode === 'truncate') return cut(client, server, chunk.subarray(0, chunk.length / 2))
    if (allowance !== undefined) {
      if (chunk.length >= allowance) {
        const last = chunk.subarray(0, allowance)
        allowance = undefined
        return cut(client, server, last)
      }
      allowance -= chunk.length
    }
    return mode === 'garbage' ? Buffer.from(chunk.map(() => random.next() * 256)) : chunk
  }

  const reset = ({ client, server }: Pair): void => {
    client.resetAndDestroy()
    server.resetAndDestroy()
    report('reset')
  }

  const accept = (client: Socket): void => {
    const server = createConnection({
      host: target.hostname,
      port: Number(target.port),
      allowHalfOpen: true,
    })
    client.setNoDelay(true)
    server.setNoDelay(true)
    let fatal: string | undefined
    const alter = (direction: Direction, chunk: Buffer): Buffer | undefined => {
      if (direction === 'reply') {
        const isFatal = fatal !== undefined && chunk.includes(fatal)
        return isFatal ? cut(client, server, nothing) : alterReply(client, server, chunk)
      }
      if (!trap || !chunk.includes(trap.words)) return chunk
      const { words, when } = trap
      trap = undefined
      if (when === 'before') return cut(client, server, nothing)
      fatal = words
      return chunk
    }
    const rules = (direction: Direction, index: 0 | 1) => ({
      latency: drawLatency,
      flow: (): Flow => modes[mode][index],
      alter: (chunk: Buffer) => alter(direction, chunk),
      report: (fate: Fate) => report(`${direction} ${fate}`),
    })
    const requests = pipe(client, server, rules('request', 0))
    const pair = { client, server, pipes: [requests, pipe(server, client, rules('reply', 1))] }
    pairs.add(pair)
    const forget = (): void => {
      if (client.destroyed && server.destroyed) pairs.delete(pair)
    }
    client.once('close', forget)
    server.once('close', forget)
    report('connect')
    if (mode === 'reset') reset(pair)
  }

  const listen = async (requested: number): Promise<void> => {
    listener = createServer({ allowHalfOpen: true }, accept).listen(requested, '127.0.0.1')
    await once(listener, 'listening')
    port = requested
  }
  const listenAnywhere = async (): Promise<void> => {
    for (;;)
      try {
        return await listen(await nextPort())
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      }
  }
  const stopListening = (): void => {
    listener?.close()
    listener = undefined
  }

  await listenAnywhere()
  return {
    port: () => port,
    through: (url) => {
      const through = new URL(url)
      through.hostname = '127.0.0.1'
      through.port = String(port)
      return through.href
    },
    set: async (requested) => {
      mode = requested
      counts.clear()
      if (mode === 'refuse') stopListening()
      else if (listener === undefined) await listen(port)
      if (mode === 'reset') for (const pair of pairs) reset(pair)
      for (const pair of pairs) for (const each of pair.pipes) each.flush()
    },
    delay: (ms, jitter = 0) => {
      latency = { ms, jitter }
    },
    cutAfter: (bytes) => {
      allowance = bytes
    },
    cutAt: (words, when) => {
      trap = { words, when }
    },
    seen: (event, times = 1) =>
      new Promise((resolve) => {
        const check = (): void => {
          if ((counts.get(event) ?? 0) < times) return
          waiters.delete(check)
          resolve()
        }
        waiters.add(check)
        check()
      }),
    aim: (url) => {
      target = new URL(url)
    },
    move: async () => {
      stopListening()
      await listenAnywhere()
    },
    close: () => {
      stopListening()
      for (const { client, server } of pairs) {
        client.destroy()
        server.destroy()
      }
    },
  }
}
