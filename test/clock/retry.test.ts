import { describe, expect, it } from 'vitest'
import { Backoff, retry } from '../../src/clock/retry.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** The random delay of a backoff lies between half of this bound and the whole. */
function expectDelays(delays: readonly number[], bounds: readonly number[]): void {
  expect(delays).toHaveLength(bounds.length)
  for (const [at, delay] of delays.entries()) {
    expect(delay).toBeGreaterThanOrEqual(bounds[at]! / 2)
    expect(delay).toBeLessThanOrEqual(bounds[at]!)
  }
}

describe('Backoff', () => {
  it('doubles its delays up to the maximum', () => {
    const backoff = new Backoff(fakeClock(), { firstMs: 100, maxMs: 1000 })
    const delays = Array.from({ length: 6 }, () => backoff.nextMs())
    expectDelays(delays, [100, 200, 400, 800, 1000, 1000])
  })

  it('grows by its factor', () => {
    const backoff = new Backoff(fakeClock(), { firstMs: 100, maxMs: 10_000, factor: 4 })
    expectDelays([backoff.nextMs(), backoff.nextMs(), backoff.nextMs()], [100, 400, 1600])
  })

  it('stays at the maximum after thousands of failures', () => {
    const backoff = new Backoff(fakeClock(), { firstMs: 100, maxMs: 1000 })
    for (let call = 0; call < 5000; call++) backoff.nextMs()
    expectDelays([backoff.nextMs()], [1000])
  })

  it('starts again with the first delay after a reset', () => {
    const backoff = new Backoff(fakeClock(), { firstMs: 100, maxMs: 1000 })
    backoff.nextMs()
    backoff.nextMs()
    backoff.reset()
    expectDelays([backoff.nextMs()], [100])
  })

  it('returns different delays in different processes', () => {
    const options = { firstMs: 100, maxMs: 1000 }
    const first = new Backoff(fakeClock(0, 1), options)
    const second = new Backoff(fakeClock(0, 2), options)
    expect(first.nextMs()).not.toBe(second.nextMs())
  })

  it('waits for one delay, and no longer than until the signal aborts', async () => {
    const clock = fakeClock()
    const stopping = new AbortController()
    const backoff = new Backoff(clock, { firstMs: 100, maxMs: 1000 })
    const waiting = backoff.wait(stopping.signal)
    await clock.advance(100)
    await waiting
    const stopped = backoff.wait(stopping.signal)
    stopping.abort()
    await stopped
    expect(clock.pending()).toBe(0)
  })
})

describe('retry', () => {
  const fail = (attempt: number): never => {
    throw new Error(`attempt ${attempt}`)
  }

  it('calls until success, and reports each failure with the number of the attempt', async () => {
    const clock = fakeClock()
    const errors: [unknown, number][] = []
    const attemptsMs: number[] = []
    const done = retry(
      {
        clock,
        firstMs: 100,
        maxMs: 500,
        onError: (error, attempt) => errors.push([(error as Error).message, attempt]),
      },
      (attempt) => {
        attemptsMs.push(clock.mono())
        return attempt < 6 ? fail(attempt) : 'done'
      },
    )
    await clock.advance(10_000)
    expect(await done).toBe('done')
    expect(errors).toEqual([1, 2, 3, 4, 5].map((attempt) => [`attempt ${attempt}`, attempt]))
    const delays = attemptsMs.slice(1).map((ms, at) => ms - attemptsMs[at]!)
    expectDelays(delays, [100, 200, 400, 500, 500])
  })

  it('rejects with the last error when the signal aborts during a delay', async () => {
    const clock = fakeClock()
    const stopping = new AbortController()
    const { signal } = stopping
    const done = retry({ clock, firstMs: 100, maxMs: 500, signal }, fail)
    await clock.advance(10)
    stopping.abort()
    await expect(done).rejects.toThrow('attempt 1')
    expect(clock.pending()).toBe(0)
  })

  it('makes one attempt when the signal is already aborted', async () => {
    const clock = fakeClock()
    const options = { clock, firstMs: 100, maxMs: 500, signal: AbortSignal.abort() }
    expect(await retry(options, (attempt) => attempt)).toBe(1)
    await expect(retry(options, fail)).rejects.toThrow('attempt 1')
  })

  it('starts no attempt after its time limit', async () => {
    const clock = fakeClock()
    const attemptsMs: number[] = []
    const done = retry({ clock, firstMs: 100, maxMs: 100, limitMs: 1000 }, (attempt) => {
      attemptsMs.push(clock.mono())
      return fail(attempt)
    })
    const rejected = expect(done).rejects.toThrow(/^attempt \d+$/)
    await clock.advance(5000)
    await rejected
    expect(attemptsMs.length).toBeGreaterThan(9)
    expect(Math.max(...attemptsMs)).toBeLessThanOrEqual(1000)
  })

  it('rejects at once when another attempt cannot help', async () => {
    const clock = fakeClock()
    const seen: number[] = []
    const shouldRetry = (_error: unknown, attempt: number): boolean => {
      seen.push(attempt)
      return attempt < 3
    }
    const done = retry({ clock, firstMs: 100, maxMs: 500, shouldRetry }, fail)
    const rejected = expect(done).rejects.toThrow('attempt 3')
    await clock.advance(5000)
    await rejected
    expect(seen).toEqual([1, 2, 3])
  })
})
