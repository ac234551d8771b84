import { describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { dlqHealth } from '../../src/loops/dlq-health.ts'
import { aLoop, faulty } from './a-loop.ts'

describe('dlqHealth', () => {
  it('is healthy below the threshold and degraded from it on', async () => {
    const { dlq, clock } = aLoop()
    await dlq.send({})
    expect(await dlqHealth(dlq, { threshold: 2, clock })).toEqual({
      status: 'healthy',
      dlq: { name: 'requests-dlq', depth: 1, threshold: 2, oldestAgeSeconds: 0 },
      problems: [],
    })
    await dlq.send({})
    expect(await dlqHealth(dlq, { threshold: 2, clock })).toMatchObject({
      status: 'degraded',
      problems: ['2 dead letters, the threshold is 2'],
    })
  })

  it('is degraded when the oldest message has waited for too long', async () => {
    const { dlq, clock } = aLoop()
    await dlq.send({})
    await clock.advance(61_000)
    expect(await dlqHealth(dlq, { oldestAgeSeconds: 60, clock })).toMatchObject({
      status: 'degraded',
      dlq: { threshold: 100, oldestAgeSeconds: 61 },
      problems: ['the oldest dead letter has waited for 61 s'],
    })
  })

  it('is degraded, without an exception, when the broker is unreachable', async () => {
    const { dlq } = aLoop()
    const broken = faulty(dlq)
    broken.faults.approximateCount = new RedriveError('MAILBOX_UNAVAILABLE', 'redis://secret@host')
    expect(await dlqHealth(broken.mailbox)).toEqual({
      status: 'degraded',
      dlq: { name: 'requests-dlq', threshold: 100 },
      problems: ['requests-dlq cannot be inspected: MAILBOX_UNAVAILABLE'],
    })
  })

  it('emits the depth to its listeners', async () => {
    const bench = aLoop()
    await dlqHealth(bench.dlq, { clock: bench.clock, onEvent: bench.onEvent })
    expect(bench.eventsOf('depth')).toMatchObject([{ depth: 0 }])
  })
})
