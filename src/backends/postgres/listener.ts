import type { Client } from 'pg'
import { sleep, type Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'

/** Hears what other processes say on a channel. */
export interface Listener {
  /** How it stands, in words. */
  readonly state: string
  /** Whether others are heard at all. */
  readonly listening: boolean
  stop(): Promise<void>
}

export interface ListenerOptions {
  clock: Clock
  /** A connection of its own, not yet connected. */
  client: () => Client
  channel: string
  /** What is put into our own notices, which we need not hear. */
  self: string
  /** Says something on the channel, over another connection. */
  say: (what: string) => Promise<unknown>
  /** It listens now: whatever was said before was not heard. `again`: not for the first time. */
  ready: (again: boolean) => void
  /** A notice of somebody else. */
  hear: (notice: string) => void
}

const reconnectDelay = { firstMs: 100, maxMs: 10_000 }
/** How long the server may take to send back what the listener tells itself. */
const echoMs = 3000

/**
 * Keeps one connection that listens, and comes back when it is lost. A pooler in transaction mode takes the LISTEN and delivers nothing:
 * something is said over another connection first, and the listener gives up when it does not hear it.
 */
export function listen(options: ListenerOptions): Listener {
  return new ChannelListener(options)
}

class ChannelListener implements Listener {
  state = 'connecting'
  readonly #options: ListenerOptions
  readonly #stopping = new AbortController()
  readonly #done: Promise<void>

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#done = this.#keep()
  }

  get listening(): boolean {
    return this.state === 'listening'
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#done
  }

  async #keep(): Promise<void> {
    const { clock, ready } = this.#options
    const backoff = new Backoff(clock, reconnectDelay)
    for (let again = false; !this.#stopping.signal.aborted; again = true) {
      const heard = await this.#listen(() => {
        backoff.reset()
        ready(again)
      })
      if (heard === 'silent') return
      await backoff.wait(this.#stopping.signal)
    }
  }

  /** Listens until the connection ends. `silent`: nothing comes through. */
  async #listen(ready: () => void): Promise<'ended' | 'silent'> {
    const client = this.#options.client()
    const over = new AbortController()
    const ended = new Promise<'ended'>((resolve) => {
      const end = (): void => resolve('ended')
      client.on('error', end)
      client.on('end', end)
      this.#stopping.signal.addEventListener('abort', end, { once: true, signal: over.signal })
    })
    try {
      this.state = 'connecting'
      await client.connect()
      const answer = await this.#echo(client, ended)
      if (answer !== 'heard') {
        if (answer === 'silent')
          this.state =
            'polling: notices do not come through, as behind a pooler in transaction mode'
        return answer
      }
      this.state = 'listening'
      ready()
      // Waiting for news must not keep the process alive.
      handleOf(client).unref()
      return await ended
    } catch {
      return 'ended'
    } finally {
      over.abort()
      if (this.listening) this.state = 'connecting'
      // Not awaited: a server that is away would not say goodbye.
      client.end().catch(() => {})
    }
  }

  /** Listens, says something over another connection, and waits to hear it. */
  async #echo(client: Client, ended: Promise<'ended'>): Promise<'heard' | 'silent' | 'ended'> {
    const { channel, self, say, hear, clock } = this.#options
    const echo = `echo ${self}`
    const heard = new Promise<'heard'>((resolve) => {
      client.on('notification', ({ payload = '' }) => {
        if (payload === echo) resolve('heard')
        else if (payload !== self && !payload.startsWith('echo ')) hear(payload)
      })
    })
    await client.query(`LISTEN "${channel}"`)
    await say(echo)
    const patience = new AbortController()
    const silent = sleep(clock, echoMs, patience.signal).then(() => 'silent' as const)
    try {
      return await Promise.race([heard, silent, ended])
    } finally {
      patience.abort()
    }
  }
}

/** `pg` has this, and its types do not say so. */
function handleOf(client: Client): { unref(): void } {
  return client as unknown as { unref(): void }
}
