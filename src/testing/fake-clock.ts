import { uuidMaker, type Clock } from '../clock/clock.ts'

/**
 * A clock that a test controls. Clocks with the same start and seed give the same random numbers
 * and ids.
 */
export interface FakeClock extends Clock {
  /**
   * Advances the time: due timers fire in order, each at its own time, and their promise callbacks
   * run before the next timer.
   */
  advance(ms: number): Promise<void>
  /** Makes the wall clock jump. Monotonic time and timers are not affected. */
  set(ms: number): void
  /** Number of pending timers that would keep a process alive. */
  pending(): number
}

interface Timer {
  at: number
  fire: () => void
  background: boolean
}

/** Number of event loop turns before `advance` fires the next timer. */
const settlingTurns = 4

export function fakeClock(startMs: number = Date.UTC(2026, 0, 1), seed = 1): FakeClock {
  return new VirtualClock(startMs, seed)
}

class VirtualClock implements FakeClock {
  readonly random: () => number
  readonly id: () => string
  #wall: number
  #mono = 0
  /** Ordered by due time; timers with the same due time in the order they were set. */
  readonly #timers: Timer[] = []

  constructor(startMs: number, seed: number) {
    this.#wall = startMs
    this.random = mulberry32(seed)
    // Ids use their own random stream, so that creating an id does not change the next result of
    // `random`.
    const bytes = mulberry32(~seed)
    const fill = (pool: Uint8Array): void => {
      for (let at = 0; at < pool.length; at++) pool[at] = bytes() * 256
    }
    this.id = uuidMaker(() => this.#wall, fill)
  }

  now(): number {
    return this.#wall
  }

  mono(): number {
    return this.#mono
  }

  /** Timers have a resolution of 1 ms, as in Node. */
  timer(ms: number, fire: () => void, { background = false } = {}): () => void {
    const timer: Timer = { at: this.#mono + Math.max(0, Math.ceil(ms)), fire, background }
    const later = this.#timers.findIndex((other) => other.at > timer.at)
    this.#timers.splice(later === -1 ? this.#timers.length : later, 0, timer)
    return () => {
      const at = this.#timers.indexOf(timer)
      if (at !== -1) this.#timers.splice(at, 1)
    }
  }

  async advance(ms: number): Promise<void> {
    const end = this.#mono + ms
    await settle()
    for (let next = this.#timers[0]; next && next.at <= end; next = this.#timers[0]) {
      this.#timers.shift()
      this.#moveTo(next.at)
      next.fire()
      await settle()
    }
    this.#moveTo(end)
    await settle()
  }

  set(ms: number): void {
    this.#wall = ms
  }

  pending(): number {
    return this.#timers.filter(({ background }) => !background).length
  }

  #moveTo(mono: number): void {
    this.#wall += mono - this.#mono
    this.#mono = mono
  }
}

/**
 * Waits for the promise callbacks of a timer, which often set the next timer only after a chain of
 * callbacks: time must not advance before that. One turn of the event loop runs every promise
 * callback that is ready; a few turns cover code that itself waits for a turn (streams, worker
 * messages). setImmediate waits for a real turn.
 */
async function settle(): Promise<void> {
  for (let turn = 0; turn < settlingTurns; turn++)
    await new Promise<void>((resolve) => void setImmediate(resolve))
}

/** Small, fast and good enough for tests: 32 bits of state, a period of 2^32. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
