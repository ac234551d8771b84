import { describe, expect, it } from 'vitest'
import { Again } from '../../src/pipeline/again.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

describe('what must succeed', () => {
  it('is tried until it does, told each time, with pauses that grow to a bound', async () => {
    const clock = fakeClock()
    const atMs: number[] = []
    const troubles: unknown[] = []
    const again = new Again(clock, (error) => troubles.push(error))
    const trying = again.until(() => {
      atMs.push(clock.mono())
      if (atMs.length < 12) throw new Error(`${atMs.length}`)
      return 'done'
    })
    await clock.advance(120_000)
    expect(await trying).toBe('done')
    expect(troubles).toHaveLength(11)
    const pauses = atMs.slice(1).map((ms, at) => ms - atMs[at]!)
    for (const [at, pause] of pauses.entries()) {
      const usual = Math.min(100 * 2 ** at, 5000)
      expect(pause).toBeGreaterThanOrEqual(usual * 0.5)
      expect(pause).toBeLessThanOrEqual(usual * 1.5)
    }
  })

  it('is left when it is none of our business any more', async () => {
    const clock = fakeClock()
    const leaving = new AbortController()
    let tries = 0
    const failures: unknown[] = []
    const trying = new Again(clock, () => {}).until(
      () => {
        tries += 1
        throw new Error('no')
      },
      leaving.signal,
      (error) => failures.push(error),
    )
    await clock.advance(10)
    leaving.abort()
    await clock.advance(60_000)
    expect(await trying).toBeUndefined()
    expect([tries, failures.length]).toEqual([1, 1])
  })
})
