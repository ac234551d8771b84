import { describe, expect, it } from 'vitest'
import { immediate } from '../../src/policy/backoff.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { aQueue, refused } from '../a-queue.ts'

describe('Sweeper', () => {
  it('archives what is past its retention, and removes what was archived long enough', async () => {
    const { dlq, clock } = await aQueue({
      queues: { short: { retention: { archiveAfterMs: 60_000, removeAfterMs: 120_000 } } },
    })
    const gone = await dlq.enqueue({ type: 'short' }, refused())
    const kept = await dlq.enqueue({ type: 'long' }, refused())
    await dlq.resolve(gone.id)
    await dlq.resolve(kept.id)
    dlq.start()
    await clock.advance(70_000)
    expect((await dlq.get(gone.id))!.state).toBe('archived')
    expect((await dlq.get(kept.id))!.state).toBe('resolved')
    await clock.advance(130_000)
    expect(await dlq.get(gone.id)).toBeUndefined()
    expect(await dlq.get(kept.id)).toBeDefined()
    await dlq.close()
  })

  it('parks what expired before it could run', async () => {
    const { dlq, clock } = await aQueue()
    dlq.handle('a', () => {})
    const { id } = await dlq.enqueue({ type: 'a' }, refused(), {
      expiresAt: toTimestamp(clock.now() + 10_000),
    })
    dlq.start()
    await clock.advance(20_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'expired' })
    await dlq.close()
  })

  it('parks what no worker can run, unburnt, and lets it go on when a handler comes', async () => {
    const { dlq, clock, heard } = await aQueue({ backoff: immediate() })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'mystery' }, refused())
    await clock.advance(10_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler', retries: 0 })
    dlq.handle('mystery', () => {})
    await clock.advance(10_000)
    expect(heard('resolved')).toHaveLength(1)
    await dlq.close()
  })

  it('leaves alone what another living worker can run', async () => {
    const { dlq, clock, store } = await aQueue({ backoff: immediate() })
    await store.records.put('worker', 'other', {
      queues: ['theirs'],
      seenAt: toTimestamp(clock.now() + 30_000),
    })
    dlq.start()
    const { id } = await dlq.enqueue({ type: 'theirs' }, refused())
    await clock.advance(20_000)
    expect((await dlq.get(id))!.state).toBe('pending')
    await clock.advance(200_000)
    expect(await dlq.get(id)).toMatchObject({ state: 'parked', reason: 'no-handler' })
    await dlq.close()
  })

  it('parks what waits for a letter that was archived or removed', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    dlq.handle('a', () => {})
    const first = await dlq.enqueue({ type: 'a' }, refused())
    const second = await dlq.enqueue({ type: 'a' }, refused(), { dependsOn: [first.id] })
    await dlq.remove(first.id)
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(second.id)).toMatchObject({ state: 'parked', reason: 'dependency-failed' })
    await dlq.close()
  })
})
