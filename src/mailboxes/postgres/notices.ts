import type { Clock } from '../../clock.ts'
import { gatherer, type Gatherer } from '../../kept/gather.ts'
import { listen, type Listener } from '../../postgres/listener.ts'
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

type Options = Parameters<typeof notices>[0]

class ChannelNotices implements Notices {
  readonly #options: Options
  readonly #channel: string
  /** What all notices of this mailbox begin with: those of others come by the same channel. */
  readonly #about: string
  /** What is put into our own notices, which we need not hear. */
  readonly #self: string
  readonly #telling: Gatherer<null, null>
  #listener: Listener | undefined

  constructor(options: Options) {
    this.#options = options
    this.#channel = `redrive_mail_${options.link.schema}`
    this.#about = `${options.mailbox} `
    this.#self = this.#about + options.clock.id()
    // One at a time: commits with a notice queue up on the server, so that many make one.
    this.#telling = gatherer({ maxBatches: 1, maxWeight: 1_000_000 }, async (asks) => {
      await this.#say(this.#self).catch(() => {})
      return asks.map(() => ({ value: null }))
    })
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
    void this.#telling.call(null)
  }

  async stop(): Promise<void> {
    await this.#listener?.stop()
    await this.#telling.idle()
  }

  /** A notice need not survive a crash, and so does not wait for the disk. */
  #say(what: string): Promise<unknown> {
    return this.#options.link.do([
      ['SET LOCAL synchronous_commit = off'],
      ['SELECT pg_notify($1, $2)', [this.#channel, what]],
    ])
  }
}
