import { describe, expect, it } from 'vitest'
import { fixed } from '../../src/policy/backoff.ts'
import type { Metrics } from '../../src/admin/metrics.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aQueue, forbidden, refused } from '../a-queue.ts'
import { atDepth } from '../depth.ts'
import { compareMetrics } from '../metrics-model.ts'
import * as postgres from '../stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redis } from '../stores/redis/redis-bench.ts'
import { openSqliteBench } from '../stores/sqlite/sqlite-bench.ts'

const { openPostgresBench } = postgres

const longMs = 120_000
/** Random sequences on each store besides. */
const onAnother = atDepth(5, 10)

describe('metrics and stats().lifetime', () => {
  it(
    'agree with a plain model over random sequences on a memory store',
    () =>
      compareMetrics(
        async (clock) => {
          const store = memoryStore({ clock })
          await store.open()
          return { store, close: () => store.close() }
        },
        atDepth(50, 150),
      ),
    longMs,
  )

  it('agree with it on a SQLite store', () => compareMetrics(openSqliteBench, onAnother), longMs)

  it.skipIf(redis.missing)(
    'agree with it on a Redis store',
    () => compareMetrics(openRedisBench, onAnother),
    longMs,
  )

  it.skipIf(postgres.missing)(
    'agree with it on a Postgres store',
    () => compareMetrics(openPostgresBench, onAnother),
    longMs,
  )
})

describe('stats', () => {
  it('has the average number of retries, which is 0 before the first capture', async () => {
    const { dlq } = await aQueue({ backoff: fixed(1000), maxRetries: 5 })
    expect(await dlq.stats()).toMatchObject({ avgRetryCount: 0 })
    const letters = [1, 2, 3, 4].map(() => dlq.enqueue({ type: 'a' }, refused()))
    const [first, second] = await Promise.all(letters)
    for (const id of [first!.id, first!.id, second!.id]) await dlq.fail(id, refused())
    expect(await dlq.stats()).toMatchObject({ avgRetryCount: 0.75 })
  })
})

describe('metrics', () => {
  it('counts runs that were reported with fail, and letters that were parked at capture', async () => {
    const { dlq } = await aQueue({ backoff: fixed(1000), maxRetries: 2 })
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    await dlq.enqueue({ type: 'a' }, forbidden())
    await dlq.fail(id, refused())
    await dlq.fail(id, refused())
    expect(await dlq.metrics()).toMatchObject({
      totalEnqueued: 2,
      totalRetried: 2,
      totalAbandoned: 1,
      totalManualReviews: 1,
      avgRetryCount: 2,
      // The parked letter waits for nothing.
      avgBackoffMs: 1000,
    })
    expect((await dlq.stats()).lifetime).toMatchObject({ retried: 2, parked: 1, exhausted: 1 })
  })

  it('counts the decisions of reviews', async () => {
    const { dlq } = await aQueue()
    for (const decision of ['requeue', 'resolve', 'discard'] as const) {
      const { id } = await dlq.enqueue({ type: 'a' }, forbidden())
      await dlq.review(id, { decision, by: 'mia' })
    }
    expect((await dlq.stats()).lifetime).toMatchObject({
      reviewed: 3,
      manuallyRetried: 1,
      resolved: 1,
      archived: 1,
    })
    expect(await dlq.metrics()).toMatchObject({ totalSuccesses: 1, totalManualReviews: 3 })
  })

  it('does not count the claim of a letter that is unfit to run', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(1000) })
    dlq.handle('a', () => {})
    const expiresAt = new Date(clock.now() + 500).toISOString()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { expiresAt })
    dlq.start()
    await clock.advance(5000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'expired', retries: 0 })
    expect(await dlq.metrics()).toMatchObject({ totalRetried: 0, totalManualReviews: 1 })
    await dlq.close()
  })

  it('counts only events after an earlier result given as since', async () => {
    const { dlq } = await aQueue({ backoff: fixed(1000), maxRetries: 3 })
    const before = await dlq.enqueue({ type: 'a' }, refused(), { priority: 'high' })
    await dlq.fail(before.id, refused())
    const since = JSON.parse(JSON.stringify(await dlq.metrics())) as Metrics
    expect(await dlq.metrics({ since })).toMatchObject({
      totalEnqueued: 0,
      totalRetried: 0,
      enqueuedByType: {},
      avgBackoffMs: 0,
      maxRetryCount: null,
      partial: true,
    })
    await dlq.fail(before.id, refused())
    await dlq.resolve(before.id)
    await dlq.enqueue({ type: 'b' }, refused(), { policy: fixed(3000) })
    expect(await dlq.metrics({ since })).toEqual({
      totalEnqueued: 1,
      totalRetried: 1,
      totalSuccesses: 1,
      totalAbandoned: 0,
      totalManualReviews: 0,
      totalReplayed: 0,
      enqueuedByPriority: { critical: 0, high: 0, medium: 1, low: 0 },
      enqueuedByType: { b: 1 },
      successByPriority: { critical: 0, high: 1, medium: 0, low: 0 },
      successByType: { a: 1 },
      abandonedByPriority: { critical: 0, high: 0, medium: 0, low: 0 },
      abandonedByType: {},
      avgRetryCount: 2,
      avgBackoffMs: 2000,
      maxRetryCount: 2,
      successRate: 1,
      abandonmentRate: 0,
      totalSettledRetries: 2,
      totalWaits: 2,
      totalBackoffMs: 4000,
      partial: true,
    })
  })

  it.each<[string, (since: Metrics) => unknown, string]>([
    ['null', () => null, 'totalEnqueued is undefined'],
    ['a timestamp', () => '2026-01-01', 'totalEnqueued is undefined'],
    ['a result without a counter', (since) => ({ ...since, totalWaits: undefined }), 'totalWaits'],
    [
      'a result of since',
      (since) => ({ ...since, partial: true }),
      'a partial result cannot be used',
    ],
    [
      'a result of another store',
      (since) => ({ ...since, enqueuedByType: { elsewhere: 4 } }),
      'enqueuedByType',
    ],
    ['a result that counts more', (since) => ({ ...since, totalEnqueued: 9 }), 'totalEnqueued'],
  ])('rejects %s as since', async (_name, make, why) => {
    const { dlq } = await aQueue()
    await dlq.enqueue({ type: 'a' }, refused())
    const since = make(await dlq.metrics()) as Metrics
    const refusal = dlq.metrics({ since })
    await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(refusal).rejects.toThrow(why)
  })

  it('rejects an unknown key', async () => {
    const { dlq } = await aQueue()
    await expect(dlq.metrics({ sinse: {} } as never)).rejects.toThrow('did you mean "since"?')
  })
})
