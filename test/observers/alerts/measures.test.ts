import { describe, expect, it } from 'vitest'
import { measuresOf, readMeasures } from '../../../src/observers/alerts/measures.ts'
import { immediate } from '../../../src/policy/backoff.ts'
import type { Total } from '../../../src/store.ts'
import { aQueue, forbidden, refused, timedOut } from '../../a-queue.ts'

const total = (action: Total['action'], queue: string, count: number): Total => ({
  action,
  queue,
  priority: 'medium',
  count,
  retries: 0,
  maxRetries: 0,
  backoffMs: 0,
})

describe('measuresOf', () => {
  const counts = {
    size: 9,
    maxItems: 10,
    exhausted: new Map([['a', 2]]),
    parked: new Map([['b', 3]]),
    pending: new Map([
      ['a', 1],
      ['b', 3],
    ]),
    totals: [
      total('capture', 'a', 50),
      total('claim', 'a', 40),
      total('resolve', 'a', 5),
      total('resolve', 'b', 1),
      total('reschedule', 'a', 7),
      total('exhaust', 'a', 2),
      total('park', 'b', 3),
      total('release', 'a', 4),
    ],
  }

  it('counts letters and finished runs, per queue and in total', () => {
    expect(measuresOf(counts)).toEqual({
      utilisation: 0.9,
      all: { exhausted: 2, parked: 3, pending: 4, resolved: 6, failed: 12, captured: 50 },
      queues: new Map([
        ['a', { exhausted: 2, parked: 0, pending: 1, resolved: 5, failed: 9, captured: 50 }],
        ['b', { exhausted: 0, parked: 3, pending: 3, resolved: 1, failed: 3, captured: 0 }],
      ]),
    })
  })

  it('has no utilisation without a limit', () => {
    expect(measuresOf({ ...counts, maxItems: Infinity })).not.toHaveProperty('utilisation')
  })
})

describe('readMeasures', () => {
  it('agrees with the statistics of a queue', async () => {
    const { dlq, store, clock } = await aQueue({ maxItems: 8, maxRetries: 1, backoff: immediate() })
    let fails = true
    dlq.handle('a', () => {
      if (fails) throw timedOut()
    })
    dlq.handle('b', () => {
      throw forbidden()
    })
    for (const type of ['a', 'a', 'b', 'a']) await dlq.enqueue({ type }, refused())
    const archivedLetter = await dlq.enqueue({ type: 'a' }, forbidden())
    await dlq.archive(archivedLetter.id)
    dlq.start()
    await clock.advance(10_000)
    fails = false
    await dlq.enqueue({ type: 'a' }, refused())
    await clock.advance(10_000)
    await dlq.stop()

    const { states, size, utilisation, lifetime } = await dlq.stats()
    expect(states).toMatchObject({ exhausted: 3, parked: 1, resolved: 1, archived: 1 })
    const measured = await readMeasures(store, 8)
    expect(measured.utilisation).toBe(size / 8)
    expect(measured.utilisation! * 100).toBe(utilisation)
    expect(measured.all).toEqual({
      exhausted: states.exhausted,
      parked: states.parked,
      pending: states.pending,
      resolved: lifetime.resolved,
      captured: 6,
      // Nothing ran when the archived one was parked at capture.
      failed: lifetime.rescheduled + lifetime.exhausted + lifetime.parked - 1,
    })
    expect(measured.queues.get('b')).toMatchObject({ parked: 1, failed: 1 })
    await dlq.close()
  })
})
