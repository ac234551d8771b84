import type { Client } from 'pg'
import { sleep, type Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'

export interface ListenerOptions {
  clock: Clock
  /** Returns a separate connection, not connected yet. */
  createClient: () => Client
  channel: string
  /** The payload of our own notifications, which are ignored. */
  self: string
  /** Sends a notification to the channel, over another connection. */
  notify: (payload: string) => Promise<unknown>
  /** Called whenever it begins to listen: notifications sent before were missed. */
  onReady: () => void
  /** Called for each notification of another process. */
  onNotification: (payload: string) => void
}

const reconnectDelay = { firstMs: 100, maxMs: 10_000 }
/** How long the server may take to deliver the echo that the listener sends to itself. */
const echoMs = 3000

/**
 * Listens on a channel over its own connection, and reconnects when it is lost. A pooler in
 * transaction mode accepts LISTEN and delivers nothing: the listener therefore notifies itself over
 * another connection, and gives up when that does not arrive.
 */
export class Listener {
  /** The state in words, for health checks. */
  state = 'connecting'
  readonly #options: ListenerOptions
  readonly #stopping = new AbortController()
  readonly #done: Promise<void>

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#done = this.#listenUntilStopped()
  }

  /** Whether notifications arrive. */
  get isListening(): boolean {
    return this.state === 'listening'
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#done
  }

  async #listenUntilStopped(): Promise<void> {
    const { clock, onReady } = this.#options
    const backoff = new Backoff(clock, reconnectDelay)
    while (!this.#stopping.signal.aborted) {
      const end = await this.#listen(() => {
        backoff.reset()
        onReady()
      })
      if (end === 'silent') return
      await backoff.wait(this.#stopping.signal)
    }
  }

  /** Listens until the connection ends. `silent`: the server delivers no notifications. */
  async #listen(onReady: () => void): Promise<'ended' | 'silent'> {
    const client = this.#options.createClient()
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
      const answer = await this.#awaitEcho(client, ended)
      if (answer !== 'received') {
        if (answer === 'silent')
          this.state =
            'polling: notifications do not arrive, as behind a pooler in transaction mode'
        return answer
      }
      this.state = 'listening'
      onReady()
      // Listening must not keep the process alive.
      unref(client)
      return await ended
    } catch {
      return 'ended'
    } finally {
      over.abort()
      if (this.isListening) this.state = 'connecting'
      // Not awaited: an unreachable server would not answer.
      client.end().catch(() => {})
    }
  }

  /** Listens, notifies itself over another connection, and waits for that notification. */
  async #awaitEcho(
    client: Client,
    ended: Promise<'ended'>,
  ): Promise<'received' | 'silent' | 'ended'> {
    const { channel, self, notify, onNotification, clock } = this.#options
    const echo = `echo ${self}`
    const received = new Promise<'received'>((resolve) => {
      client.on('notification', ({ payload = '' }) => {
        if (payload === echo) resolve('received')
        else if (payload !== self && !payload.startsWith('echo ')) onNotification(payload)
      })
    })
    await client.query(`LISTEN "${channel}"`)
    await notify(echo)
    const timeout = new AbortController()
    const silent = sleep(clock, echoMs, timeout.signal).then(() => 'silent' as const)
    try {
      return await Promise.race([received, silent, ended])
    } finally {
      timeout.abort()
    }
  }
}

/** `pg` has the method, its types do not. */
function unref(client: Client): void {
  ;(client as unknown as { unref(): void }).unref()
}
