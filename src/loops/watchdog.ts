import type { Clock } from '../clock/clock.ts'
import type { Runnable } from './runnable.ts'

export interface WatchdogOptions {
  loops: readonly Runnable[]
  clock: Clock
  /** A running loop that has not beaten for longer than this is stalled. */
  thresholdMs: number
  /** A third of the threshold, a minute at most, unless said. */
  intervalMs?: number
  /** Told once for each stall: a beat ends it. */
  stalled: (loop: Runnable, elapsedMs: number) => void
}

/**
 * Looks from time to time whether loops still beat. It runs on the same event loop as they do: it sees work that hangs, and not work that
 * blocks the process. For that, let something outside ask the health port.
 */
export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #stalled = new Set<Runnable>()
  #cancel: (() => void) | undefined

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  /** Safe twice. */
  start(): void {
    if (this.#cancel) return
    const { clock, thresholdMs, intervalMs = Math.min(60_000, thresholdMs / 3) } = this.#options
    const later = (): void => {
      this.#cancel = clock.timer(intervalMs, () => {
        later()
        this.#look()
      })
    }
    later()
  }

  /** Safe twice. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#stalled.clear()
  }

  #look(): void {
    for (const loop of this.#options.loops) {
      const elapsedMs = loop.heartbeat.elapsedMs()
      if (!loop.running || elapsedMs <= this.#options.thresholdMs) this.#stalled.delete(loop)
      else if (!this.#stalled.has(loop)) {
        this.#stalled.add(loop)
        this.#options.stalled(loop, elapsedMs)
      }
    }
  }
}
