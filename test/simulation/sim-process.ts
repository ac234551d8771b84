import { uuidMaker, type Clock } from '../../src/clock/clock.ts'
import type { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Dice } from './dice.ts'
import type { Caller } from './sim-store.ts'
import type { Scheduler } from './scheduler.ts'

interface SimProcessOptions {
  name: string
  handles: readonly string[]
  scheduler: Scheduler
  dice: Dice
  /** Clock skew. */
  offsetMs: number
  onCrash: (process: SimProcess) => void
}

/** One operating system process with its own clock. A crash loses everything in it. */
export class SimProcess implements Caller {
  readonly name: string
  readonly clock: Clock
  /** Queues with handlers. */
  readonly handles: readonly string[]
  alive = true
  pausedUntilMs = 0
  settling = 0
  offsetMs: number
  /** Set once the queue is open. */
  dlq: DeadLetterQueue | undefined
  /** The error of the guarded function when a client calls it. */
  firstCallError: Error = new Error('the first call fails')
  /** The guarded function. Inside a handler, it fails without creating a letter. */
  guarded: ((input: unknown) => Promise<unknown>) | undefined
  /** Desired state: true after start, false after stop. */
  started = false
  /** Number of stop requests. */
  stops = 0
  leaving = false
  readonly #scheduler: Scheduler
  readonly #options: SimProcessOptions

  constructor(options: SimProcessOptions) {
    const { scheduler, dice } = options
    this.name = options.name
    this.handles = options.handles
    this.offsetMs = options.offsetMs
    this.#scheduler = scheduler
    this.#options = options
    const bytes = dice.fork()
    const now = (): number => scheduler.wallMs + this.offsetMs
    const fill = (pool: Uint8Array): void => {
      for (let at = 0; at < pool.length; at++) pool[at] = bytes.whole(0, 255)
    }
    this.clock = {
      now,
      mono: () => scheduler.nowMs,
      random: () => dice.next(),
      id: uuidMaker(now, fill),
      timer: (ms, fire) => scheduler.after(Math.max(0, ms), fire, this),
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#scheduler.after(ms, resolve, this))
  }

  /** Resolves when the signal aborts. */
  waitForAbort(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** Delays its timers and pending answers. */
  pause(ms: number): void {
    if (!this.alive) return
    this.#scheduler.log(`${this.name} pauses for ${ms} ms`)
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.#scheduler.nowMs + ms)
  }

  /** Steps its wall clock. */
  step(ms: number): void {
    this.#scheduler.log(`${this.name} steps its clock by ${ms} ms`)
    this.offsetMs += ms
  }

  crash(why: string): void {
    if (!this.alive) return
    this.alive = false
    this.#scheduler.log(`${this.name} crashes (${why})`)
    this.#options.onCrash(this)
  }
}
