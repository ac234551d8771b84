import { describe, expect, it } from 'vitest'
import { immediate } from '../../src/policy/backoff.ts'
import { aQueue, deferred, refused } from '../a-queue.ts'

describe('a guarded call', () => {
  it('that a redelivery leaves running makes letters once that is over', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const ship = dlq.guard('ship', async () => Promise.reject(refused()))
    const tick = deferred()
    let poller: Promise<unknown> | undefined
    dlq.handle('orders', () => {
      poller = tick.promise.then(() => ship(undefined)).catch(() => {})
    })
    const { id } = await dlq.enqueue({ type: 'orders' }, refused())
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(id)).toMatchObject({ state: 'resolved' })
    await dlq.stop()
    tick.resolve()
    await poller
    expect((await dlq.find({ queue: 'ship' })).items).toHaveLength(1)
    await dlq.close()
  })

  it('whose error a redelivery of another queue catches gets its letter before that one is resolved', async () => {
    const { dlq, clock, events } = await aQueue({ backoff: immediate() })
    const notify = dlq.guard('notify', async () => Promise.reject(refused()), { maxRetries: 0 })
    dlq.handle('orders', async () => notify('ann').catch(() => 'not told'))
    const { id } = await dlq.enqueue({ type: 'orders' }, refused())
    dlq.start()
    await clock.advance(10)
    expect(await dlq.get(id)).toMatchObject({ state: 'resolved' })
    const [letter, ...others] = (await dlq.find({ queue: 'notify', payload: true })).items
    expect(others).toEqual([])
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('"ann"')
    const order = events.flatMap((event) =>
      event.type === 'captured' || event.type === 'resolved' ? [event.letter.queue] : [],
    )
    expect(order).toEqual(['orders', 'notify', 'orders'])
    await dlq.close()
  })

  it('that says what remains has that as the payload of its letter', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const paid: string[] = []
    let down = true
    const pay = dlq.guard('pay', async (people: string[]) => {
      for (const [index, name] of people.entries()) {
        if (name === 'bob' && down)
          return { ok: false as const, error: refused(), remaining: people.slice(index) }
        paid.push(name)
      }
      return { ok: true as const }
    })
    await pay(['ann', 'bob', 'cy'])
    down = false
    dlq.start()
    await clock.advance(10)
    expect(paid).toEqual(['ann', 'bob', 'cy'])
    await dlq.close()
  })

  it('that says that too much remains has its input as the payload of its letter', async () => {
    const { dlq, heard } = await aQueue({ maxPayloadBytes: 100 })
    const pay = dlq.guard('pay', async (_people: string[]) => ({
      ok: false,
      error: refused(),
      remaining: 'x'.repeat(101),
    }))
    await pay(['ann'])
    const [letter] = (await dlq.find({ payload: true })).items
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('["ann"]')
    expect(heard('trouble')).toMatchObject([
      { during: 'capture of pay', error: { code: 'TOO_LARGE' } },
    ])
  })

  it.each([
    [
      'throws',
      (): never => {
        throw new Error('no order')
      },
    ],
    ['gives what may not be said', () => ({ lane: '' })],
  ])('runs though its context %s, and its letter is kept without', async (_how, context) => {
    const { dlq, heard } = await aQueue()
    const results = ['fine', refused()]
    const call = dlq.guard(
      'q',
      async () => {
        const result = results.shift()!
        if (typeof result === 'string') return result
        throw result
      },
      { context },
    )
    expect(await call(undefined)).toBe('fine')
    expect(heard('trouble')).toEqual([])
    await expect(call('input')).rejects.toThrow('ECONNREFUSED')
    expect((await dlq.find()).items).toMatchObject([{ queue: 'q', category: 'network' }])
    expect(heard('trouble')).toMatchObject([{ during: 'capture of q' }])
  })
})
