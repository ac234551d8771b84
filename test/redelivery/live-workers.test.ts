import { describe, expect, it } from 'vitest'
import { toTimestamp } from '../../src/letter/time.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { listLiveWorkers } from '../../src/redelivery/live-workers.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { aQueue, refused } from '../a-queue.ts'

describe('workers', () => {
  it('reports what a process can run, what it runs, and what its breakers are like', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxConcurrent: 3 })
    const startedAt = toTimestamp(clock.now())
    dlq.describeProcess({ kind: 'worker', version: '1.2.3' })
    const ended = Promise.withResolvers<void>()
    dlq.handle('a', () => ended.promise, { breaker: { failures: 1 } })
    dlq.handle('b', () => {
      throw refused()
    })
    dlq.start()
    await dlq.enqueue({ type: 'a' }, refused())
    await dlq.pauseQueue('b', 'mia', 'repair')
    await clock.advance(20_000)
    expect(await dlq.workers()).toEqual([
      {
        id: 'worker-1',
        kind: 'worker',
        version: '1.2.3',
        host: expect.any(String) as string,
        pid: process.pid,
        startedAt,
        seenAt: expect.any(String) as string,
        queues: ['a', 'b'],
        paused: ['b'],
        running: 1,
        slots: 3,
        limiters: expect.arrayContaining([
          { kind: 'queue', name: 'a', state: 'closed', inFlight: 1 },
        ]) as unknown,
      },
    ])
    ended.resolve()
    await dlq.close()
  })

  it('reports a process that does not redeliver, without queues, until it stops', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const dlq = await DeadLetterQueue.open(store, { clock, redeliver: false, worker: 'server' })
    dlq.handle('a', () => {})
    dlq.start()
    await clock.advance(200_000)
    expect(await dlq.workers()).toMatchObject([{ id: 'server', queues: [], slots: 0 }])
    await dlq.stop()
    expect(await dlq.workers()).toEqual([])
    await dlq.close()
  })

  it('forgets a process that died', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const seenAt = toTimestamp(clock.now())
    await store.records.put('worker', 'dead', { queues: ['a'], seenAt, sweepMs: 5000 })
    const nowMs = clock.now()
    expect(await listLiveWorkers(store, nowMs + 60_000)).toHaveLength(1)
    expect(await listLiveWorkers(store, nowMs + 60_001)).toEqual([])
    const dlq = await DeadLetterQueue.open(store, { clock, redeliver: false })
    dlq.start()
    await clock.advance(200_000)
    expect(await store.records.get('worker', 'dead')).toBeUndefined()
    await dlq.close()
  })

  it('leaves out what it cannot read in the record of another version', async () => {
    const clock = fakeClock()
    const store = memoryStore({ clock })
    const seenAt = toTimestamp(clock.now())
    await store.records.put('worker', 'odd', {
      queues: ['a', 5],
      seenAt,
      kind: 'robot',
      host: null,
      pid: -1,
      startedAt: 'yesterday',
      slots: 2,
      limiters: [null, 5, { kind: 'queue', name: 'a', state: 'ajar', inFlight: 1 }],
    })
    expect(await listLiveWorkers(store, clock.now())).toEqual([
      { id: 'odd', queues: ['a'], seenAt, slots: 2, limiters: [] },
    ])
  })
})
