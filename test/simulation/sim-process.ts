import { uuidMaker, type Clock } from '../../src/clock/clock.ts'
import type { DeadLetterQueue } from '../../src/queue.ts'
import type { Dice } from './dice.ts'
import type { Caller } from './sim-store.ts'
import type { World } from './world.ts'

interface SimProcessOptions {
  name: string
  handles: readonly string[]
  world: World
  dice: Dice
  /** How far its wall clock is off. */
  offsetMs: number
  onCrash: (process: SimProcess) => void
}

/** One operating system process: a clock of its own, and everything in it is gone when it crashes. */
export class SimProcess implements Caller {
  readonly name: string
  readonly clock: Clock
  /** Queues that it has handlers for. */
  readonly handles: readonly string[]
  alive = true
  pausedUntilMs = 0
  settling = 0
  offsetMs: number
  /** Set once it is open. */
  dlq: DeadLetterQueue | undefined
  /** What the guarded function of this process fails with when it is called at the door. */
  doorError: Error = new Error('fails at the door')
  /** Called inside a handler, it fails without making a letter. */
  guarded: ((input: unknown) => Promise<unknown>) | undefined
  /** Asked to run and not to stop since. */
  started = false
  /** How often it was asked to stop. */
  stops = 0
  leaving = false
  readonly #world: World
  readonly #options: SimProcessOptions

  constructor(options: SimProcessOptions) {
    const { world, dice } = options
    this.name = options.name
    this.handles = options.handles
    this.offsetMs = options.offsetMs
    this.#world = world
    this.#options = options
    const bytes = dice.fork()
    const now = (): number => world.wallMs + this.offsetMs
    const fill = (pool: Uint8Array): void => {
      for (let at = 0; at < pool.length; at++) pool[at] = bytes.whole(0, 255)
    }
    this.clock = {
      now,
      mono: () => world.nowMs,
      random: () => dice.next(),
      id: uuidMaker(now, fill),
      timer: (ms, fire) => world.after(Math.max(0, ms), fire, this),
    }
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.after(ms, resolve, this))
  }

  /** Waits for the signal. */
  aborted(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** Withholds its timers and the answers it waits for. */
  pause(ms: number): void {
    if (!this.alive) return
    this.#world.log(`${this.name} stands still for ${ms} ms`)
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.#world.nowMs + ms)
  }

  /** Its wall clock jumps. */
  step(ms: number): void {
    this.#world.log(`${this.name} steps its clock by ${ms} ms`)
    this.offsetMs += ms
  }

  crash(why: string): void {
    if (!this.alive) return
    this.alive = false
    this.#world.log(`${this.name} crashes (${why})`)
    this.#options.onCrash(this)
  }
}
