import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { Message } from '../mailbox.ts'
import type { Heartbeat } from './heartbeat.ts'
import { isLost } from './settling.ts'

export interface LeaseExtenderOptions {
  clock: Clock
  /**
   * At most one extension per interval, or per third of the extension if that is shorter. Default:
   * 60,000.
   */
  intervalMs?: number
  /** The length of the lease after each extension. Default: 300. */
  extensionSeconds?: number
  /** Called when an extension failed. The next beat after the interval tries again. */
  onError?: (error: unknown) => void
}

export interface LeaseListener {
  extended?: (seconds: number) => void
  /** The broker reports that another consumer may have the message. */
  lost?: () => void
}

/**
 * Extends the lease of a message while there are beats: proof of work, not of life. Work that hangs
 * stops beating, its lease expires, and the message is delivered to another consumer. A lease is
 * never shortened.
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
    // A lease shorter than the interval would expire between two extensions, however often the work
    // beats.
    this.#intervalMs = Math.min(intervalMs, (extensionSeconds * 1000) / 3)
    this.#extensionSeconds = extensionSeconds
    this.#reportError = onError
  }

  /**
   * Starts extending; the first beat extends at once. Returns a function that ends it. A message
   * cannot be attached twice.
   */
  attach(message: Message, heartbeat: Heartbeat, watcher: LeaseListener = {}): () => void {
    if (this.#attached.has(message))
      throw new RedriveError('INVALID_INPUT', `message ${message.id} is already attached`)
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
