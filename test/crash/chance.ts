/** Seeded random numbers in [0, 1) (mulberry32): the same seed makes the same choices. */
export interface Chance {
  next(): number
  between(low: number, high: number): number
  /** Returns undefined for an empty list. */
  pick<T>(from: readonly [T, ...T[]]): T
  pick<T>(from: readonly T[]): T | undefined
}

export function chance(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    pick: <T>(from: readonly T[]) => from[Math.floor(next() * from.length)]!,
  }
}

/** Derives the seed of a process from the seed of the run and the name of the process. */
export function seedFor(seed: number, name: string): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0
  return hash
}
