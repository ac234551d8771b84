import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { availableRuns, newBucket, refillMs, shareOf, spend } from '../../src/policy/budget.ts'

describe('budget', () => {
  it('fills at its rate, up to a burst', () => {
    const budget = { perSecond: 10, burst: 5 }
    const fresh = newBucket(0)
    expect(availableRuns(fresh, budget, 0)).toBe(1)
    expect(availableRuns(fresh, budget, 200)).toBe(3)
    expect(availableRuns(fresh, budget, 60_000)).toBe(5)
  })

  it('has a default burst of one second, and at least one run', () => {
    expect(availableRuns(newBucket(0), { perSecond: 20 }, 60_000)).toBe(20)
    expect(availableRuns(newBucket(0), { perSecond: 0.1 }, 60_000)).toBe(1)
  })

  it('computes the time of the next refill', () => {
    const budget = { perSecond: 0.5 }
    const spent = spend(newBucket(0), budget, 0)
    expect(availableRuns(spent, budget, 0)).toBe(0)
    expect(refillMs(spent, budget, 0)).toBe(2000)
    expect(availableRuns(spent, budget, refillMs(spent, budget, 0))).toBe(1)
  })

  it('has a run available after the computed time', () => {
    const rates = fc.double({ min: 0.01, max: 5000, noNaN: true })
    fc.assert(
      fc.property(rates, fc.integer({ min: 0, max: 1e9 }), (perSecond, startMs) => {
        const budget = { perSecond }
        const spent = spend(newBucket(startMs), budget, startMs)
        const laterMs = startMs + refillMs(spent, budget, startMs)
        expect(availableRuns(spent, budget, laterMs)).toBeGreaterThanOrEqual(1)
      }),
    )
  })

  it('never allows more runs in any period than the rate and one burst', () => {
    const steps = fc.array(fc.nat(3000), { maxLength: 100 })
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 20 }),
        (passes, perSecond, burst) => {
          const budget = { perSecond, burst }
          let [bucket, nowMs] = [newBucket(0), 0]
          const runs: number[] = []
          for (const passMs of passes) {
            nowMs += passMs
            for (let left = availableRuns(bucket, budget, nowMs); left > 0; left--) {
              bucket = spend(bucket, budget, nowMs)
              runs.push(nowMs)
            }
          }
          for (const [first, fromMs] of runs.entries())
            for (const [last, toMs] of runs.entries())
              if (last >= first)
                expect(last - first + 1).toBeLessThanOrEqual(
                  burst + ((toMs - fromMs) * perSecond) / 1000 + 1e-6,
                )
        },
      ),
    )
  })

  it('is divided evenly among workers', () => {
    const budget = { perSecond: 10, burst: 8 }
    expect(shareOf(budget, 1)).toBe(budget)
    expect(shareOf(budget, 4)).toEqual({ perSecond: 2.5, burst: 2 })
    expect(shareOf(budget, 100)).toEqual({ perSecond: 0.1, burst: 1 })
  })
})
