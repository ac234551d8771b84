import type { Clock } from '../../clock/clock.ts'
import { listen, type Listener } from '../../backends/postgres/listener.ts'
import type { Link } from './link.ts'

/** Tells others that messages may have become visible, and hears it from them. Both are hints, and may get lost. */
export interface Notices {
  /** How it stands, in words. */
  readonly state: string
  /** Whether others are heard at all. */
  readonly listening: boolean
  /** Begins to listen. Safe twice. */
  listen(): void
  tell(): void
  stop(): Promise<void>
}

export function notices(options: {
  link: Link
  clock: Clock
  mailbox: number
  hear: () => void
}): Notices {
  return new ChannelNotices(options)
}

/** The setting is for its transaction only. */
const notify = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`

/** Commits with a notice queue up on the server, and wake everybody: after one, the next waits so long and stands for all between. */
const pauseMs = 5

type Options = Parameters<typeof notices>[0]

class ChannelNotices implements Notices {
  readonly #options: Options
  readonly #channel: string
  /** What all notices of this mailbox begin with: those of others come by the same channel. */
  readonly #about: string
  /** What is put into our own notices, which we need not hear. */
  readonly #self: string
  #saying: Promise<unknown> | undefined
  /** When the last notice was said, and the end of the pause after which the next one is. */
  #lastMs = -Infinity
  #cancel: (() => void) | undefined
  #listener: Listener | undefined

  constructor(options: Options) {
    this.#options = options
    this.#channel = `redrive_mail_${options.link.schema}`
    this.#about = `${options.mailbox} `
    this.#self = this.#about + options.clock.id()
  }

  get state(): string {
    return this.#listener?.state ?? 'nobody waits'
  }

  get listening(): boolean {
    return this.#listener?.listening === true
  }

  listen(): void {
    const { link, clock, hear } = this.#options
    this.#listener ??= listen({
      clock,
      client: () => link.client(),
      channel: this.#channel,
      self: this.#self,
      say: (what) => this.#say(what),
      ready: hear,
      hear: (notice) => {
        if (notice.startsWith(this.#about)) hear()
      },
    })
  }

  tell(): void {
    if (this.#cancel) return
    const { clock } = this.#options
    const leftMs = this.#lastMs + pauseMs - clock.mono()
    if (leftMs <= 0 && !this.#saying) this.#tellNow()
    else this.#cancel = clock.timer(Math.max(1, leftMs), () => this.#tellNow())
  }

  #tellNow(): void {
    this.#cancel = undefined
    this.#lastMs = this.#options.clock.mono()
    const saying = this.#say(this.#self)
      .catch(() => {})
      .finally(() => {
        if (this.#saying === saying) this.#saying = undefined
      })
    this.#saying = saying
  }

  async stop(): Promise<void> {
    await this.#listener?.stop()
    if (this.#cancel) {
      this.#cancel()
      this.#tellNow()
    }
    await this.#saying
  }

  /** A notice need not survive a crash, and so does not wait for the disk. */
  #say(what: string): Promise<unknown> {
    return this.#options.link.do([[notify, [this.#channel, what]]])
  }
}
