import { describe, expect, it } from 'vitest'
import { ErrorBudgetPolicy } from '../../examples/error-budget.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aLoop } from '../loops/a-loop.ts'
import { quote } from './rows.ts'

class RateLimit extends Error {}
class Throttled extends RateLimit {}
class BadRequest extends Error {}

describe(quote('M3'), () => {
  const after = (policy: DLQPolicy, deliveryCount: number, error: unknown): boolean =>
    policy.shouldDeadLetter({ deliveryCount }, error)

  it('without a word, five deliveries: not below, but at and above', () => {
    const policy = new DLQPolicy()
    expect(policy.maxDeliveryCount).toBe(5)
    expect([1, 4, 5, 6].map((count) => after(policy, count, new Error('x')))).toEqual([
      false,
      false,
      true,
      true,
    ])
  })

  it('an included error at its first delivery, any other at the threshold', () => {
    const policy = new DLQPolicy({ includeErrors: [BadRequest] })
    expect(after(policy, 1, new BadRequest())).toBe(true)
    expect(after(policy, 1, new RateLimit())).toBe(false)
    expect(after(policy, 5, new RateLimit())).toBe(true)
  })

  it('an excluded error not at the threshold and not far above it, any other at the threshold', () => {
    const policy = new DLQPolicy({ excludeErrors: [RateLimit] })
    expect([1, 5, 49].map((count) => after(policy, count, new RateLimit()))).toEqual([
      false,
      false,
      false,
    ])
    expect(after(policy, 5, new BadRequest())).toBe(true)
  })

  it('exclusion beats inclusion', () => {
    const policy = new DLQPolicy({ includeErrors: [RateLimit], excludeErrors: [RateLimit] })
    expect(after(policy, 1, new RateLimit())).toBe(false)
  })

  it('subclasses and causes count as what they are; exact mode takes the very class', () => {
    const wrapped = new Error('call failed', { cause: new Throttled() })
    for (const error of [new Throttled(), wrapped]) {
      expect(after(new DLQPolicy({ includeErrors: [RateLimit] }), 1, error)).toBe(true)
      expect(after(new DLQPolicy({ includeErrors: [RateLimit], exact: true }), 1, error)).toBe(
        false,
      )
    }
  })

  it('an excluded error does not loop for ever, and a limit below one is refused', () => {
    const policy = new DLQPolicy({ excludeErrors: [RateLimit], absoluteCap: 20 })
    expect(after(policy, 19, new RateLimit())).toBe(false)
    expect(after(policy, 20, new RateLimit())).toBe(true)
    for (const maxDeliveryCount of [0, -1, 1.5, Number.NaN])
      expect(() => new DLQPolicy({ maxDeliveryCount })).toThrow(/maxDeliveryCount/)
  })

  /** The deliveries after which a loop with this policy dead-letters. */
  const deadAfter = async (policy: DLQPolicy, bodies: unknown[]): Promise<number[]> => {
    const bench = aLoop()
    const loop = new MainLoop({
      ...bench.parts,
      process: () => Promise.reject(new Error('x')),
      dlq: { to: bench.dlq, policy },
    })
    const run = loop.run()
    for (const body of bodies) await bench.requests.send(body)
    await bench.clock.advance(12 * 3_600_000)
    await loop.shutdown()
    await run
    return bench.heard('dead-lettered').map(({ deliveries }) => deliveries)
  }

  it('the example dead-letters by an error budget, and by the threshold all the same', async () => {
    const rates: Record<string, number> = { bad: 0.8, good: 0.1 }
    const policy = new ErrorBudgetPolicy({
      maxDeliveryCount: 4,
      errorBudget: 0.3,
      errorRateOf: (request) => rates[(request as { kind: string }).kind] ?? 0,
    })
    expect(await deadAfter(policy, [{ kind: 'bad' }, { kind: 'good' }])).toEqual([1, 4])
  })

  it('an override that throws counts as the threshold', async () => {
    class Broken extends DLQPolicy {
      override shouldDeadLetter(): boolean {
        throw new Error('bug')
      }
    }
    expect(await deadAfter(new Broken({ maxDeliveryCount: 3 }), [{}])).toEqual([3])
  })

  it('an override that never says yes does not deliver for ever', async () => {
    class Stubborn extends DLQPolicy {
      override shouldDeadLetter(): boolean {
        return false
      }
    }
    const policy = new Stubborn({ maxDeliveryCount: 3, absoluteCap: 6 })
    const [deliveries, ...more] = await deadAfter(policy, [{}])
    expect(deliveries).toBeLessThanOrEqual(6)
    expect(more).toEqual([])
  })
})
