// A TCP proxy on loopback that breaks connections in the ways that networks do, switched while it runs.
import { once } from 'node:events'
import {
  createConnection,
  createServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net'
import { chance } from '../crash/chance.ts'
import { pipe, type Fate, type Flow, type Pipe } from './pipe.ts'

/** What becomes of requests and of replies in each mode. */
const modes = {
  pass: ['pass', 'pass'],
  /** Half-open: both sides stay connected and hear nothing. What was said arrives when the mode ends. */
  blackhole: ['hold', 'hold'],
  'hold requests': ['hold', 'pass'],
  'hold replies': ['pass', 'hold'],
  /** Lost for good: a connection that lost something stays deaf in that direction, in every later mode. */
  'drop requests': ['drop', 'pass'],
  'drop replies': ['pass', 'drop'],
  /** The first half of the next reply arrives, then the connection ends. The mode lasts: so do its cuts. */
  truncate: ['pass', 'pass'],
  /** Replies arrive as noise of the same length. */
  garbage: ['pass', 'pass'],
  /** All connections are reset, and each new one is. */
  reset: ['pass', 'pass'],
  /** Nobody listens. Connections that stand are left alone; `reset` them first for a server that is gone. */
  refuse: ['pass', 'pass'],
} as const satisfies Record<string, readonly [requests: Flow, replies: Flow]>

export type Mode = keyof typeof modes

type Said = 'request' | 'reply'
export type ProxyEvent = 'connect' | 'cut' | 'reset' | `${Said} ${Fate}`

export interface Proxy {
  readonly port: () => number
  /** The URL of a server, with this proxy in its way. */
  readonly through: (url: string) => string
  /** Resolves once the mode holds. Events are counted anew from then on. */
  readonly set: (mode: Mode) => Promise<void>
  /** Each piece travels this long and up to `jitter` longer, in either direction. The order stays. */
  readonly delay: (ms: number, jitter?: number) => void
  /** Lets this many bytes of replies pass, then ends the connection at exactly that byte, once. */
  readonly cutAfter: (bytes: number) => void
  /**
   * The next connection that says these words is cut, once: before the server hears them, or after it has answered with the same
   * words, as Postgres does when a command is done. That answer is lost.
   */
  readonly cutAt: (words: string, when: 'before' | 'after') => void
  /** Resolves once an event has happened so often since the mode was set. */
  readonly seen: (event: ProxyEvent, times?: number) => Promise<void>
  /** New connections go to this server from now on. */
  readonly aim: (url: string) => void
  /** Listens on another port. Connections that stand are left alone. */
  readonly move: () => Promise<void>
  readonly close: () => void
}

const nothing = Buffer.alloc(0)

interface Pair {
  readonly client: Socket
  readonly server: Socket
  readonly pipes: readonly Pipe[]
}

/** A proxy before the server of a URL. The same seed gives the same jitter and the same noise. */
export async function createProxy(url: string, seed = 1): Promise<Proxy> {
  const drawn = chance(seed)
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

  const tell = (event: ProxyEvent): void => {
    counts.set(event, (counts.get(event) ?? 0) + 1)
    for (const look of waiters) look()
  }

  const travel = (): number => latency.ms + drawn.next() * latency.jitter

  /** The client gets these last bytes and the end in order; a reset could take back what it has not read yet. */
  const cut = (client: Socket, server: Socket, last: Buffer): undefined => {
    server.destroy()
    client.end(last)
    tell('cut')
  }

  const alterReply = (client: Socket, server: Socket, piece: Buffer): Buffer | undefined => {
    if (mode === 'truncate') return cut(client, server, piece.subarray(0, piece.length / 2))
    if (allowance !== undefined) {
      if (piece.length >= allowance) {
        const last = piece.subarray(0, allowance)
        allowance = undefined
        return cut(client, server, last)
      }
      allowance -= piece.length
    }
    return mode === 'garbage' ? Buffer.from(piece.map(() => drawn.next() * 256)) : piece
  }

  const reset = ({ client, server }: Pair): void => {
    client.resetAndDestroy()
    server.resetAndDestroy()
    tell('reset')
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
    const alter = (said: Said, piece: Buffer): Buffer | undefined => {
      if (said === 'reply') {
        const isFatal = fatal !== undefined && piece.includes(fatal)
        return isFatal ? cut(client, server, nothing) : alterReply(client, server, piece)
      }
      if (!trap || !piece.includes(trap.words)) return piece
      const { words, when } = trap
      trap = undefined
      if (when === 'before') return cut(client, server, nothing)
      fatal = words
      return piece
    }
    const rules = (said: Said, index: 0 | 1) => ({
      travel,
      flow: (): Flow => modes[mode][index],
      alter: (piece: Buffer) => alter(said, piece),
      tell: (fate: Fate) => tell(`${said} ${fate}`),
    })
    const requests = pipe(client, server, rules('request', 0))
    const pair = { client, server, pipes: [requests, pipe(server, client, rules('reply', 1))] }
    pairs.add(pair)
    const leave = (): void => {
      if (client.destroyed && server.destroyed) pairs.delete(pair)
    }
    client.once('close', leave)
    server.once('close', leave)
    tell('connect')
    if (mode === 'reset') reset(pair)
  }

  const listen = async (wished: number): Promise<void> => {
    listener = createServer({ allowHalfOpen: true }, accept).listen(wished, '127.0.0.1')
    await once(listener, 'listening')
    port = (listener.address() as AddressInfo).port
  }
  const deafen = (): void => {
    listener?.close()
    listener = undefined
  }

  await listen(0)
  return {
    port: () => port,
    through: (url) => {
      const through = new URL(url)
      through.hostname = '127.0.0.1'
      through.port = String(port)
      return through.href
    },
    set: async (wished) => {
      mode = wished
      counts.clear()
      if (mode === 'refuse') deafen()
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
        const look = (): void => {
          if ((counts.get(event) ?? 0) < times) return
          waiters.delete(look)
          resolve()
        }
        waiters.add(look)
        look()
      }),
    aim: (url) => {
      target = new URL(url)
    },
    move: async () => {
      deafen()
      await listen(0)
    },
    close: () => {
      deafen()
      for (const { client, server } of pairs) {
        client.destroy()
        server.destroy()
      }
    },
  }
}
