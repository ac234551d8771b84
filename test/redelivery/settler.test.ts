import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import type { Change } from '../../src/letter/moves.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { aQueue, refused, type QueueBench } from '../a-queue.ts'

const unavailable = new RedriveError('STORE_UNAVAILABLE', 'the store does not answer')

/** A queue with these letters that are due, and the calls of `apply` that settle them. */
async function aSettlingQueue(count: number) {
  const bench = await aQueue({ backoff: immediate() })
  const { dlq, store } = bench
  const failures = Array.from({ length: count }, (_, payload) => ({
    operation: { type: 'a', payload },
    error: refused(),
  }))
  const ids = await dlq.enqueueAll(failures)
  const calls: (readonly Change[])[] = []
  const apply = store.apply.bind(store)
  store.apply = (changes) => {
    calls.push(changes)
    return apply(changes)
  }
  return { ...bench, ids, calls }
}

async function drain({ dlq, clock }: QueueBench, handler: () => unknown = () => {}): Promise<void> {
  dlq.handle('a', handler)
  dlq.start()
  await clock.advance(1000)
}

describe('settling', () => {
  it('writes the results of one tick in one call, and emits the events in their order', async () => {
    const queue = await aSettlingQueue(8)
    await drain(queue)
    expect(queue.calls.map((changes) => changes.map(({ id }) => id))).toEqual([queue.ids])
    expect(queue.eventsOf('resolved').map(({ letter }) => letter.id)).toEqual(queue.ids)
    await queue.dlq.close()
  })

  it('writes the other results when the store cannot write one of them', async () => {
    const queue = await aSettlingQueue(4)
    const { store, ids } = queue
    const apply = store.apply.bind(store)
    store.apply = async (changes) => {
      if (changes.some(({ id }) => id === ids[1])) throw unavailable
      return apply(changes)
    }
    await drain(queue)
    const { states } = await queue.dlq.stats()
    expect(states).toMatchObject({ resolved: 3, retrying: 1 })
    const settled = queue.eventsOf('resolved').map(({ letter }) => letter.id)
    expect(settled.toSorted()).toEqual(ids.filter((id) => id !== ids[1]).toSorted())
    store.apply = apply
    await queue.clock.advance(10_000)
    expect((await queue.dlq.stats()).states).toMatchObject({ resolved: 4, retrying: 0 })
    await queue.dlq.close()
  })

  it('recognises results that were written although the call rejected', async () => {
    const queue = await aSettlingQueue(4)
    const { store } = queue
    const apply = store.apply.bind(store)
    store.apply = async (changes) => {
      const results = await apply(changes)
      if (changes.length > 1) throw unavailable
      return results
    }
    await drain(queue)
    expect(queue.eventsOf('resolved')).toHaveLength(4)
    expect(queue.eventsOf('lease-lost')).toEqual([])
    expect(queue.eventsOf('error').map(({ during }) => during)).toEqual(
      queue.ids.map((id) => `settling of letter ${id}`),
    )
    await queue.dlq.close()
  })

  it('gives up when the leases have ended, and a stop waits until then', async () => {
    const queue = await aSettlingQueue(2)
    const { dlq, clock, store } = queue
    store.apply = () => Promise.reject(unavailable)
    await drain(queue)
    let isStopped = false
    const stopping = dlq.stop().then(() => (isStopped = true))
    await clock.advance(1000)
    expect(isStopped).toBe(false)
    await clock.advance(120_000)
    await stopping
    expect((await dlq.stats()).states).toMatchObject({ retrying: 2 })
    await dlq.close()
  })

  it('releases running letters at a stop in one call, uncounted', async () => {
    const queue = await aSettlingQueue(3)
    const { dlq, clock, calls } = queue
    const end = Promise.withResolvers<void>()
    await drain(queue, () => end.promise)
    const stopping = dlq.stop({ drainMs: 100 })
    await clock.advance(10_000)
    await stopping
    expect(calls.map((changes) => changes.map(({ action }) => action))).toEqual([
      ['release', 'release', 'release'],
    ])
    const { items } = await dlq.find()
    expect(items.map(({ state, retries }) => ({ state, retries }))).toEqual(
      Array.from({ length: 3 }, () => ({ state: 'pending', retries: 0 })),
    )
    end.resolve()
    await dlq.close()
  })
})
