import { describe, expect, it } from 'vitest'
import { Deadlines } from '../../src/clock/deadlines.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

/** Work that ends after `ms` with a result. */
function work<T>(clock: ReturnType<typeof fakeClock>, ms: number, result: T): Promise<T> {
  return new Promise((resolve) => void clock.timer(ms, () => resolve(result)))
}

describe('Deadlines', () => {
  it('gives the result of work that ends in time, and undefined for work that does not', async () => {
    const clock = fakeClock()
    const deadlines = new Deadlines(clock)
    const results: unknown[] = []
    for (const [ms, limitMs] of [
      [50, 100],
      [300, 200],
      [400, 500],
    ] as const)
      void deadlines.within(work(clock, ms, ms), limitMs).then((result) => results.push(result))
    await clock.advance(199)
    expect(results).toEqual([50])
    await clock.advance(1)
    expect(results).toEqual([50, undefined])
    await clock.advance(200)
    expect(results).toEqual([50, undefined, 400])
  })

  it('uses one timer, and none when no work is left', async () => {
    const clock = fakeClock()
    const deadlines = new Deadlines(clock)
    const ends: (() => void)[] = []
    const ended = [300, 100, 200].map((limitMs) =>
      deadlines.within(new Promise<void>((resolve) => ends.push(resolve)), limitMs),
    )
    expect(clock.pending()).toBe(1)
    for (const end of ends) end()
    await Promise.all(ended)
    expect(clock.pending()).toBe(0)
  })

  it('counts a new limit that is earlier than the others', async () => {
    const clock = fakeClock()
    const deadlines = new Deadlines(clock)
    const never = new Promise<never>(() => {})
    let expired = 0
    void deadlines.within(never, 1000).then(() => expired++)
    await clock.advance(100)
    void deadlines.within(never, 50).then(() => expired++)
    await clock.advance(50)
    expect(expired).toBe(1)
    await clock.advance(850)
    expect(expired).toBe(2)
    expect(clock.pending()).toBe(0)
  })
})
