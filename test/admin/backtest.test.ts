import { describe, expect, it } from 'vitest'
import { fixed } from '../../src/policy/backoff.ts'
import { aQueue, forbidden, refused, timedOut } from '../a-queue.ts'
import { eachStore, withQueue } from '../each-store.ts'

describe.each(eachStore)('backtest on a %s store', (_name, open) => {
  it('reports by group what a change would have done, and changes no letter', () =>
    withQueue(open, { backoff: fixed(1000) }, async (dlq) => {
      for (const error of [refused(), refused(), forbidden()])
        await dlq.enqueue({ type: 'a' }, error)
      await dlq.enqueue({ type: 'b' }, timedOut())
      const before = (await dlq.find({ payload: true })).items
      const rule = { name: 'down', when: { code: 'ECONNREFUSED' }, category: 'permanent' } as const
      const report = await dlq.backtest({ rules: [rule] }, { queue: 'a' })
      expect(report).toMatchObject({
        letters: 3,
        complete: true,
        changed: 2,
        newlyParked: 2,
        before: { retries: 6, waitMs: 6000, parked: 1 },
        after: { retries: 0, waitMs: 0, parked: 3 },
      })
      expect(report.groups.map(({ letters, changed }) => [letters, changed])).toEqual([
        [2, 2],
        [1, 0],
      ])
      expect((await dlq.find({ payload: true })).items).toEqual(before)
    }))

  it('reads the newest letters up to a limit', () =>
    withQueue(open, {}, async (dlq) => {
      for (let index = 0; index < 5; index += 1) await dlq.enqueue({ type: 'a' }, refused())
      const read = async (limit: number) => {
        const { letters, complete } = await dlq.backtest({ limit })
        return [letters, complete]
      }
      expect(await read(3)).toEqual([3, false])
      expect(await read(5)).toEqual([5, true])
      expect(await read(6)).toEqual([5, true])
    }))
})

describe('backtest', () => {
  it.each<[string, object, object, string]>([
    ['an unknown key', { backoff: fixed(1) }, {}, 'unknown backtest option "backoff"'],
    ['a limit out of range', { limit: 0 }, {}, 'backtest option "limit"'],
    [
      'a rule without conditions',
      { rules: [{ name: 'a', when: {}, category: 'network' }] },
      {},
      'rules',
    ],
    ['an invalid policy', { policy: { kind: 'sometimes' } }, {}, 'policy'],
    ['an unknown filter', {}, { colour: 'red' }, 'colour'],
  ])('rejects %s', async (_name, input, filter, why) => {
    const { dlq } = await aQueue()
    const refusal = dlq.backtest(input, filter)
    await expect(refusal).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await expect(refusal).rejects.toThrow(why)
  })
})
