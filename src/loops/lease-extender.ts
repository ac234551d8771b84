import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Message } from '../mailbox.ts'
import type { Heartbeat } from './heartbeat.ts'
import { isLost } from './settling.ts'

export interface LeaseExtenderOptions {
  clock: Clock
  /** At most one extension in this time, or in a third of what each lasts where that is shorter. A minute unless said. */
  intervalMs?: number
  /** How long each makes the lease last from then on. 300 unless said. */
  extensionSeconds?: number
  /** Hears of extensions that failed. They end nothing: the next beat after the interval tries again. */
  onError?: (error: unknown) => void
}

export interface Watcher {
  extended?: (seconds: number) => void
  /** The broker says that somebody else may have the message. */
  lost?: () => void
}

/**
 * Makes the lease of a message last while there are beats: proof of work, not of life. Work that hangs stops beating, its lease
 * lapses, and the message comes to somebody else. A lease is never made shorter.
 */
export class LeaseExtender {
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #extensionSeconds: number
  readonly #reportError: (error: unknown) => void
  readonly #attached = new Set<Message>()

  constructor({
    clock,
    intervalMs = 60_000,
    extensionSeconds = 300,
    onError = () => {},
  }: LeaseExtenderOptions) {
    this.#clock = clock
    // A lease that is shorter than the interval would lapse between two extensions, however often the work beats.
    this.#intervalMs = Math.min(intervalMs, (extensionSeconds * 1000) / 3)
    this.#extensionSeconds = extensionSeconds
    this.#reportError = onError
  }

  /** The first beat extends at once. Returns a function that ends it. A message cannot be attached twice. */
  attach(message: Message, heartbeat: Heartbeat, watcher: Watcher = {}): () => void {
    if (this.#attached.has(message))
      throw new RedriveError('INVALID_INPUT', `message ${message.id} is attached already`)
    this.#attached.add(message)
    let nextMs = -Infinity
    let busy = false
    const extend = async (): Promise<void> => {
      const nowMs = this.#clock.mono()
      if (busy || nowMs < nextMs) return
      nextMs = nowMs + this.#intervalMs
      busy = true
      try {
        await message.extend(this.#extensionSeconds)
        watcher.extended?.(this.#extensionSeconds)
      } catch (error) {
        if (isLost(error)) watcher.lost?.()
        else this.#reportError(error)
      } finally {
        busy = false
      }
    }
    const stop = heartbeat.observe(extend)
    return () => {
      stop()
      this.#attached.delete(message)
    }
  }
}
