import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import type { Handler } from '../../src/redelivery/run.ts'
import { immediate } from '../../src/policy/backoff.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import type { ClaimRequest } from '../../src/store.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { aQueue, deferred, refused, type QueueBench } from '../a-queue.ts'

const claimMs = 10
const pollMs = 1000

/** A queue with two slots and eight due letters, whose claims take 10 ms. */
async function aSlowStore(
  handler: (bench: QueueBench) => Handler,
  options: QueueOptions = {},
): Promise<QueueBench & { claims: () => number }> {
  let claims = 0
  const settings = { maxConcurrent: 2, pollMs, breaker: false, concurrency: false, ...options }
  const bench = await aQueue({ backoff: immediate(), ...settings } as QueueOptions, (fake) => {
    const store = memoryStore({ clock: fake })
    const claim = store.claim.bind(store)
    return Object.assign(store, {
      claim: async (request: ClaimRequest) => {
        claims += 1
        await sleep(fake, claimMs)
        return claim(request)
      },
    })
  })
  const failures = Array.from({ length: 8 }, (_, payload) => ({
    operation: { type: 'a', payload },
    error: refused(),
  }))
  await bench.dlq.enqueueAll(failures)
  bench.dlq.handle('a', handler(bench))
  bench.dlq.start()
  return { ...bench, claims: () => claims }
}

const states = async ({ dlq }: QueueBench) => (await dlq.stats()).states

/** Two letters have run, two run until `finish`, and two wait for a slot. */
async function withWaitingLetters(): Promise<
  QueueBench & { runs: () => number; finish: () => void }
> {
  const { promise, resolve } = deferred()
  let runs = 0
  const bench = await aSlowStore(
    ({ clock }) =>
      () =>
        ++runs <= 2 ? sleep(clock, 1) : promise,
  )
  await bench.clock.advance(1 + 3 * claimMs)
  return { ...bench, runs: () => runs, finish: () => resolve() }
}

/** Advances until all letters are resolved. At most two of them are claimed at any time. */
async function expectNoClaimsAhead(bench: QueueBench): Promise<void> {
  for (let ms = 0; ms < 40 * claimMs; ms++) {
    await bench.clock.advance(1)
    expect((await states(bench)).retrying).toBeLessThanOrEqual(2)
  }
  expect(await states(bench)).toMatchObject({ resolved: 8 })
}

describe('claiming ahead', () => {
  it('claims the next letters while runs that are shorter than claims go on', async () => {
    const bench = await aSlowStore(
      ({ clock }) =>
        () =>
          sleep(clock, 1),
    )
    await bench.clock.advance(claimMs)
    // No run has ended yet: how long they take is unknown.
    expect(bench.claims()).toBe(1)
    await bench.clock.advance(1 + claimMs)
    expect(await states(bench)).toMatchObject({ resolved: 2, retrying: 2 })
    expect(bench.claims()).toBe(3)
    await bench.clock.advance(10 * claimMs)
    expect(await states(bench)).toMatchObject({ resolved: 8 })
    await bench.dlq.close()
  })

  it('claims only for free slots while runs take longer than claims', async () => {
    const bench = await aSlowStore(
      ({ clock }) =>
        () =>
          sleep(clock, 2 * claimMs),
    )
    await expectNoClaimsAhead(bench)
    await bench.dlq.close()
  })

  it('does not claim ahead from a queue with a limit', async () => {
    const bench = await aSlowStore(
      ({ clock }) =>
        () =>
          sleep(clock, 1),
      { concurrency: {} },
    )
    await expectNoClaimsAhead(bench)
    await bench.dlq.close()
  })

  it('releases letters that waited for a slot longer than a poll, uncounted', async () => {
    const bench = await withWaitingLetters()
    expect(await states(bench)).toMatchObject({ resolved: 2, retrying: 4, pending: 2 })
    expect(bench.runs()).toBe(4)
    await bench.clock.advance(pollMs)
    expect(await states(bench)).toMatchObject({ resolved: 2, retrying: 2, pending: 4 })
    const { items } = await bench.dlq.find({ state: 'pending' })
    expect(items.map(({ retries }) => retries)).toEqual([0, 0, 0, 0])
    bench.finish()
    await bench.clock.advance(pollMs)
    expect(await states(bench)).toMatchObject({ resolved: 8 })
    await bench.dlq.close()
  })

  it('releases letters that wait when it stops, and runs none of them', async () => {
    const bench = await withWaitingLetters()
    const stopped = bench.dlq.stop()
    await bench.clock.advance(claimMs)
    bench.finish()
    await bench.clock.advance(claimMs)
    await stopped
    expect(bench.runs()).toBe(4)
    expect(await states(bench)).toMatchObject({ resolved: 4, retrying: 0, pending: 4 })
    await bench.dlq.close()
  })
})
