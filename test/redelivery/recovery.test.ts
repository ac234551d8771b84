import { describe, expect, it } from 'vitest'
import { sleep } from '../../src/clock/clock.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { aQueue, timedOut, type QueueBench } from '../a-queue.ts'

const letters = 200
const runMs = 1000
const openMs = 10_000

interface Outage extends QueueBench {
  /** Number of handlers that run now. */
  inFlight: () => number
  end: () => void
}

/** A queue whose service is down, with many letters that wait behind an open breaker. */
async function anOutage(options: QueueOptions): Promise<Outage> {
  const bench = await aQueue({
    maxConcurrent: 32,
    backoff: fixed(1000),
    breaker: { failures: 5, openMs, maxOpenMs: openMs },
    ...options,
  })
  let isUp = false
  let inFlight = 0
  bench.dlq.handle('a', async () => {
    inFlight++
    await sleep(bench.clock, runMs)
    inFlight--
    if (!isUp) throw timedOut()
  })
  const failures = Array.from({ length: letters }, (_, payload) => ({
    operation: { type: 'a', payload },
    error: timedOut(),
  }))
  await bench.dlq.enqueueAll(failures)
  bench.dlq.start()
  await bench.clock.advance(60_000)
  expect(bench.dlq.flowControl().map(({ state }) => state)).not.toContain('closed')
  const end = (): void => void (isUp = true)
  return { ...bench, inFlight: () => inFlight, end }
}

/** The numbers of runs at once, one for each second since the breaker closed. */
async function afterClosing({ dlq, clock, eventsOf, inFlight }: Outage): Promise<number[]> {
  const seen: number[] = []
  while (seen.length < 9) {
    await clock.advance(runMs)
    if (eventsOf('breaker').at(-1)?.state === 'closed') seen.push(inFlight())
  }
  expect(dlq.flowControl()[0]).toMatchObject({ state: 'closed' })
  return seen
}

describe('after an outage with 200 letters that wait', () => {
  const settings: [string, QueueOptions][] = [
    ['adaptive limits', {}],
    ['concurrency: false', { concurrency: false }],
  ]
  it.each(settings)('runs grow step by step with %s', async (_name, options) => {
    const outage = await anOutage(options)
    outage.end()
    const seen = await afterClosing(outage)
    expect(seen.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 32])
    expect(Math.max(...seen)).toBe(32)
    await outage.clock.advance(10 * 60_000)
    expect((await outage.dlq.stats()).states).toMatchObject({ resolved: letters })
    expect(outage.dlq.flowControl()[0]).not.toHaveProperty('limit')
    await outage.dlq.close()
  })

  it('flowControl shows the limit and that it grows', async () => {
    const outage = await anOutage({})
    outage.end()
    const seen: unknown[] = []
    outage.dlq.on('breaker', ({ state }) => {
      if (state === 'closed') queueMicrotask(() => seen.push(outage.dlq.flowControl()[0]))
    })
    await outage.clock.advance(2 * openMs)
    expect(seen).toMatchObject([{ state: 'closed', limit: 1, recovering: true }])
    await outage.clock.advance(10 * 60_000)
    expect(outage.dlq.flowControl()[0]).not.toHaveProperty('recovering')
    await outage.dlq.close()
  })
})
