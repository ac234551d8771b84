import { describe, expect, it } from 'vitest'
import { ErrorBudgetPolicy } from '../../examples/error-budget.ts'
import { MainLoop } from '../../src/loops/main-loop.ts'
import { DLQPolicy } from '../../src/policy/dlq-policy.ts'
import { aLoop } from '../loops/a-loop.ts'
import { clause, row } from './rows.ts'

class RateLimit extends Error {}
class Throttled extends RateLimit {}
class BadRequest extends Error {}

describe(row('M3'), () => {
  const after = (policy: DLQPolicy, deliveryCount: number, error: unknown): boolean =>
    policy.shouldDeadLetter({ deliveryCount }, error)

  describe(clause('M3', 'DLQPolicy with maxDeliveryCount'), () => {
    it('the default is five deliveries: not below, but at and above', () => {
      const policy = new DLQPolicy()
      expect(policy.maxDeliveryCount).toBe(5)
      expect([1, 4, 5, 6].map((count) => after(policy, count, new Error('x')))).toEqual([
        false,
        false,
        true,
        true,
      ])
    })
  })

  it(clause('M3', 'DLQPolicy with maxDeliveryCount'), () => {
    for (const maxDeliveryCount of [0, -1, 1.5, Number.NaN])
      expect(() => new DLQPolicy({ maxDeliveryCount })).toThrow(/maxDeliveryCount/)
  })

  it(clause('M3', 'unknown options are refused by name'), () => {
    const make = (options: object) => (): unknown => new DLQPolicy(options)
    const refusal = (name: string): unknown =>
      expect.objectContaining({ code: 'INVALID_CONFIG', message: expect.stringContaining(name) })
    expect(make({ maxDeliverys: 3 })).toThrow(refusal('maxDeliverys'))
    expect(make({ maxDeliverys: 3 })).toThrow(refusal('maxDeliveryCount'))
    expect(make({ exclude: [RateLimit] })).toThrow(refusal('exclude'))
    const bench = aLoop()
    const looping = (dlq: object) => (): unknown =>
      new MainLoop({ ...bench.parts, process: () => 1, dlq })
    expect(looping({ to: bench.dlq, polcy: new DLQPolicy() })).toThrow(refusal('polcy'))
    expect(looping(new DLQPolicy())).toThrow(refusal('mailbox'))
  })

  describe(
    clause(
      'M3',
      "the seed's own shape, a policy that carries its mailbox (dlq: new DLQPolicy({ mailbox, … })), works",
    ),
    () => {
      it('a loop dead-letters to the mailbox of its policy', async () => {
        const bench = aLoop()
        const dlq = new DLQPolicy({ mailbox: bench.dlq, maxDeliveryCount: 2 })
        void new MainLoop({
          ...bench.parts,
          process: () => Promise.reject(new Error('x')),
          dlq,
        }).run()
        await bench.requests.send({})
        await bench.settle()
        expect(await bench.dlq.approximateCount()).toBe(0)
        await bench.clock.advance(60_000)
        expect(await bench.dlq.approximateCount()).toBe(1)
        expect(bench.eventsOf('dead-lettered')).toMatchObject([
          { deliveries: 2, destination: 'requests-dlq' },
        ])
      })

      it('a loop also uses the mailbox of a subclass with its own decision', async () => {
        class AtOnce extends DLQPolicy {
          override shouldDeadLetter(): boolean {
            return true
          }
        }
        const bench = aLoop()
        const dlq = new AtOnce({ mailbox: bench.dlq })
        void new MainLoop({
          ...bench.parts,
          process: () => Promise.reject(new Error('x')),
          dlq,
        }).run()
        await bench.requests.send({})
        await bench.settle()
        expect(await bench.dlq.approximateCount()).toBe(1)
      })
    },
  )

  describe(clause('M3', 'includeErrors'), () => {
    it('an included error at its first delivery, any other at the threshold', () => {
      const policy = new DLQPolicy({ includeErrors: [BadRequest] })
      expect(after(policy, 1, new BadRequest())).toBe(true)
      expect(after(policy, 1, new RateLimit())).toBe(false)
      expect(after(policy, 5, new RateLimit())).toBe(true)
    })
  })

  describe(clause('M3', 'excludeErrors'), () => {
    it('an excluded error not at the threshold and not far above it, any other at the threshold', () => {
      const policy = new DLQPolicy({ excludeErrors: [RateLimit] })
      expect([1, 5, 49].map((count) => after(policy, count, new RateLimit()))).toEqual([
        false,
        false,
        false,
      ])
      expect(after(policy, 5, new BadRequest())).toBe(true)
    })
  })

  describe(clause('M3', 'excludeErrors'), () => {
    it('exclusion beats inclusion', () => {
      const policy = new DLQPolicy({ includeErrors: [RateLimit], excludeErrors: [RateLimit] })
      expect(after(policy, 1, new RateLimit())).toBe(false)
    })
  })

  describe(clause('M3', 'includeErrors'), () => {
    it('subclasses and causes match; exact mode matches only the class itself', () => {
      const wrapped = new Error('call failed', { cause: new Throttled() })
      for (const error of [new Throttled(), wrapped]) {
        expect(after(new DLQPolicy({ includeErrors: [RateLimit] }), 1, error)).toBe(true)
        expect(after(new DLQPolicy({ includeErrors: [RateLimit], exact: true }), 1, error)).toBe(
          false,
        )
      }
    })
  })

  describe(clause('M3', 'excludeErrors'), () => {
    it('an excluded error is not delivered forever', () => {
      const policy = new DLQPolicy({ excludeErrors: [RateLimit], absoluteCap: 20 })
      expect(after(policy, 19, new RateLimit())).toBe(false)
      expect(after(policy, 20, new RateLimit())).toBe(true)
    })
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
    return bench.eventsOf('dead-lettered').map(({ deliveries }) => deliveries)
  }

  it(clause('M3', 'ErrorBudgetPolicy example works'), async () => {
    const rates: Record<string, number> = { bad: 0.8, good: 0.1 }
    const policy = new ErrorBudgetPolicy({
      maxDeliveryCount: 4,
      errorBudget: 0.3,
      errorRateOf: (request) => rates[(request as { kind: string }).kind] ?? 0,
    })
    expect(await deadAfter(policy, [{ kind: 'bad' }, { kind: 'good' }])).toEqual([1, 4])
  })

  describe(clause('M3', 'overridable shouldDeadLetter'), () => {
    it('an override decides by the message and the error', async () => {
      const seen: unknown[] = []
      class Second extends DLQPolicy {
        override shouldDeadLetter(message: { deliveryCount: number }, error: unknown): boolean {
          seen.push(error)
          return message.deliveryCount === 2
        }
      }
      expect(await deadAfter(new Second(), [{}])).toEqual([2])
      expect(seen).toMatchObject([{ message: 'x' }, { message: 'x' }])
    })

    it('an override that throws counts as the threshold', async () => {
      class Broken extends DLQPolicy {
        override shouldDeadLetter(): boolean {
          throw new Error('bug')
        }
      }
      expect(await deadAfter(new Broken({ maxDeliveryCount: 3 }), [{}])).toEqual([3])
    })
  })

  describe(clause('M3', 'overridable shouldDeadLetter'), () => {
    it('an override that never dead-letters does not deliver forever', async () => {
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
})
