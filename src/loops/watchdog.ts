import type { Clock } from '../clock/clock.ts'
import type { Runnable } from './runnable.ts'

export interface WatchdogOptions {
  loops: readonly Runnable[]
  clock: Clock
  /** A running loop that has not beaten for longer than this is stalled. */
  thresholdMs: number
  /** Default: a third of the threshold, at most a minute. */
  intervalMs?: number
  /** Called once per stall: a beat ends it. */
  stalled: (loop: Runnable, elapsedMs: number) => void
}

/**
 * Checks periodically whether loops still beat. It runs on the same event loop: it detects work
 * that hangs, but not work that blocks the process. For that, poll the health port from outside.
 */
export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #stalled = new Set<Runnable>()
  #cancel: (() => void) | undefined

  constructor(options: WatchdogOptions) {
    this.#options = options
  }

  /** May be called twice. */
  start(): void {
    if (this.#cancel) return
    const { clock, thresholdMs, intervalMs = Math.min(60_000, thresholdMs / 3) } = this.#options
    const schedule = (): void => {
      this.#cancel = clock.timer(intervalMs, () => {
        schedule()
        this.#check()
      })
    }
    schedule()
  }

  /** May be called twice. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#stalled.clear()
  }

  #check(): void {
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
