import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/letter/letter.ts'
import { WorkerRegistry } from '../../src/redelivery/worker-registry.ts'
import { memoryStore } from '../../src/stores/memory/memory.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

/**
 * A registry on a fresh store, and another worker `w` that the test plays by writing its record.
 */
async function setUp(sweepMs = 5000, value: Json = { queues: ['a'] }) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const registry = new WorkerRegistry({ store, clock, worker: 'me', sweepMs })
  const write = () => store.records.put('worker', 'w', value)
  await write()
  await registry.heartbeat()
  /** One heartbeat every second, each after what the test does. */
  const beat = async (seconds: number, each: () => unknown = () => {}): Promise<void> => {
    for (let second = 1; second <= seconds; second++) {
      await clock.advance(1000)
      await each()
      await registry.heartbeat()
    }
  }
  const isLive = async (): Promise<boolean> => {
    const record = await store.records.get('worker', 'w')
    expect(registry.handledQueues.has('a')).toBe(record !== undefined)
    return record !== undefined
  }
  return { clock, store, registry, write, beat, isLive }
}

describe('WorkerRegistry', () => {
  it('publishes the queues of this worker with each heartbeat, and removes them on leave', async () => {
    const { store, clock, registry } = await setUp()
    registry.addQueue('mine')
    await registry.heartbeat()
    expect((await store.records.get('worker', 'me'))?.value).toEqual({
      queues: ['mine'],
      seenAt: new Date(clock.now()).toISOString(),
      sweepMs: 5000,
    })
    expect(registry.handledQueues).toEqual(new Set(['a', 'mine']))
    await registry.leave()
    expect(await store.records.get('worker', 'me')).toBeUndefined()
  })

  it('counts the live workers of queues, and at least this one', async () => {
    const { store, registry } = await setUp()
    registry.addQueue('b')
    expect(registry.countWorkers(['b'])).toBe(1)
    await registry.heartbeat()
    await store.records.put('worker', 'other', { queues: ['b', 'c'] })
    await registry.heartbeat()
    const counts = [['a'], ['b'], ['a', 'b'], ['none']].map((queues) =>
      registry.countWorkers(queues),
    )
    expect(counts).toEqual([1, 2, 3, 1])
  })

  it('treats a worker as live while its record changes', async () => {
    const { beat, write, isLive } = await setUp()
    await beat(300, write)
    expect(await isLive()).toBe(true)
  })

  it.each<[string, number, Json, number]>([
    ['a minute and three of our intervals', 75, { queues: ['a'] }, 5000],
    ['a minute and three of its intervals', 660, { queues: ['a'], sweepMs: 200_000 }, 5000],
    ['a minute and three of our long intervals', 660, { queues: ['a'] }, 200_000],
  ])('treats a worker as dead once it is silent longer than %s', async (_, seconds, value, ms) => {
    const { beat, isLive } = await setUp(ms, value)
    await beat(seconds)
    expect(await isLive()).toBe(true)
    await beat(1)
    expect(await isLive()).toBe(false)
  })

  it('removes a worker whose record is malformed once it is silent', async () => {
    const { beat, store } = await setUp(5000, null)
    await beat(76)
    expect(await store.records.get('worker', 'w')).toBeUndefined()
  })

  it('restarts the timeout of a worker that left and registered again', async () => {
    const { beat, write, store, isLive } = await setUp()
    await beat(70)
    await store.records.remove('worker', 'w')
    await beat(1)
    await write()
    await beat(75)
    expect(await isLive()).toBe(true)
  })

  it('treats no worker as dead after a long gap between its own heartbeats', async () => {
    const { clock, registry, beat, isLive } = await setUp()
    await clock.advance(600_000)
    await registry.heartbeat()
    await beat(75)
    expect(await isLive()).toBe(true)
    await beat(1)
    expect(await isLive()).toBe(false)
  })
})
