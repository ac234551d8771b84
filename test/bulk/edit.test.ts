import { describe, expect, it } from 'vitest'
import type { Transform } from '../../src/letter/bulk-action.ts'
import type { QueueOptions } from '../../src/options/options.ts'
import { decodePayload, encodePayload } from '../../src/letter/payload.ts'
import { aLetter } from '../../src/testing/a-letter.ts'
import { aQueue, type QueueBench } from '../a-queue.ts'
import { by, crashingStore, finish, planAndFinish, resultsOf } from './steps.ts'

type Amount = { amount: number }

const transforms: Record<string, Transform> = {
  double: (payload) => ({ amount: (payload as Amount).amount * 2 }),
  picky: (payload) => {
    const { amount } = payload as Amount
    if (amount === 1) throw new Error('amount 1 is not allowed')
    return amount === 2 ? undefined : { amount: 0 }
  },
}

async function anEdit(
  options: QueueOptions = {},
  store?: Parameters<typeof aQueue>[1],
): Promise<QueueBench & { amounts: () => Promise<number[]> }> {
  const bench = await aQueue({ transforms, ...options }, store)
  const letters = [1, 2, 3].map((amount) =>
    aLetter({
      queue: 'orders',
      state: 'parked',
      payload: { ...encodePayload({ amount }), version: 1 },
    }),
  )
  await bench.store.add(letters)
  const amounts = async (): Promise<number[]> =>
    (await bench.store.get(letters.map(({ id }) => id))).map(
      ({ payload }) => (decodePayload(payload) as Amount).amount,
    )
  return { ...bench, amounts }
}

const patch = [{ op: 'replace', path: '/amount', value: 9 }] as const

describe('a bulk edit', () => {
  it('shows what a patch would change, and then changes it', async () => {
    const bench = await anEdit()
    const plan = await bench.dlq.plan('edit', { queue: 'orders' }, { ...by, patch: [...patch] })
    expect(plan.preview).toMatchObject(
      [1, 2, 3].map((before) => ({
        diff: { kind: 'json', changes: [{ path: '/amount', before, after: 9 }] },
      })),
    )
    expect(await bench.amounts()).toEqual([1, 2, 3])
    expect((await finish(bench, plan)).progress).toMatchObject({ succeeded: 3 })
    expect(await bench.amounts()).toEqual([9, 9, 9])
    await bench.dlq.close()
  })

  it('changes payloads by a function, and each edit can be undone', async () => {
    const bench = await anEdit()
    const done = await planAndFinish(bench, 'edit', { queue: 'orders' }, { transform: 'double' })
    expect(await bench.amounts()).toEqual([2, 4, 6])
    for (const { id } of await resultsOf(bench, done)) await bench.dlq.undoEdit(id, 'ada')
    expect(await bench.amounts()).toEqual([1, 2, 3])
    await bench.dlq.close()
  })

  it('reports the letters for which the function throws or returns nothing', async () => {
    const bench = await anEdit()
    const done = await planAndFinish(bench, 'edit', { queue: 'orders' }, { transform: 'picky' })
    expect(done.progress).toMatchObject({ succeeded: 1, failed: 2 })
    expect((await resultsOf(bench, done)).map(({ error }) => error)).toEqual([
      'amount 1 is not allowed',
      'transform "picky" returned undefined: it must return the new payload',
      undefined,
    ])
    expect(await bench.amounts()).toEqual([1, 2, 0])
    await bench.dlq.close()
  })

  it('obeys the rules of the queue', async () => {
    const payloadSchema = { properties: { amount: { maximum: 4 } } }
    const bench = await anEdit({ queues: { orders: { payloadSchema } } })
    const done = await planAndFinish(bench, 'edit', { queue: 'orders' }, { transform: 'double' })
    expect(done.progress).toMatchObject({ succeeded: 2, failed: 1 })
    expect(await bench.amounts()).toEqual([2, 4, 3])
    await bench.dlq.close()
  })

  it('edits each letter once, also after a crash', async () => {
    const bench = await anEdit({}, crashingStore)
    await planAndFinish(bench, 'edit', { queue: 'orders' }, { transform: 'double' })
    expect(await bench.amounts()).toEqual([2, 4, 6])
    await bench.dlq.close()
  })

  it.each([
    ['an unknown function', { transform: 'triple' }, 'transform "triple" is unknown'],
    ['an inherited name', { transform: 'constructor' }, 'transform "constructor" is unknown'],
    ['neither', {}, 'edit needs the plan option patch or transform'],
    ['both', { transform: 'double', patch: [...patch] }, 'exclude each other'],
    ['a bad patch', { patch: [{ op: 'explode', path: '/a' }] }, 'operation 1 of the patch'],
  ])('rejects %s', async (_, options: object, text) => {
    const bench = await anEdit()
    const planned = bench.dlq.plan('edit', { queue: 'orders' }, { ...by, ...options })
    await expect(planned).rejects.toThrow(text)
    await expect(planned).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await bench.dlq.close()
  })
})
