import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import { RedriveError } from '../../src/errors.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { ClaimRequest, Store } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { aQueue, deferred, refused } from '../a-queue.ts'
import { missing as noPostgres, openPostgresBench } from '../stores/postgres/postgres-bench.ts'
import { openRedisBench, single as redisServer } from '../stores/redis/redis-bench.ts'
import { openSqliteBench } from '../stores/sqlite/sqlite-bench.ts'
import { waitFor } from '../wait-for.ts'

const pollMs = 1000
const options = { pollMs, backoff: immediate() }

/** A queue whose handlers of `a` and `b` record the inputs of their runs. */
async function aWorker() {
  const bench = await aQueue(options)
  const runs: unknown[] = []
  for (const queue of ['a', 'b']) bench.dlq.handle(queue, ({ input }) => void runs.push(input))
  bench.dlq.start()
  await bench.clock.advance(0)
  const fail = (queue: string, payload: unknown) =>
    bench.dlq.enqueue({ type: queue, payload }, refused())
  return { ...bench, runs, fail }
}

describe('a paused queue', () => {
  it('is not run by this process from then on, and others are', async () => {
    const { dlq, clock, runs, fail } = await aWorker()
    await dlq.pauseQueue('a', 'mia', 'migration of the ledger')
    await fail('a', 'a1')
    await fail('b', 'b1')
    await clock.advance(60_000)
    expect(runs).toEqual(['b1'])
    expect((await dlq.find({ queue: 'a' })).items).toMatchObject([{ state: 'pending', retries: 0 }])
    expect(await dlq.resumeQueue('a', 'mia')).toBe(true)
    await clock.advance(0)
    expect(runs).toEqual(['b1', 'a1'])
    await dlq.close()
  })

  it('is not claimed by another worker after one poll, whose running handlers finish', async () => {
    const { dlq, store, clock, fail } = await aWorker()
    const other = await DeadLetterQueue.open(store, { ...options, clock, worker: 'worker-2' })
    const go = deferred()
    const started: unknown[] = []
    other.handle('c', ({ input }) => {
      started.push(input)
      return go.promise
    })
    other.start()
    await fail('c', 1)
    await clock.advance(0)
    expect(started).toEqual([1])
    await dlq.pauseQueue('c', 'mia', 'migration')
    await clock.advance(pollMs)
    await fail('c', 2)
    go.resolve()
    await clock.advance(60_000)
    expect(started).toEqual([1])
    expect((await dlq.stats()).states).toMatchObject({ resolved: 1, pending: 1 })
    await dlq.resumeQueue('c', 'mia')
    await clock.advance(2 * pollMs)
    expect(started).toEqual([1, 2])
    await other.close()
    await dlq.close()
  })

  it('is listed, and shown by stats and health, until it is resumed', async () => {
    const { dlq, clock } = await aWorker()
    await clock.advance(5)
    const paused = { queue: 'not yet known', by: 'mia', reason: 'migration' }
    const at = new Date(clock.now()).toISOString()
    expect(await dlq.pauseQueue('not yet known', 'mia', 'migration')).toEqual({ ...paused, at })
    expect(await dlq.pausedQueues()).toEqual([{ ...paused, at }])
    expect((await dlq.stats()).pausedQueues).toEqual([{ ...paused, at }])
    expect(await dlq.health()).toMatchObject({ ok: true, pausedQueues: [paused], problems: [] })
    expect(await dlq.resumeQueue('not yet known', 'mia')).toBe(true)
    expect(await dlq.pausedQueues()).toEqual([])
    expect(await dlq.resumeQueue('not yet known', 'mia')).toBe(false)
    await dlq.close()
  })

  it('is reported by an event, and so is its end', async () => {
    const { dlq, events } = await aWorker()
    await dlq.pauseQueue('a', 'mia', 'one')
    await dlq.pauseQueue('a', 'ada', 'two')
    await dlq.resumeQueue('a', 'mia')
    await dlq.resumeQueue('a', 'mia')
    expect(events).toMatchObject([
      { type: 'queue-paused', queue: 'a', by: 'mia', reason: 'one' },
      { type: 'queue-paused', queue: 'a', by: 'ada', reason: 'two' },
      { type: 'queue-resumed', queue: 'a', by: 'mia' },
    ])
    await dlq.close()
  })

  it('is not parked for want of a handler until it is resumed', async () => {
    const { dlq, clock, fail } = await aWorker()
    await dlq.pauseQueue('c', 'mia', 'its workers are being replaced')
    await fail('c', 1)
    await clock.advance(60_000)
    expect((await dlq.stats()).states).toMatchObject({ pending: 1, parked: 0 })
    await dlq.resumeQueue('c', 'mia')
    await clock.advance(60_000)
    expect((await dlq.find()).items).toMatchObject([{ state: 'parked', reason: 'no-handler' }])
    await dlq.close()
  })

  it('gets back the letters that were claimed ahead, uncounted', async () => {
    const claimMs = 10
    const go = deferred()
    let runs = 0
    const settings = { ...options, maxConcurrent: 2, breaker: false, concurrency: false } as const
    const { dlq, clock } = await aQueue(settings, (fake) => slowToClaim(fake, claimMs))
    const letters = Array.from({ length: 8 }, (_, payload) => ({
      operation: { type: 'a', payload },
      error: refused(),
    }))
    await dlq.enqueueAll(letters)
    dlq.handle('a', () => (++runs <= 2 ? sleep(clock, 1) : go.promise))
    dlq.start()
    await clock.advance(1 + 3 * claimMs)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 2, retrying: 4, pending: 2 })
    await dlq.pauseQueue('a', 'mia', 'migration')
    await clock.advance(claimMs)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 2, retrying: 2, pending: 4 })
    go.resolve()
    await clock.advance(60_000)
    expect((await dlq.stats()).states).toMatchObject({ resolved: 4, pending: 4 })
    const { items } = await dlq.find({ state: 'pending' })
    expect(items.map(({ retries }) => retries)).toEqual([0, 0, 0, 0])
    await dlq.close()
  })

  it('stays paused if its record is damaged', async () => {
    const { dlq, store, clock, runs, fail } = await aWorker()
    await store.records.put('paused-queue', 'a', ['?'])
    await clock.advance(2 * pollMs)
    await fail('a', 1)
    await clock.advance(60_000)
    expect(runs).toEqual([])
    expect(await dlq.pausedQueues()).toMatchObject([{ queue: 'a', by: '', reason: '' }])
    await dlq.close()
  })

  it.each<[string, unknown[], string]>([
    ['an empty name', ['', 'mia', 'why'], 'queue name'],
    ['a name that is not a string', [7, 'mia', 'why'], 'queue name'],
    ['a name with a line break', ['a\nb', 'mia', 'why'], 'queue name'],
    ['nobody', ['a', '', 'why'], '`by` must be'],
    ['no reason', ['a', 'mia', '  '], '`reason` must be'],
    ['a missing reason', ['a', 'mia'], '`reason` must be'],
    [
      'a reason that is too long',
      ['a', 'mia', 'x'.repeat(1001)],
      'at most 1000 characters, got 1001',
    ],
  ])('is rejected with %s', async (_what, given, message) => {
    const { dlq } = await aQueue()
    const pausing = dlq.pauseQueue(...(given as [string, string, string]))
    await expect(pausing).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(pausing).rejects.toThrow(message)
    await dlq.close()
  })
})

