import { describe, expect, it } from 'vitest'
import { fixed, immediate } from '../../src/policy/backoff.ts'
import { aQueue } from '../a-queue.ts'

const status = (code: number): Error => Object.assign(new Error(`HTTP ${code}`), { status: code })
const minuteMs = 60_000

describe('limits by category', () => {
  const limits = {
    maxRetries: 5,
    maxRetriesByCategory: { 'rate-limit': 3, resource: 2, permanent: 0 },
    backoff: immediate(),
  }

  it('apply at capture and after every run, and are stored in the letter', async () => {
    const { dlq, clock } = await aQueue(limits)
    const failures = [status(504), status(429), status(429)]
    dlq.handle('a', ({ attempt }) => Promise.reject(failures[attempt - 1]!))
    const { id, maxRetries } = await dlq.enqueue({ type: 'a' }, status(507))
    expect(maxRetries).toBe(2)
    const seen: number[] = []
    dlq.on('rescheduled', ({ letter }) => seen.push(letter.maxRetries))
    dlq.start()
    await clock.advance(1000)
    expect(seen).toEqual([5, 3])
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 3, maxRetries: 3 })
    await dlq.close()
  })

  it('apply again after a retry by a person', async () => {
    const { dlq, clock } = await aQueue(limits)
    let failure = status(507)
    dlq.handle('a', () => Promise.reject(failure))
    const { id } = await dlq.enqueue({ type: 'a' }, failure)
    dlq.start()
    await clock.advance(1000)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 2, maxRetries: 2 })
    failure = status(504)
    await dlq.retry(id)
    await clock.advance(1000)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 5, maxRetries: 5 })
    await dlq.close()
  })

  it('do not replace a limit that was chosen for the letter', async () => {
    const { dlq, clock } = await aQueue(limits)
    dlq.handle('a', () => Promise.reject(status(429)))
    const { id } = await dlq.enqueue({ type: 'a' }, status(429), { maxRetries: 5 })
    dlq.start()
    await clock.advance(1000)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 5, maxRetries: 5 })
    await dlq.close()
  })

  it('are those of the queue if it has its own, or its maxRetries', async () => {
    const { dlq } = await aQueue({
      ...limits,
      queues: { b: { maxRetriesByCategory: { 'rate-limit': 1 } }, c: { maxRetries: 4 } },
    })
    const letters = ['a', 'b', 'c'].map((type) => dlq.enqueue({ type }, status(429)))
    expect((await Promise.all(letters)).map(({ maxRetries }) => maxRetries)).toEqual([3, 1, 4])
  })

  it('apply to runs reported with fail, too', async () => {
    const { dlq } = await aQueue(limits)
    const { id } = await dlq.enqueue({ type: 'a' }, status(504))
    expect(await dlq.fail(id, status(507))).toMatchObject({ retries: 1, maxRetries: 2 })
    expect(await dlq.fail(id, status(507))).toMatchObject({ state: 'exhausted', maxRetries: 2 })
  })
})

describe('an unknown failure', () => {
  it('parks the letter with the limit that applied', async () => {
    const { dlq, clock } = await aQueue({ maxRetries: 4, backoff: immediate() })
    dlq.handle('a', () => Promise.reject(new Error('hm')))
    const { id } = await dlq.enqueue({ type: 'a' }, new Error('hm'))
    dlq.start()
    await clock.advance(1000)
    expect(await dlq.get(id)).toMatchObject({
      state: 'parked',
      reason: 'retries-exhausted',
      retries: 3,
      maxRetries: 3,
    })
    await dlq.close()
  })
})

describe('retryForMs', () => {
  const byTime = { retryForMs: 10 * minuteMs, maxRetries: 2, backoff: fixed(minuteMs) }

  it('retries a letter until the time is up, regardless of the number, then exhausts it', async () => {
    const { dlq, clock } = await aQueue(byTime)
    let runs = 0
    dlq.handle('a', () => {
      runs++
      throw status(504)
    })
    const { id } = await dlq.enqueue({ type: 'a' }, status(504))
    dlq.start()
    await clock.advance(9.5 * minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 9 })
    await clock.advance(minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 10, maxRetries: 10 })
    expect(runs).toBe(10)
    await dlq.close()
  })

  it('restarts with a retry by a person', async () => {
    const { dlq, clock } = await aQueue(byTime)
    dlq.handle('a', () => Promise.reject(status(504)))
    const { id } = await dlq.enqueue({ type: 'a' }, status(504))
    dlq.start()
    await clock.advance(30 * minuteMs)
    await dlq.retry(id)
    await clock.advance(9.5 * minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 10 })
    await clock.advance(minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 11 })
    await dlq.close()
  })

  it('makes the last run when the time is up, regardless of the backoff', async () => {
    const { dlq, clock } = await aQueue({ ...byTime, backoff: fixed(60 * minuteMs) })
    dlq.handle('a', () => Promise.reject(status(504)))
    const { id } = await dlq.enqueue({ type: 'a' }, status(504))
    dlq.start()
    await clock.advance(10.5 * minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 1 })
    await dlq.close()
  })

  it('still parks a letter that keeps crashing its worker, by number', async () => {
    const { dlq, store, clock } = await aQueue(byTime)
    let runs = 0
    dlq.handle('a', () => {
      runs++
      throw status(504)
    })
    const { id } = await dlq.enqueue({ type: 'a' }, status(504))
    dlq.start()
    await clock.advance(5.5 * minuteMs)
    await dlq.stop()
    await clock.advance(minuteMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 5, maxRetries: 7 })
    for (let crash = 0; crash < 2; crash++) {
      const claimed = await store.claim({ worker: `dead-${crash}`, limit: 1, leaseMs: 1000 })
      expect(claimed.letters).toHaveLength(1)
      await clock.advance(1000)
    }
    dlq.start()
    await clock.advance(2000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'crash-loop' })
    expect(runs).toBe(5)
    await dlq.close()
  })

  it('parks letters at once when maxRetries is 0', async () => {
    const { dlq } = await aQueue({ ...byTime, maxRetries: 0 })
    expect(await dlq.enqueue({ type: 'a' }, status(504))).toMatchObject({ state: 'parked' })
  })
})
