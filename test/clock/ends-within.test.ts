import { describe, expect, it } from 'vitest'
import { endsWithin } from '../../src/clock/ends-within.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { deferred } from '../a-queue.ts'

describe('endsWithin', () => {
  it('is true for work that resolves in time, and leaves no timer', async () => {
    const clock = fakeClock()
    const work = deferred()
    const inTime = endsWithin(clock, work.promise, 100)
    work.resolve()
    expect(await inTime).toBe(true)
    expect(clock.pending()).toBe(0)
  })

  it('is false when the time is up, and ignores the end of the work', async () => {
    const clock = fakeClock()
    const work = deferred()
    const inTime = endsWithin(clock, work.promise, 100)
    await clock.advance(100)
    expect(await inTime).toBe(false)
    work.reject(new Error('late'))
    await clock.advance(0)
  })

  it('rejects with the error of work that rejects in time, and leaves no timer', async () => {
    const clock = fakeClock()
    const failed = Promise.reject(new Error('no'))
    await expect(endsWithin(clock, failed, 100)).rejects.toThrow('no')
    expect(clock.pending()).toBe(0)
  })
})