describe('the list of paused queues', () => {
  it('is read at most once per poll, however many claims there are', async () => {
    let reads = 0
    let claims = 0
    const { dlq, clock } = await aQueue({ ...options, maxConcurrent: 1 }, (fake) => {
      const store = memoryStore({ clock: fake })
      const list = store.records.list.bind(store.records)
      const claim = store.claim.bind(store)
      store.records.list = async (kind, query) => {
        if (kind === 'paused-queue') reads++
        return list(kind, query)
      }
      return Object.assign(store, {
        claim: async (request: ClaimRequest) => {
          claims++
          return claim(request)
        },
      })
    })
    const letters = Array.from({ length: 500 }, (_, payload) => ({
      operation: { type: 'a', payload },
      error: refused(),
    }))
    await dlq.enqueueAll(letters)
    dlq.handle('a', () => sleep(clock, 10))
    dlq.start()
    await clock.advance(4 * pollMs)
    expect(claims).toBeGreaterThan(300)
    expect(reads).toBeLessThanOrEqual(5)
    const closed = dlq.close()
    await clock.advance(10)
    await closed
  })

  it('is read again after an error, and nothing is claimed without it', async () => {
    let broken = true
    const { dlq, clock, eventsOf } = await aQueue(options, (fake) => {
      const store = memoryStore({ clock: fake })
      const list = store.records.list.bind(store.records)
      store.records.list = async (kind, query) => {
        if (broken && kind === 'paused-queue')
          throw new RedriveError('STORE_UNAVAILABLE', 'the store is unreachable')
        return list(kind, query)
      }
      return store
    })
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.handle('a', () => {})
    dlq.start()
    await clock.advance(2 * pollMs)
    expect(eventsOf('started')).toEqual([])
    expect(eventsOf('error')[0]).toMatchObject({ during: 'claiming' })
    expect(await dlq.health()).toMatchObject({ pausedQueues: [] })
    broken = false
    await clock.advance(2 * pollMs)
    expect(eventsOf('resolved')).toHaveLength(1)
    await dlq.close()
  })
})

