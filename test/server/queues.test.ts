import { describe, expect, it } from 'vitest'
import { withServerInEachTest, type TestServer } from './a-server.ts'

let server: TestServer

withServerInEachTest((started) => (server = started), {
  alerts: [
    {
      name: 'parked',
      when: { metric: 'parked', above: 0 },
      queue: 'charge-card',
      severity: 'warning',
    },
    { name: 'all', when: { metric: 'parked', above: 0 }, severity: 'critical' },
  ],
})

async function capture(queue: string, tenant = 'acme'): Promise<string> {
  const error = new Error('the gateway said no to 4111')
  const { id } = await server.dlq.enqueue({ type: queue, payload: {} }, error, { tenant })
  return id
}

describe('queues over HTTP', () => {
  it('lists queues with counts, the oldest open letter and whether they are paused', async () => {
    const client = await server.client()
    const resolved = await capture('charge-card')
    await server.dlq.resolve(resolved)
    const oldest = await capture('charge-card')
    const archived = await capture('charge-card')
    await server.dlq.archive(archived)
    await client.pauseQueue({ queue: 'empty', reason: 'not yet' })
    const { items } = await client.listQueues()
    expect(items).toMatchObject([
      {
        queue: 'charge-card',
        count: 2,
        states: { pending: 1, resolved: 1, archived: 1, parked: 0 },
        oldest: { id: oldest },
      },
      { queue: 'empty', count: 0, paused: { by: 'mia', reason: 'not yet' } },
    ])
    expect(items[1]).not.toHaveProperty('oldest')
  })

  it('lists queues a page at a time, by name', async () => {
    const client = await server.client()
    for (const queue of ['c', 'a', 'b']) await capture(queue)
    const first = await client.listQueues({ limit: 2 })
    const second = await client.listQueues({ limit: 2, cursor: first.cursor })
    expect(first.items.map(({ queue }) => queue)).toEqual(['a', 'b'])
    expect(second).toMatchObject({ items: [{ queue: 'c' }] })
    expect(second.cursor).toBeUndefined()
  })

  it('counts only letters in the scope', async () => {
    await capture('charge-card')
    await capture('charge-card', 'umbrella')
    await capture('send-mail', 'umbrella')
    await server.dlq.pauseQueue('secret-queue', 'mia', 'x')
    const acme = await server.client({ tenants: ['acme'] })
    expect((await acme.listQueues()).items).toMatchObject([{ queue: 'charge-card', count: 1 }])
    const mail = await server.client({ queues: ['send-mail'] })
    expect((await mail.listQueues()).items).toMatchObject([{ queue: 'send-mail', count: 1 }])
    const both = await server.client({ tenants: ['acme', 'umbrella'] })
    await expect(both.listQueues()).rejects.toMatchObject({
      problem: { status: 403, detail: expect.stringContaining('set `tenant` to one') as string },
    })
    expect((await both.listQueues({ tenant: 'umbrella' })).items).toHaveLength(2)
  })

  it('shows flow control, alerts, health and metrics', async () => {
    const client = await server.client()
    const [one, two] = [await capture('charge-card'), await capture('send-mail')]
    server.dlq.handle('charge-card', async () => {})
    server.dlq.handle('send-mail', async () => {})
    await server.dlq.park(one)
    await server.dlq.park(two)
    server.dlq.start()
    await server.clock.advance(120_000)
    await expect.poll(async () => (await client.listAlerts()).length).toBe(2)
    const scoped = await server.client({ queues: ['charge-card'] })
    expect(await scoped.listAlerts()).toMatchObject([{ name: 'parked', queue: 'charge-card' }])
    expect((await client.getHealth()).alerts).toHaveLength(2)
    expect(await client.getMetrics()).toMatchObject({ totalEnqueued: 2, totalManualReviews: 2 })
    const names = (list: { name: string }[]): string[] => list.map(({ name }) => name)
    expect(names(await client.getFlowControl())).toEqual(names(server.dlq.flowControl()))
    expect(names(await scoped.getFlowControl())).not.toContain('send-mail')
  })

  it('returns metrics since an earlier result, and counts by severity and source', async () => {
    const client = await server.client()
    await capture('charge-card')
    const since = await client.getMetrics()
    await capture('send-mail')
    expect(await client.getMetricsSince({ since })).toMatchObject({
      totalEnqueued: 1,
      enqueuedByType: { 'send-mail': 1 },
      partial: true,
    })
    expect(await client.getStatistics()).not.toHaveProperty('sources')
    const { sources, severities } = await client.getStatistics({ by: ['source', 'severity'] })
    expect(sources).toMatchObject({ operation: 2, mailbox: 0 })
    expect(Object.values(severities!).reduce((sum, count) => sum + count)).toBe(2)
    expect(await client.getStatistics({ by: 'source' })).not.toHaveProperty('severities')
  })

  it('backtests rules on letters in the scope', async () => {
    await capture('charge-card')
    await capture('send-mail')
    const rules = [
      {
        name: 'refused',
        when: { message: 'said no' },
        category: 'permanent' as const,
        maxRetries: 0,
      },
    ]
    const client = await server.client()
    expect(await client.backtest({ rules })).toMatchObject({ letters: 2, newlyParked: 2 })
    const scoped = await server.client({ queues: ['send-mail'] })
    expect(await scoped.backtest({ rules, limit: 10 })).toMatchObject({
      letters: 1,
      complete: true,
    })
    await expect(client.backtest({ policy: { kind: 'fixed' } as never })).rejects.toMatchObject({
      problem: { status: 400, detail: expect.stringContaining('policy') as string },
    })
  })

  it('says that the store has no full-text search', async () => {
    const client = await server.client()
    await expect(client.searchLetters({ words: 'gateway' })).rejects.toMatchObject({
      problem: { status: 400, detail: expect.stringContaining('full-text search') as string },
    })
  })

  it('searches letters in the scope, where the store can', async () => {
    const id = await capture('charge-card')
    const asked: unknown[] = []
    server.store.search = async (words, options) => {
      asked.push(words, options)
      return (await server.store.find({ ids: [id] })).items
    }
    const client = await server.client({ queues: ['charge-card'] })
    const found = await client.searchLetters({ words: 'said no', payload: true, state: 'pending' })
    expect(found.map((letter) => letter.id)).toEqual([id])
    const among = { queue: ['charge-card'], state: 'pending' }
    expect(asked).toEqual(['said no', { payload: true, among }])
  })
})

describe('one queue over HTTP', () => {
  it('shows its counts, the policy in force, its pause and its limits', async () => {
    const client = await server.client()
    await capture('charge-card')
    server.dlq.handle('charge-card', () => {}, { maxRetries: 7, retention: { archiveAfterMs: 5 } })
    await client.pauseQueue({ queue: 'charge-card', reason: 'the gateway is down' })
    const queue = await client.getQueue({ queue: 'charge-card' })
    expect(queue).toMatchObject({
      queue: 'charge-card',
      count: 1,
      states: { pending: 1 },
      paused: { by: 'mia', reason: 'the gateway is down' },
      policy: { maxRetries: 7, retention: { archiveAfterMs: 5 }, timeoutMs: 300_000 },
    })
    expect(Object.keys(queue.policy)).not.toContain('queues')
  })

  it('shows the policy of a name without letters', async () => {
    const client = await server.client()
    const queue = await client.getQueue({ queue: 'no letters yet' })
    expect(queue).toMatchObject({ count: 0, policy: { maxRetries: 3, replay: 'safe' } })
    const lastHour = async () => (await client.getQueue({ queue: 'no letters yet' })).lastHour
    await expect.poll(lastHour).toEqual({ captured: 0, resolved: 0, failed: 0 })
  })
})
