import type { Clock } from '../../clock/clock.ts'
import { Batcher } from '../../backends/batcher.ts'
import { listen, type Listener } from '../../backends/postgres/listener.ts'
import type { Link } from './link.ts'
import { Watchers } from '../../backends/watchers.ts'

/** Wakes watchers, here and in other processes. */
export interface Waking {
  readonly channel: string
  watch(listener: () => void): () => void
  /** Letters may have become free: tells watchers here at once, and the others by a notice. */
  wake(): void
  /** How this store hears of others, in words. */
  state(): string
  stop(): Promise<void>
}

export function waking(link: Link, clock: Clock): Waking {
  return new ChannelWaking(link, clock)
}

class ChannelWaking implements Waking {
  readonly channel: string
  readonly #link: Link
  readonly #clock: Clock
  readonly #self: string
  readonly #watchers = new Watchers()
  readonly #notices: Batcher<null, null>
  #listener: Listener | undefined

  constructor(link: Link, clock: Clock) {
    this.#link = link
    this.#clock = clock
    this.#self = clock.id()
    this.channel = `redrive_${link.schema}`
    // One at a time: commits with a notice queue up on the server, so that many make one. It is a hint, and may get lost.
    this.#notices = new Batcher({ maxInFlight: 1, maxBatchCost: 1_000_000 }, async (asks) => {
      await this.#say(this.#self).catch(() => {})
      return asks.map(() => ({ value: null }))
    })
  }

  watch(listener: () => void): () => void {
    const leave = this.#watchers.add(listener)
    this.#listener ??= listen({
      clock: this.#clock,
      client: () => this.#link.client(),
      channel: this.channel,
      self: this.#self,
      say: (what) => this.#say(what),
      ready: (again) => {
        if (again) this.#watchers.notify()
      },
      hear: () => this.#watchers.notify(),
    })
    return leave
  }

  #say(what: string): Promise<unknown> {
    return this.#link.read('SELECT pg_notify($1, $2)', [this.channel, what])
  }

  wake(): void {
    this.#watchers.notify()
    void this.#notices.call(null)
  }

  state(): string {
    return this.#listener?.state ?? 'nobody watches'
  }

  async stop(): Promise<void> {
    this.#watchers.clear()
    await this.#listener?.stop()
    await this.#notices.idle()
  }
}
