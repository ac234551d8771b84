import { describe, expect, it } from 'vitest'
import type { QueueOptions } from '../../src/options/options.ts'
import { availableRuns, newBucket, spend, type Budget } from '../../src/policy/budget.ts'
import { fixed, immediate } from '../../src/policy/backoff.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { aQueue, refused, timedOut } from '../a-queue.ts'
import { atDepth } from '../depth.ts'

const hourMs = 3_600_000
/** Each poll of each worker is a step of the virtual time. */
const rarely = { pollMs: 5000, sweepMs: 20_000 } satisfies QueueOptions

/** A dependency that is down until `up` is set, and records all visits. */
class Service {
  up = false
  readonly #clock: FakeClock
  readonly visits: { id: string; atMs: number; up: boolean }[] = []

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  visit(id: string): void {
    this.visits.push({ id, atMs: this.#clock.mono(), up: this.up })
    if (!this.up) throw refused()
  }

  /** The highest number of visits of one letter during the outage. */
  mostVisitsWhileDown(): number {
    const counts = new Map<string, number>()
    for (const { id, up } of this.visits) if (!up) counts.set(id, (counts.get(id) ?? 0) + 1)
    return Math.max(0, ...counts.values())
  }

  /** The number of visits beyond the budget, starting with a full bucket. */
  visitsBeyond(budget: Budget): number {
    let bucket = { ...newBucket(0), tokens: budget.burst ?? budget.perSecond }
    let beyond = 0
    for (const { atMs } of this.visits) {
      if (availableRuns(bucket, budget, atMs) < 1) beyond++
      else bucket = spend(bucket, budget, atMs)
    }
    return beyond
  }
}

interface Outage {
  letters: number
  workers: number
  options: QueueOptions
}

async function outage({ letters, workers, options }: Outage) {
  const settings = { ...rarely, ...options }
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const service = new Service(clock)
  const all: DeadLetterQueue[] = []
  for (let n = 0; n < workers; n++) {
    const dlq = await DeadLetterQueue.open(store, { ...settings, worker: `w${n}`, clock })
    for (const queue of ['charge', 'refund'])
      dlq.handle(queue, ({ letter }) => service.visit(letter.id), { dependency: 'payments' })
    dlq.start()
    all.push(dlq)
  }
  const dlq = all[0]!
  // Workers know of each other after a sweep.
  await clock.advance(settings.sweepMs + 1000)
  const failures = Array.from({ length: letters }, (_, n) => ({
    operation: { type: n % 3 === 0 ? 'refund' : 'charge', payload: n },
    error: refused(),
  }))
  await dlq.enqueueAll(failures)
  await clock.advance(2 * hourMs)
  const during = await dlq.stats()
  const spent = await retriesSpent(dlq)
  service.up = true
  const recoveredMs = clock.mono()
  let minutes = 0
  for (; minutes < 60 && (await dlq.stats()).states.resolved < letters; minutes++)
    await clock.advance(60_000)
  const after = await dlq.stats()
  for (const one of all) await one.stop()
  return { service, during, spent, after, recoveredMs, minutes }
}

/** The retries that all letters have spent. */
async function retriesSpent(dlq: DeadLetterQueue): Promise<number> {
  let spent = 0
  let cursor: string | undefined
  do {
    const page = await dlq.find({ limit: 500, ...(cursor ? { cursor } : {}) })
    spent += page.items.reduce((sum, { retries }) => sum + retries, 0)
    cursor = page.cursor
  } while (cursor)
  return spent
}

const many = atDepth(1000, 10_000)

describe(`an outage of two hours with ${many} letters`, () => {
  const budget = { perSecond: 20, burst: 20 }

  it('costs no letter its retries, stays within the budget, and drains within an hour', async () => {
    const { service, during, spent, after } = await outage({
      letters: many,
      workers: 1,
      options: { dependencies: { payments: { budget } } },
    })
    expect(service.mostVisitsWhileDown()).toBeLessThanOrEqual(2)
    expect(during.states).toMatchObject({ exhausted: 0, parked: 0, resolved: 0 })
    expect(spent).toBe(0)
    expect(after.states).toMatchObject({ resolved: many, exhausted: 0, parked: 0, pending: 0 })
    expect(service.visitsBeyond(budget)).toBe(0)
  })

  it('is no different when three workers share the dependency', { timeout: 180_000 }, async () => {
    const { service, during, spent, after } = await outage({
      letters: many,
      workers: 3,
      options: { dependencies: { payments: { budget } } },
    })
    expect(service.mostVisitsWhileDown()).toBeLessThanOrEqual(2)
    expect(during.states).toMatchObject({ exhausted: 0, parked: 0, resolved: 0 })
    expect(spent).toBe(0)
    expect(after.states).toMatchObject({ resolved: many, exhausted: 0, parked: 0, pending: 0 })
    expect(service.visitsBeyond(budget)).toBe(0)
  })

  it('would exhaust letters and exceed the budget without flow control', async () => {
    const { service, during } = await outage({
      letters: 100,
      workers: 1,
      options: {
        breaker: false,
        concurrency: false,
        dependencies: { payments: { breaker: false } },
      },
    })
    expect(service.mostVisitsWhileDown()).toBe(3)
    expect(during.states.exhausted).toBe(100)
    expect(service.visitsBeyond(budget)).toBeGreaterThan(0)
  })
})

describe('a long outage of a small queue', () => {
  it('probes the same letters repeatedly without using up their retries', async () => {
    const { service, during, after } = await outage({ letters: 15, workers: 1, options: {} })
    expect(service.mostVisitsWhileDown()).toBeGreaterThan(1)
    expect(during.states).toMatchObject({ exhausted: 0, pending: 15 })
    expect(after.states).toMatchObject({ resolved: 15 })
  })

  it('exhausts letters after patienceMs', async () => {
    const breaker = { patienceMs: hourMs / 4 }
    // Enough probes within the two hours.
    const often = { pollMs: 1000, sweepMs: 5000 }
    const { during } = await outage({
      letters: 15,
      workers: 1,
      options: { ...often, breaker, dependencies: { payments: { breaker } } },
    })
    expect(during.states.exhausted).toBeGreaterThan(0)
  })
})

describe('an outage of a queue with fewer letters than the breaker needs', () => {
  const patience = { backoff: fixed(60_000), breaker: { patienceMs: hourMs } }

  it.each([1, 3, 9])('costs none of %i letters a retry', async (letters) => {
    const { service, during, spent, after } = await outage({ letters, workers: 1, options: {} })
    expect(service.mostVisitsWhileDown()).toBeGreaterThan(3)
    expect(spent).toBe(0)
    expect(during.states).toMatchObject({ exhausted: 0, parked: 0, pending: letters })
    expect(after.states).toMatchObject({ resolved: letters })
  })

  it('is not counted in the letter, which records when it was first deferred', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(60_000) })
    dlq.handle('a', () => Promise.reject(refused()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(10 * 60_000)
    const letter = (await dlq.get(id))!
    expect(letter).toMatchObject({ state: 'pending', retries: 0, maxRetries: 3 })
    const runs = letter.history.slice(1)
    expect(runs.map(({ action }) => action)).toEqual(Array(5).fill('release'))
    expect(letter.deferredSince).toBe(runs[0]!.at)
    await dlq.close()
  })

  it('uses the delays of the policy for the number of retries, then longer ones each time', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const runs: number[] = []
    const startMs = clock.now()
    dlq.handle('a', () => {
      runs.push(clock.now() - startMs)
      throw refused()
    })
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(16_000)
    expect(runs).toEqual([0, 0, 0, 1000, 3000, 7000, 15_000])
    await dlq.close()
  })

  it('waits as long as the other side asked', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const busy = (): Error =>
      Object.assign(new Error('busy'), { status: 503, headers: { 'retry-after': '600' } })
    let runs = 0
    dlq.handle('a', () => {
      runs++
      throw busy()
    })
    await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(599_000)
    expect(runs).toBe(1)
    await clock.advance(2000)
    expect(runs).toBe(2)
    await dlq.close()
  })

