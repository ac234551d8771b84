import { describe, expect, it } from 'vitest'
import type { ErrorCategory } from '../../src/letter/letter.ts'
import {
  adaptLimit,
  afterOutage,
  roomFor,
  unlimited,
  type ConcurrencyState,
  type RunEnd,
} from '../../src/policy/concurrency.ts'

const enough = 10
const success: RunEnd = { type: 'succeeded' }
const failure = (startedMs: number, atMs: number, category: ErrorCategory = 'timeout'): RunEnd => ({
  type: 'failed',
  category,
  startedMs,
  atMs,
})

describe('concurrency', () => {
  it('has no limit as long as nothing fails', () => {
    expect(adaptLimit(unlimited, success, 10, enough)).toBe(unlimited)
    expect(roomFor(unlimited, 1000)).toBe(Infinity)
  })

  it('halves the limit when a run fails, once for a wave of failures', () => {
    const cut = adaptLimit(unlimited, failure(0, 5), 8, enough)
    expect(cut.limit).toBe(4)
    expect(adaptLimit(cut, failure(0, 6), 7, enough)).toBe(cut)
    expect(adaptLimit(cut, failure(5, 9), 4, enough)).toBe(cut)
    expect(adaptLimit(cut, failure(7, 9), 4, enough).limit).toBe(2)
  })

  it('allows at least one run', () => {
    const cut = adaptLimit(unlimited, failure(0, 5), 1, enough)
    expect(roomFor(cut, 0)).toBe(1)
    expect(roomFor(cut, 1)).toBe(0)
  })

  it('is not lowered by failures that the letter causes', () => {
    for (const category of ['validation', 'permission', 'permanent'] as const)
      expect(adaptLimit(unlimited, failure(0, 5, category), 8, enough)).toBe(unlimited)
  })

  it('grows by about one for each round of successes, until there is no limit', () => {
    let state: ConcurrencyState = { limit: 2, cutAtMs: 0 }
    state = adaptLimit(adaptLimit(state, success, 2, enough), success, 2, enough)
    expect(state.limit).toBeCloseTo(2.9)
    let runs = 0
    for (; state.limit !== Infinity; runs++) state = adaptLimit(state, success, 2, enough)
    expect(runs).toBeLessThan(60)
  })

  it('respects min and max', () => {
    const settings = { max: 4, min: 2 }
    expect(roomFor(unlimited, 1, settings)).toBe(3)
    const cut = adaptLimit(
      adaptLimit(unlimited, failure(0, 1), 4, enough, settings),
      failure(2, 3),
      2,
      enough,
      settings,
    )
    expect(cut.limit).toBe(2)
    let state = cut
    for (let run = 0; run < 50; run++) state = adaptLimit(state, success, 4, enough, settings)
    expect(roomFor(state, 0, settings)).toBe(4)
  })
})

describe('concurrency after an outage', () => {
  /** The limit after each of these ends of runs, starting when the breaker closes at 100 ms. */
  const limits = (
    ends: readonly RunEnd[],
    settings: Parameters<typeof adaptLimit>[4],
    most = enough,
  ): number[] => {
    let state = afterOutage(100, settings)
    const seen = [roomFor(state, 0, settings)]
    for (const end of ends) {
      state = adaptLimit(state, end, seen.at(-1)!, most, settings)
      seen.push(roomFor(state, 0, settings))
    }
    return seen
  }
  const successes = (count: number): RunEnd[] => Array.from({ length: count }, () => success)

  it.each<[string, number[], RunEnd[], Parameters<typeof adaptLimit>[4]]>([
    ['starts with one run and doubles', [1, 2, 3, 4, 5, 6, 7, 8, 9, Infinity], successes(9), {}],
    ['does so without adaptive limits', [1, 2, 3, 4, 5, 6, 7, 8, 9, Infinity], successes(9), false],
    ['grows up to max', [1, 2, 3, 4, 4, 4], successes(5), { max: 4 }],
    ['starts with min', [3, 4, 5], successes(2), { min: 3 }],
    [
      'grows as usual after a failure',
      [1, 2, 3, 4, 2, 2, 2, 3],
      [...successes(3), failure(150, 200), ...successes(3)],
      {},
    ],
    [
      'leaves failures to the breaker without adaptive limits',
      [1, 2, 2, 3],
      [success, failure(150, 200), success],
      false,
    ],
    [
      'ignores failures of runs that began during the outage',
      [1, 2, 2, 3],
      [success, failure(50, 200), success],
      {},
    ],
    [
      'ignores failures that the letter causes',
      [1, 2, 2, 3],
      [success, failure(150, 200, 'validation'), success],
      {},
    ],
  ])('%s', (_rule, expected, ends, settings) => {
    expect(limits(ends, settings)).toEqual(expected)
  })

  it('lets twice as many run after each round', () => {
    const rounds = [1, 2, 4, 8, 16, 32, 64]
    for (const [index, round] of rounds.entries()) {
      const before = rounds.slice(0, index).reduce((sum, count) => sum + count, 0)
      expect(limits(successes(before), {}, 1000).at(-1)).toBe(round)
    }
  })

  it('has no limit in the end, and none that is left over without adaptive limits', () => {
    let state = afterOutage(100)
    for (const end of successes(9)) state = adaptLimit(state, end, 1, enough)
    expect(state).toEqual({ limit: Infinity, cutAtMs: 100 })
    expect(roomFor({ limit: 2, cutAtMs: 0 }, 0, false)).toBe(Infinity)
  })
})
