import { randomFillSync } from 'node:crypto'

/**
 * Time and randomness. All other modules get both from here, so that tests can control time and a
 * simulation can replay a run from its seed.
 */
export interface Clock {
  /** Wall time in milliseconds since 1970. It may jump; use it for records and due times. */
  now(): number
  /** Monotonic milliseconds. It never jumps; use it for durations. */
  mono(): number
  /** A number in [0, 1). */
  random(): number
  /** A new UUIDv7. Ids of one clock sort in the order of their creation. */
  id(): string
  /**
   * Calls `fire` once after `ms`, without an upper limit. Returns a function that cancels the
   * timer. With `background`, the timer does not keep the process alive.
   */
  timer(ms: number, fire: () => void, options?: { background?: boolean }): () => void
}

/** setTimeout is limited to 31 bits; a longer delay would fire immediately. */
const longestTimeoutMs = 2 ** 31 - 1

/** Splits a long delay into steps that setTimeout supports. */
function systemTimer(
  ms: number,
  fire: () => void,
  { background = false }: { background?: boolean } = {},
): () => void {
  let left = Math.max(0, ms)
  let handle: NodeJS.Timeout
  const step = (): void => {
    const slice = Math.min(left, longestTimeoutMs)
    left -= slice
    handle = setTimeout(() => (left > 0 ? step() : fire()), slice)
    if (background) handle.unref()
  }
  step()
  return () => clearTimeout(handle)
}

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * Creates a generator of ascending UUIDv7s: 48 bits of milliseconds, then a 74-bit number that
 * starts at random in each millisecond and counts up. When the wall clock steps back, the last
 * millisecond is reused.
 */
export function uuidMaker(now: () => number, fill: (bytes: Uint8Array) => void): () => string {
  let lastMs = -1
  let time = ''
  let high = 0 // 12 bits, the rand_a field
  let middle = 0 // 30 bits, the front of rand_b
  const pool = new Uint8Array(1024)
  let used = pool.length
  const take = (count: number): number => {
    if (used + count > pool.length) {
      fill(pool)
      used = 0
    }
    used += count
    return used - count
  }
  const at = (ms: number): void => {
    const digits = ms.toString(16).padStart(12, '0')
    lastMs = ms
    time = `${digits.slice(0, 8)}-${digits.slice(8)}`
  }
  return () => {
    const ms = Math.floor(now())
    if (ms > lastMs) {
      at(ms)
      const start = take(5)
      high = ((pool[start]! & 0x07) << 8) | pool[start + 1]!
      middle = ((pool[start + 2]! & 0x1f) << 16) | (pool[start + 3]! << 8) | pool[start + 4]!
    } else if (++middle > 0x3fffffff) {
      middle = 0
      if (++high > 0xfff) {
        high = 0
        at(lastMs + 1)
      }
    }
    const tail = take(4)
    const front = (0x7000 | high).toString(16)
    const variant = (0x8000 | (middle >>> 16)).toString(16)
    const rest = (middle & 0xffff).toString(16).padStart(4, '0')
    return `${time}-${front}-${variant}-${rest}${hex[pool[tail]!]}${hex[pool[tail + 1]!]}${hex[pool[tail + 2]!]}${hex[pool[tail + 3]!]}`
  }
}

/** The real clock. The only place that reads time or randomness. */
export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  random: () => Math.random(),
  id: uuidMaker(
    () => Date.now(),
    (bytes) => void randomFillSync(bytes),
  ),
  timer: systemTimer,
}

/** Resolves after one turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

/** Resolves after `ms` on this clock, or as soon as the signal aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = (): void => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.timer(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}
