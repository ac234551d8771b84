import { describe, expect, it } from 'vitest'
import { eachStore, withQueue } from '../each-store.ts'
import { aQueue } from '../a-queue.ts'

describe.each(eachStore)('queues() on %s', (_, open) => {
  it('counts letters by state and names the oldest open one', { timeout: 60_000 }, () =>
    withQueue(open, {}, async (dlq) => {
      const enqueue = async (queue: string, tenant: string): Promise<string> =>
        (await dlq.enqueue({ type: queue, payload: {} }, new Error('x'), { tenant })).id
      const resolved = await enqueue('b', 'acme')
      const oldest = await enqueue('b', 'acme')
      await enqueue('b', 'umbrella')
      await enqueue('a', 'umbrella')
      await dlq.resolve(resolved)
      await dlq.pauseQueue('c', 'mia', 'later')
      const { items } = await dlq.queues()
      expect(items).toMatchObject([
        { queue: 'a', count: 1, states: { pending: 1 } },
        { queue: 'b', count: 3, states: { pending: 2, resolved: 1 }, oldest: { id: oldest } },
        { queue: 'c', count: 0, paused: { by: 'mia' } },
      ])
      const ofTenant = await dlq.queues({ tenant: 'acme' })
      expect(ofTenant.items).toMatchObject([{ queue: 'b', count: 2, oldest: { id: oldest } }])
      expect((await dlq.queues({ queue: [] })).items).toEqual([])
      const page = await dlq.queues({ limit: 1 })
      expect(await dlq.queues({ limit: 2, cursor: page.cursor! })).toEqual({
        items: items.slice(1),
      })
    }),
  )
})

it.each([
  [{ limit: 0 }, 'limit must be an integer from 1 to 1000, got 0'],
  [{ queues: 'a' }, '"queues"'],
  [{ tenant: 1 }, 'tenant must be a string'],
])('queues(%j) is rejected', async (query, message) => {
  const { dlq } = await aQueue()
  await expect(dlq.queues(query as object)).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    message: expect.stringContaining(message) as string,
  })
  await dlq.close()
})
