import type { Clock } from '../../clock/clock.ts'
import type { PostgresConnection } from './connection.ts'
import { Listener } from './listener.ts'

export interface NotificationsOptions {
  connection: PostgresConnection
  clock: Clock
  channel: string
  /** The start of each payload, for users that share a channel. Default: empty. */
  topic?: string
  /**
   * Called for a notification of another process, and when listening begins, since earlier ones
   * were missed.
   */
  onNotification: () => void
}

/** A notification need not survive a crash, so its commit does not wait for the disk. */
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

/**
 * The least time between two notifications; one sent later stands for all in between. Commits with
 * a notification queue up on the server and wake every listener.
 */
const pauseMs = 5

/**
 * Notifies other processes that something may have become available, and receives their
 * notifications. Both may get lost.
 */
export class Notifications {
  readonly channel: string
  readonly #options: NotificationsOptions
  readonly #topic: string
  /** The payload of our own notifications. */
  readonly #self: string
  #sending: Promise<unknown> | undefined
  #lastMs = -Infinity
  #cancel: (() => void) | undefined
  #listener: Listener | undefined

  constructor(options: NotificationsOptions) {
    const { topic = '' } = options
    this.#options = options
    this.channel = options.channel
    this.#topic = topic
    this.#self = topic + options.clock.id()
  }

  /** The state in words, for health checks. */
  get state(): string {
    return this.#listener?.state ?? 'nobody waits'
  }

  /** Whether notifications of others arrive. */
  get isListening(): boolean {
    return this.#listener?.isListening === true
  }

  /** Begins to listen. May be called twice. */
  listen(): void {
    const { connection, clock, onNotification } = this.#options
    this.#listener ??= new Listener({
      clock,
      createClient: () => connection.createClient(),
      channel: this.channel,
      self: this.#self,
      notify: (payload) => this.#send(payload),
      onReady: onNotification,
      onNotification: (payload) => {
        if (payload.startsWith(this.#topic)) onNotification()
      },
    })
  }

  /** Notifies others, in the background. */
  notify(): void {
    if (this.#cancel) return
    const { clock } = this.#options
    const leftMs = this.#lastMs + pauseMs - clock.mono()
    if (leftMs <= 0 && !this.#sending) this.#notifyNow()
    else this.#cancel = clock.timer(Math.max(1, leftMs), () => this.#notifyNow())
  }

  #notifyNow(): void {
    this.#cancel = undefined
    this.#lastMs = this.#options.clock.mono()
    const sending = this.#send(this.#self)
      .catch(() => {})
      .finally(() => {
        if (this.#sending === sending) this.#sending = undefined
      })
    this.#sending = sending
  }

  #send(payload: string): Promise<unknown> {
    return this.#options.connection.read(notify, [this.channel, payload])
  }

  /** Stops listening, and waits until pending notifications are sent. */
  async stop(): Promise<void> {
    await this.#listener?.stop()
    if (this.#cancel) {
      this.#cancel()
      this.#notifyNow()
    }
    await this.#sending
  }
}
