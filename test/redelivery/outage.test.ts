import { describe, expect, it } from 'vitest'
import type { QueueOptions } from '../../src/options.ts'
import { affordable, freshBucket, spend, type Budget } from '../../src/policy/budget.ts'
import { DeadLetterQueue } from '../../src/queue.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock, type FakeClock } from '../../src/testing/fake-clock.ts'
import { refused } from '../a-queue.ts'

const hourMs = 3_600_000

/** Something that letters need: down until told otherwise, and it remembers who came when. */
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

  /** How often the one that came most often came while it was down. */
  mostVisitsWhileDown(): number {
    const counts = new Map<string, number>()
    for (const { id, up } of this.visits) if (!up) counts.set(id, (counts.get(id) ?? 0) + 1)
    return Math.max(0, ...counts.values())
  }

  /** Visits that a bucket of this size, full at the start, could not have paid for. */
  visitsBeyond(budget: Budget): number {
    let bucket = { ...freshBucket(0), tokens: budget.burst ?? budget.perSecond }
    let beyond = 0
    for (const { atMs } of this.visits) {
      if (affordable(bucket, budget, atMs) < 1) beyond++
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
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const service = new Service(clock)
  const all: DeadLetterQueue[] = []
  for (let n = 0; n < workers; n++) {
    const dlq = await DeadLetterQueue.open(store, { ...options, worker: `w${n}`, clock })
    for (const queue of ['charge', 'refund'])
      dlq.handle(queue, ({ letter }) => service.visit(letter.id), { dependency: 'payments' })
    dlq.start()
    all.push(dlq)
  }
  const dlq = all[0]!
  // Workers know of each other after a sweep.
  await clock.advance(6000)
  const failures = Array.from({ length: letters }, (_, n) => ({
    operation: { type: n % 3 === 0 ? 'refund' : 'charge', payload: n },
    error: refused(),
  }))
  await dlq.enqueueAll(failures)
  await clock.advance(2 * hourMs)
  const during = await dlq.stats()
  service.up = true
  const recoveredMs = clock.mono()
  let minutes = 0
  for (; minutes < 60 && (await dlq.stats()).states.resolved < letters; minutes++)
    await clock.advance(60_000)
  const after = await dlq.stats()
  for (const one of all) await one.stop()
  return { service, during, after, recoveredMs, minutes }
}

describe('an outage of two hours with 10,000 letters', () => {
  const budget = { perSecond: 20, burst: 20 }

  it('costs no letter its retries, keeps to the budget, and drains by itself within the hour', async () => {
    const { service, during, after } = await outage({
      letters: 10_000,
      workers: 1,
      options: { dependencies: { payments: { budget } } },
    })
    expect(service.mostVisitsWhileDown()).toBeLessThanOrEqual(2)
    expect(during.states).toMatchObject({ exhausted: 0, parked: 0, resolved: 0 })
    expect(after.states).toMatchObject({ resolved: 10_000, exhausted: 0, parked: 0, pending: 0 })
    expect(service.visitsBeyond(budget)).toBe(0)
  })

  it('is no different when three workers share the dependency', async () => {
    const { service, during, after } = await outage({
      letters: 10_000,
      workers: 3,
      options: { dependencies: { payments: { budget } } },
    })
    expect(service.mostVisitsWhileDown()).toBeLessThanOrEqual(2)
    expect(during.states).toMatchObject({ exhausted: 0, parked: 0, resolved: 0 })
    expect(after.states).toMatchObject({ resolved: 10_000, exhausted: 0, parked: 0, pending: 0 })
    expect(service.visitsBeyond(budget)).toBe(0)
  })

  it('would exhaust letters and ignore the budget without the brakes', async () => {
    const { service, during } = await outage({
      letters: 500,
      workers: 1,
      options: {
        breaker: false,
        concurrency: false,
        dependencies: { payments: { breaker: false } },
      },
    })
    expect(service.mostVisitsWhileDown()).toBe(3)
    expect(during.states.exhausted).toBe(500)
    expect(service.visitsBeyond(budget)).toBeGreaterThan(0)
  })
})

describe('a long outage of a small queue', () => {
  it('tries the same letters again and again without spending their retries', async () => {
    const { service, during, after } = await outage({ letters: 15, workers: 1, options: {} })
    expect(service.mostVisitsWhileDown()).toBeGreaterThan(1)
    expect(during.states).toMatchObject({ exhausted: 0, pending: 15 })
    expect(after.states).toMatchObject({ resolved: 15 })
  })

  it('ends in exhaustion once patience is over', async () => {
    const breaker = { patienceMs: hourMs / 4 }
    const { during } = await outage({
      letters: 15,
      workers: 1,
      options: { breaker, dependencies: { payments: { breaker } } },
    })
    expect(during.states.exhausted).toBeGreaterThan(0)
  })
})
