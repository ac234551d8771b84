/** Random numbers of a run. The seed determines all of them, so a run can be repeated. */
export interface Dice {
  /** In [0, 1). */
  next(): number
  /** In [low, high). */
  between(low: number, high: number): number
  /** An integer from low to high, both included. */
  whole(low: number, high: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** A key, with a probability proportional to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
  /** An independent generator: draws from one do not change the other. */
  fork(): Dice
}

/** A counter through a 32-bit mixer: equal seeds give equal streams. */
export function dice(seed: number): Dice {
  let counter = (seed ^ 0x5bd1e995) >>> 0
  const next = (): number => {
    counter = (counter + 0x9e3779b9) >>> 0
    let mixed = counter
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
  const whole = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  const weighted = <K extends string>(weights: Readonly<Record<K, number>>): K => {
    const keys = Object.keys(weights) as K[]
    let left = next() * keys.reduce((sum, key) => sum + weights[key], 0)
    return keys.find((key) => (left -= weights[key]) < 0) ?? keys.at(-1)!
  }
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    whole,
    chance: (probability) => next() < probability,
    pick: (from) => from[Math.floor(next() * from.length)]!,
    weighted,
    fork: () => dice(Math.floor(next() * 2 ** 32)),
  }
}