/** A memory store whose claims take a while. */
function slowToClaim(clock: FakeClock, claimMs: number): Store {
  const store = memoryStore({ clock })
  const claim = store.claim.bind(store)
  return Object.assign(store, {
    claim: async (request: ClaimRequest) => {
      await sleep(clock, claimMs)
      return claim(request)
    },
  })
}

interface Two {
  store: Store
  another?: () => Promise<Store>
  close: () => Promise<unknown>
}

const stores: [
  kind: string,
  missing: string | undefined,
  open: (clock: FakeClock) => Promise<Two>,
][] = [
  [
    'memory',
    undefined,
    async (clock) => {
      const store = memoryStore({ clock })
      return { store, close: () => store.close() }
    },
  ],
  ['sqlite', undefined, (clock) => openSqliteBench(clock)],
  ['postgres', noPostgres, (clock) => openPostgresBench(clock)],
  ['redis', redisServer.missing, (clock) => openRedisBench(clock)],
]

describe.each(stores)('pauses on a %s store', (_kind, missing, open) => {
  it.skipIf(missing)('are seen by a worker that runs, and by one that starts later', async () => {
    const clock = fakeClock()
    const bench = await open(clock)
    const operator = await DeadLetterQueue.open(bench.store, { ...options, clock, worker: 'one' })
    const shared = (await bench.another?.()) ?? bench.store
    const worker = await DeadLetterQueue.open(shared, { ...options, clock, worker: 'two' })
    const runs: unknown[] = []
    for (const queue of ['a', 'b']) worker.handle(queue, ({ input }) => void runs.push(input))
    /** Lets time pass until the worker has run the letter with this input. */
    const hasRun = (input: string): Promise<void> =>
      waitFor(
        async () => {
          await clock.advance(pollMs)
          expect(runs).toContain(input)
        },
        { timeout: 30_000, interval: 5 },
      )
    const run = async (queue: string, payload: string): Promise<void> => {
      await operator.enqueue({ type: queue, payload }, refused())
      await hasRun(payload)
    }
    worker.start()
    await run('a', 'a1')
    await operator.pauseQueue('a', 'mia', 'migration')
    // The claim of the second letter begins after a poll, and so after the pause was read.
    for (const input of ['b1', 'b2']) await run('b', input)
    await operator.enqueue({ type: 'a', payload: 'a2' }, refused())
    for (const input of ['b3', 'b4']) await run('b', input)
    expect(runs).not.toContain('a2')
    await worker.stop()
    worker.start()
    await run('b', 'b5')
    expect(runs).not.toContain('a2')
    expect(await worker.pausedQueues()).toMatchObject([{ queue: 'a', reason: 'migration' }])
    expect(await worker.resumeQueue('a', 'mia')).toBe(true)
    await hasRun('a2')
    expect(await operator.pausedQueues()).toEqual([])
    await worker.close()
    await operator.close()
    await bench.close()
  })
})
