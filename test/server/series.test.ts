import { describe, expect, it } from 'vitest'
import type { OutputOf } from '../../src/api/endpoints.ts'
import { toMs, toTimestamp } from '../../src/letter/time.ts'
import { Series } from '../../src/server/series.ts'
import type { FakeClock } from '../../src/testing/index.ts'
import { eachStore, withQueue } from '../each-store.ts'
import { withServerInEachTest, type TestServer } from './a-server.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

function onError(error: unknown): never {
  throw error
}

describe.each(eachStore)('samples in %s', (_, open) => {
  it('are taken once in five minutes, whoever takes them', async () => {
    await withQueue(open, {}, async ({ store }, clock) => {
      const servers = [1, 2, 3].map(() => new Series({ store, clock, onError }))
      await Promise.all(servers.map((series) => series.sample()))
      clock.set(clock.now() + 4 * minuteMs)
      await Promise.all(servers.map((series) => series.sample()))
      expect(await store.records.list('sample')).toHaveLength(1)
      clock.set(clock.now() + minuteMs)
      await Promise.all(servers.map((series) => series.sample()))
      const samples = await store.records.list('sample')
      expect(samples.map(({ version }) => version)).toEqual([1, 1])
    })
  })

  it('count captured, resolved and failed letters, and the letters of each state', async () => {
    await withQueue(open, {}, async (dlq, clock) => {
      const { store } = dlq
      const series = new Series({ store, clock, onError })
      const start = clock.now()
      await series.sample()
      const capture = async (type: string): Promise<string> =>
        (await dlq.enqueue({ type, payload: {} }, new Error('no'))).id
      const ids = [await capture('a'), await capture('a'), await capture('b')]
      await dlq.resolve(ids[0]!)
      await dlq.fail(ids[1]!, new Error('again'))
      clock.set(start + 5 * minuteMs)
      await series.sample()
      await capture('constructor')
      clock.set(start + 10 * minuteMs)
      await series.sample()
      const range = { from: toTimestamp(start), step: '5m' } as const
      const valuesOf = async (
        metric: 'captured' | 'resolved' | 'failed',
        queues?: string[],
      ): Promise<unknown> =>
        (await series.query({ ...range, metric, queues, byQueue: false })).lines[0]!.values
      expect(await valuesOf('captured')).toEqual([3, 1])
      expect(await valuesOf('captured', ['a'])).toEqual([2, 0])
      expect(await valuesOf('resolved')).toEqual([1, 0])
      expect(await valuesOf('failed')).toEqual([1, 0])
      const depth = await series.query({ ...range, metric: 'depth', byQueue: true })
      const pending = depth.lines.filter(({ state }) => state === 'pending')
      expect(pending).toMatchObject([
        { queue: 'a', values: [1, 1] },
        { queue: 'b', values: [1, 1] },
        { queue: 'constructor', values: [0, 1] },
      ])
      expect(depth.times).toEqual([5, 10].map((minutes) => toTimestamp(start + minutes * minuteMs)))
      expect(await series.lastHour('a')).toEqual({ captured: 2, resolved: 1, failed: 1 })
    })
  })
})

describe('old samples', () => {
  const [, open] = eachStore[0]!

  it('become one for each hour after two days, and are removed after 30 days', async () => {
    await withQueue(open, {}, async ({ store }, clock) => {
      const series = new Series({ store, clock, onError })
      const start = clock.now()
      for (let at = start; at < start + 3 * dayMs; at += 5 * minuteMs) {
        clock.set(at)
        await series.sample()
      }
      const ages = async (): Promise<number[]> =>
        (await store.records.list('sample')).map(({ id }) => clock.now() - toMs(id))
      const young = (await ages()).filter((age) => age <= 2 * dayMs)
      const old = (await ages()).filter((age) => age > 2 * dayMs)
      expect(young).toHaveLength((2 * dayMs) / (5 * minuteMs) + 1)
      expect(old).toHaveLength(24)
      clock.set(start + 40 * dayMs)
      await series.sample()
      expect(await ages()).toEqual([0])
    })
  })

  it('leave no value for the time in which no server ran, and count what happened then later', async () => {
    await withQueue(open, {}, async (dlq, clock) => {
      const { store } = dlq
      const series = new Series({ store, clock, onError })
      const start = clock.now()
      await series.sample()
      clock.set(start + hourMs)
      await dlq.enqueue({ type: 'a', payload: {} }, new Error('no'))
      clock.set(start + 2 * hourMs)
      await series.sample()
      const { lines } = await series.query({
        metric: 'captured',
        byQueue: false,
        from: toTimestamp(start),
        step: '1h',
      })
      expect(lines).toEqual([{ values: [null, 1] }])
    })
  })
})

describe('series over HTTP', () => {
  let server: TestServer
  withServerInEachTest((started) => (server = started))

  async function twoSamples(clock: FakeClock): Promise<void> {
    await expect.poll(() => server.store.records.list('sample')).toHaveLength(1)
    for (const type of ['charge-card', 'send-mail'])
      await server.dlq.enqueue({ type, payload: {} }, new Error('no'))
    await clock.advance(5 * minuteMs)
    await expect.poll(() => server.store.records.list('sample')).toHaveLength(2)
  }

  const from = '2026-01-01T00:00:00.000Z'
  const captured = { metric: 'captured', from, step: '5m' } as const

  it('come from samples that the server takes while it runs', async () => {
    await twoSamples(server.clock)
    const client = await server.client()
    const all = await client.getSeries(captured)
    expect(all).toMatchObject({ step: '5m', times: ['2026-01-01T00:05:00.000Z'] })
    expect(all.lines).toEqual([{ values: [2] }])
    const detail = await client.getQueue({ queue: 'charge-card' })
    expect(detail.lastHour).toEqual({ captured: 1, resolved: 0, failed: 0 })
  })

  it('show callers with queues in their scope only these', async () => {
    await twoSamples(server.clock)
    const linesOf = async (queue?: string): Promise<OutputOf<'getSeries'>['lines']> => {
      const client = await server.client({ queues: ['charge-card'] })
      const query = queue === undefined ? captured : { ...captured, queue }
      return (await client.getSeries({ ...query, by: 'queue' })).lines
    }
    expect(await linesOf()).toEqual([{ queue: 'charge-card', values: [1] }])
    expect(await linesOf('send-mail')).toEqual([])
  })

  it.each([
    ['too many values', { from: '2025-01-01T00:00:00.000Z', step: '5m' }, 'more than 1000'],
    ['a range in the future', { from: '2027-01-01T00:00:00.000Z' }, '`from`'],
    ['an unknown step', { step: '7m' }, 'step'],
    ['a from that is no timestamp', { from: 'yesterday' }, 'from'],
  ])('reject %s', async (_, query, message) => {
    const client = await server.client()
    const call = client.getSeries({ metric: 'depth', ...query } as never)
    await expect(call).rejects.toThrow(message)
  })
})