  it('ends for a letter whose dependency is never reached, after patienceMs and its retries', async () => {
    const { dlq, clock } = await aQueue({ ...rarely, ...patience })
    dlq.handle('a', () => Promise.reject(refused()))
    dlq.handle('b', () => {})
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(hourMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 0 })
    await clock.advance(2 * hourMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 3 })
    await dlq.close()
  })

  it('is remembered across restarts: patienceMs does not restart with each process', async () => {
    const { dlq, clock, store } = await aQueue()
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), { policy: fixed(60_000) })
    for (let hour = 0; hour < 30; hour++) {
      const worker = await DeadLetterQueue.open(store, { ...rarely, clock, worker: `w${hour}` })
      worker.handle('a', () => Promise.reject(refused()))
      worker.start()
      await clock.advance(hourMs)
      await worker.stop()
    }
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 3 })
  })

  it('restarts patienceMs with a retry by a person', async () => {
    const { dlq, clock } = await aQueue({ ...rarely, ...patience })
    dlq.handle('a', () => Promise.reject(refused()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(3 * hourMs)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted' })
    await dlq.retry(id)
    await clock.advance(hourMs / 2)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 0 })
    await dlq.close()
  })

  it('does not delay letters that reach their dependency', async () => {
    const { dlq, clock, eventsOf } = await aQueue({ backoff: fixed(60_000) })
    dlq.handle('a', ({ input }) => (input === 'dead' ? Promise.reject(refused()) : undefined))
    await dlq.enqueue({ type: 'a', payload: 'dead' }, refused())
    for (let n = 0; n < 20; n++) await dlq.enqueue({ type: 'a', payload: n }, refused())
    dlq.start()
    await clock.advance(65_000)
    expect(eventsOf('resolved')).toHaveLength(20)
    expect(eventsOf('breaker')).toEqual([])
    await dlq.close()
  })

  it.each([
    ['a failure that the letter may have caused', { backoff: fixed(60_000) }, timedOut],
    [
      'every failure without a breaker',
      { backoff: fixed(60_000), breaker: false as const },
      refused,
    ],
    [
      'every failure without patience',
      { backoff: fixed(60_000), breaker: { patienceMs: 0 } },
      refused,
    ],
  ])('still counts %s', async (_what, options, failure) => {
    const { dlq, clock } = await aQueue(options)
    dlq.handle('a', () => Promise.reject(failure()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(5 * 60_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted', retries: 3 })
    await dlq.close()
  })

  it('counts a run that did part of its work', async () => {
    const { dlq, clock } = await aQueue({ backoff: fixed(60_000) })
    dlq.handle('a', () => ({ ok: false, error: refused(), remaining: 'less' }))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(65_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending', retries: 1 })
    await dlq.close()
  })

  it('ends at the time limit of the letter, if it has one', async () => {
    const { dlq, clock } = await aQueue({ ...rarely, backoff: fixed(60_000), retryForMs: hourMs })
    dlq.handle('a', () => Promise.reject(refused()))
    const { id } = await dlq.enqueue({ type: 'a' }, refused())
    dlq.start()
    await clock.advance(hourMs - 60_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'pending' })
    await clock.advance(2 * 60_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'exhausted' })
    await dlq.close()
  })
})
