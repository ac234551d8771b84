import { describe, expect, it } from 'vitest'
import { DLQConsumer } from '../../src/loops/dlq-consumer.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { RedriveError } from '../../src/errors.ts'
import { fixed } from '../../src/policy/backoff.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aLoop, faulty } from './a-loop.ts'

describe('the status of a loop', () => {
  it('counts deliveries that were received, processed, failed and dead-lettered', async () => {
    const { parts, requests, dlq, clock, settle } = aLoop()
    const loop = new MainLoop<{ ok: boolean }>({
      ...parts,
      backoff: fixed(1000),
      dlq: { to: dlq, policy: new DLQPolicy({ maxDeliveryCount: 2 }) },
      process: ({ ok }) => {
        if (!ok) throw new TypeError('no such order')
      },
    })
    const idle = { name: 'requests', kind: 'main', mailbox: 'requests', broker: 'memory' }
    const counts = { received: 0, processed: 0, failed: 0, dead: 0 }
    const breaker = { state: 'closed' }
    const deadLetters = 'requests-dlq'
    expect(loop.status()).toEqual({ ...idle, running: false, counts, deadLetters, breaker })
    void loop.run()
    await requests.send({ ok: true })
    await requests.send({ ok: false })
    await settle()
    expect(loop.status()).toMatchObject({
      running: true,
      counts: { received: 2, processed: 1, failed: 1, dead: 0 },
      lastActivityAt: '2026-01-01T00:00:00.000Z',
    })
    await clock.advance(1000)
    expect(loop.status()).toMatchObject({
      counts: { received: 3, processed: 1, failed: 1, dead: 1 },
      lastActivityAt: '2026-01-01T00:00:01.000Z',
    })
    await loop.shutdown()
  })

  it('has the state of the breaker, and not the error that opened it', async () => {
    const { parts, requests, settle } = aLoop()
    const loop = new MainLoop({
      ...parts,
      breaker: { failures: 1, openMs: 5000 },
      process: () => {
        throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
      },
    })
    void loop.run()
    await requests.send({})
    await settle()
    const status = loop.status()
    expect(status.breaker).toEqual({ state: 'open', until: '2026-01-01T00:00:05.000Z' })
    expect(JSON.stringify(status)).not.toContain('refused')
    await loop.shutdown()
  })

  it('says why a loop receives nothing', async () => {
    const { parts, requests, settle } = aLoop()
    const { mailbox, faults } = faulty(requests)
    faults.receive = new RedriveError('MAILBOX_UNAVAILABLE', 'redis://user:pass@host is down')
    const loop = new MainLoop({ ...parts, requests: mailbox, process: () => {} })
    void loop.run()
    await settle()
    expect(loop.status().problem).toBe('cannot receive from requests: MAILBOX_UNAVAILABLE')
    await loop.shutdown()
  })

  it('counts messages that a consumer of dead letters handles and parks', async () => {
    const { clock, dlq, settle } = aLoop()
    const consumer = new DLQConsumer({
      mailbox: dlq,
      clock,
      handler: ({ body }) =>
        body.size > 10 ? { action: 'park', why: 'too large' } : { action: 'discarded' },
    })
    void consumer.run()
    await dlq.send('small')
    await dlq.send('much larger than ten bytes')
    await settle()
    expect(consumer.status()).toMatchObject({
      kind: 'dlq-consumer',
      counts: { received: 2, processed: 1, failed: 0, dead: 1 },
    })
    await consumer.shutdown()
  })
})
