import { describe, expect, it } from 'vitest'
import type { ErrorCategory } from '../../src/letter/letter.ts'
import {
  adaptLimit,
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
