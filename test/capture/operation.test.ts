import { describe, expect, it } from 'vitest'
import type { GuardedRun } from '../../src/capture/operation.ts'
import { immediate } from '../../src/policy/backoff.ts'
import { aQueue, deferred, refused } from '../a-queue.ts'

describe('a guarded call', () => {
  it('that outlives the redelivery that started it stores its own letter', async () => {
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

  it('whose error a handler of another queue catches is stored before the letter of that handler resolves', async () => {
    const { dlq, clock, events } = await aQueue({ backoff: immediate() })
    const notify = dlq.guard('notify', async () => Promise.reject(refused()), { maxRetries: 0 })
    dlq.handle('orders', async () => notify('ann').catch(() => 'not notified'))
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

  it('stores the reported remainder as the payload of its letter', async () => {
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

  it('stores its original input when the reported remainder is too large', async () => {
    const { dlq, eventsOf } = await aQueue({ maxPayloadBytes: 100 })
    const pay = dlq.guard('pay', async (_people: string[]) => ({
      ok: false,
      error: refused(),
      remaining: 'x'.repeat(101),
    }))
    await pay(['ann'])
    const [letter] = (await dlq.find({ payload: true })).items
    expect(Buffer.from(letter!.payload.bytes).toString()).toBe('["ann"]')
    expect(eventsOf('error')).toMatchObject([
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
    ['returns an invalid context', () => ({ lane: '' })],
  ])(
    'runs although its context function %s, and its letter is stored without context',
    async (_how, context) => {
      const { dlq, eventsOf } = await aQueue()
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
      expect(eventsOf('error')).toEqual([])
      await expect(call('input')).rejects.toThrow('ECONNREFUSED')
      expect((await dlq.find()).items).toMatchObject([{ queue: 'q', category: 'network' }])
      expect(eventsOf('error')).toMatchObject([{ during: 'capture of q' }])
    },
  )
})

describe('the run of a guarded call', () => {
  type Seen = Pick<GuardedRun, 'attempt' | 'epoch' | 'idempotencyKey'>
  const seenIn = ({ attempt, epoch, idempotencyKey }: GuardedRun): Seen => ({
    attempt,
    epoch,
    idempotencyKey,
  })

  it('has the same idempotency key in the first run as in its retries', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const seen: Seen[] = []
    const charge = dlq.guard('charge', async (_order: { id: number }, run) => {
      seen.push(seenIn(run))
      if (!run.letter) expect(run.signal.aborted).toBe(false)
      if (run.attempt < 2) throw new Error('not yet')
    })
    await expect(charge({ id: 42 })).rejects.toThrow('not yet')
    const [letter] = (await dlq.find()).items
    dlq.start()
    await clock.advance(10)
    const idempotencyKey = `${letter!.id}:1:0`
    expect(seen).toEqual([0, 1, 2].map((n) => ({ attempt: n, epoch: n, idempotencyKey })))
    await dlq.close()
  })

  it('has a new key for each call, and the same key when the context sets the id', async () => {
    const { dlq } = await aQueue()
    const keys: string[] = []
    const call = async (_input: unknown, { idempotencyKey }: GuardedRun): Promise<void> =>
      void keys.push(idempotencyKey)
    const plain = dlq.guard('plain', call)
    await plain(1)
    await plain(1)
    expect(keys[0]).not.toBe(keys[1])
    const id = '0198C0DE-0000-7000-8000-000000000042'
    const named = dlq.guard('named', call, { context: () => ({ id }) })
    await named(1)
    await named(1)
    expect(keys.slice(2)).toEqual(Array(2).fill(`${id.toLowerCase()}:1:0`))
  })

  it('has a new key after an edit of the payload, and the same key after a manual retry', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 1 })
    const keys: string[] = []
    const charge = dlq.guard('charge', async (_amount: number, run) => {
      keys.push(run.idempotencyKey)
      throw new Error('declined by nobody knows whom')
    })
    await charge(5).catch(() => {})
    dlq.start()
    await clock.advance(10)
    const [{ id } = { id: '' }] = (await dlq.find()).items
    await dlq.retry(id)
    await clock.advance(10)
    await dlq.edit(id, { payload: 7, reason: 'wrong amount', by: 'mia' })
    await dlq.retry(id)
    await clock.advance(10)
    expect(keys).toEqual([1, 1, 1, 2].map((version) => `${id}:${version}:0`))
    await dlq.close()
  })

  it('keeps its key when part of the work is done, so that keys per item stay the same', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 5 })
    const runs: [key: string, input: string[]][] = []
    const pay = dlq.guard('pay', async (people: string[], run) => {
      runs.push([run.idempotencyKey, people])
      const remaining = people.slice(1)
      if (remaining.length > 0) return { ok: false as const, error: new Error('slow'), remaining }
      return { ok: true as const }
    })
    await pay(['ann', 'bob', 'cy'])
    dlq.start()
    await clock.advance(10)
    const [letter] = (await dlq.find({ state: 'resolved' })).items
    const key = `${letter!.id}:1:0`
    expect(runs).toEqual([
      [key, ['ann', 'bob', 'cy']],
      [key, ['bob', 'cy']],
      [key, ['cy']],
    ])
    expect(letter!.payload).toMatchObject({ version: 2, restOf: 1 })
    await dlq.close()
  })

  it('has the key of the letter when a handler of its queue calls it with the same input', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate(), maxRetries: 1 })
    const keys: [input: unknown, key: string][] = []
    const charge = dlq.guard('charge', async (order: { id: number }, run) => {
      keys.push([order.id, run.idempotencyKey])
      throw new Error('not yet')
    })
    dlq.handle(
      'charge',
      async ({ input }) => {
        await charge({ id: 7 }).catch(() => {})
        await charge(input as { id: number })
      },
      { maxRetries: 1 },
    )
    await charge({ id: 42 }).catch(() => {})
    dlq.start()
    await clock.advance(10)
    const [letter] = (await dlq.find()).items
    const key = `${letter!.id}:1:0`
    expect(keys).toEqual([
      [42, key],
      [7, expect.not.stringContaining(letter!.id)],
      [42, key],
    ])
    await dlq.close()
  })

  it('has its own key when its failure becomes an occurrence of an open letter', async () => {
    const { dlq, clock } = await aQueue({ backoff: immediate() })
    const keys: string[] = []
    const charge = dlq.guard(
      'charge',
      async (_input: number, run) => {
        keys.push(run.idempotencyKey)
        throw new Error('not yet')
      },
      { context: () => ({ dedupeKey: 'order-42' }), maxRetries: 1 },
    )
    await charge(1).catch(() => {})
    await charge(1).catch(() => {})
    dlq.start()
    await clock.advance(10)
    expect(keys[1]).not.toBe(keys[0])
    expect(keys[2]).toBe(keys[0])
    await dlq.close()
  })
})
