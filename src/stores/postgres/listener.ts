import type { Client } from 'pg'
import { sleep, type Clock } from '../../clock.ts'
import type { Link } from './link.ts'

/** Hears of letters that other processes made due. */
export interface Listener {
  /** How it stands, in words. */
  readonly state: string
  stop(): Promise<void>
}

const firstPauseMs = 100
const longestPauseMs = 10_000
/** How long the server may take to send back what the listener tells itself. */
const echoMs = 3000

/**
 * Keeps one connection that listens, and comes back when it is lost. A pooler in transaction mode takes the LISTEN and delivers nothing:
 * something is said over another connection first, and the listener gives up when it does not hear it.
 */
export function listen(options: {
  link: Link
  clock: Clock
  channel: string
  /** What this store puts into its own notices, which it need not hear. */
  self: string
  hear: () => void
}): Listener {
  return new ChannelListener(options)
}

type Options = Parameters<typeof listen>[0]

class ChannelListener implements Listener {
  state = 'connecting'
  readonly #options: Options
  readonly #stopping = new AbortController()
  readonly #done: Promise<void>

  constructor(options: Options) {
    this.#options = options
    this.#done = this.#keep()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#done
  }

  async #keep(): Promise<void> {
    const { clock, hear } = this.#options
    let pauseMs = firstPauseMs
    for (let again = false; !this.#stopping.signal.aborted; again = true) {
      const heard = await this.#listen(() => {
        pauseMs = firstPauseMs
        // Whatever was said meanwhile was not heard.
        if (again) hear()
      })
      if (heard === 'silent') return
      await sleep(clock, pauseMs * (0.5 + clock.random()), this.#stopping.signal)
      pauseMs = Math.min(pauseMs * 2, longestPauseMs)
    }
  }

  /** Listens until the connection ends. `silent`: nothing comes through. */
  async #listen(ready: () => void): Promise<'ended' | 'silent'> {
    const client = this.#options.link.client()
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
      if (this.state === 'listening') this.state = 'connecting'
      // Not awaited: a server that is away would not say goodbye.
      client.end().catch(() => {})
    }
  }

  /** Listens, says something over another connection, and waits to hear it. */
  async #echo(client: Client, ended: Promise<'ended'>): Promise<'heard' | 'silent' | 'ended'> {
    const { link, channel, self, hear, clock } = this.#options
    const echo = `echo ${self}`
    const heard = new Promise<'heard'>((resolve) => {
      client.on('notification', ({ payload }) => {
        if (payload === echo) resolve('heard')
        else if (payload !== self && !payload?.startsWith('echo ')) hear()
      })
    })
    await client.query(`LISTEN "${channel}"`)
    await link.read('SELECT pg_notify($1, $2)', [channel, echo])
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
