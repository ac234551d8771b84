import { describe, expect, it } from 'vitest'
import { decideDeadLetter, DLQPolicy, type Delivered } from '../../src/policy/dlq-policy.ts'

class RateLimitError extends Error {}
class SlowDownError extends RateLimitError {}
class ContentPolicyViolation extends Error {}

const delivered = (deliveryCount: number): Delivered => ({ deliveryCount })
const plain = new Error('no')

describe('DLQPolicy', () => {
  it('dead-letters from the fifth delivery by default', () => {
    const policy = new DLQPolicy()
    expect([1, 4, 5, 6].map((count) => policy.shouldDeadLetter(delivered(count), plain))).toEqual([
      false,
      false,
      true,
      true,
    ])
  })

  it('dead-letters included errors at once and excluded ones not at the threshold', () => {
    const policy = new DLQPolicy({
      includeErrors: new Set([ContentPolicyViolation]),
      excludeErrors: [RateLimitError],
    })
    expect(policy.shouldDeadLetter(delivered(1), new ContentPolicyViolation())).toBe(true)
    expect(policy.shouldDeadLetter(delivered(49), new RateLimitError())).toBe(false)
    expect(policy.shouldDeadLetter(delivered(5), plain)).toBe(true)
  })

  it('checks exclusion before inclusion', () => {
    const policy = new DLQPolicy({ includeErrors: [Error], excludeErrors: [RateLimitError] })
    expect(policy.shouldDeadLetter(delivered(1), new RateLimitError())).toBe(false)
    expect(policy.shouldDeadLetter(delivered(1), plain)).toBe(true)
  })

  it('matches subclasses and causes', () => {
    const policy = new DLQPolicy({ includeErrors: [RateLimitError] })
    const matching = [
      new SlowDownError(),
      new Error('outer', { cause: new RateLimitError() }),
      new Error('outer', { cause: new Error('middle', { cause: new SlowDownError() }) }),
      new AggregateError([plain, new SlowDownError()]),
    ]
    for (const error of matching) expect(policy.shouldDeadLetter(delivered(1), error)).toBe(true)
    expect(policy.shouldDeadLetter(delivered(1), plain)).toBe(false)
  })

  it('matches only the exact class in exact mode', () => {
    const policy = new DLQPolicy({ includeErrors: [RateLimitError, 'TimeoutError'], exact: true })
    const dead = (error: unknown): boolean => policy.shouldDeadLetter(delivered(1), error)
    expect(dead(new RateLimitError())).toBe(true)
    expect(dead(new SlowDownError())).toBe(false)
    expect(dead(new Error('outer', { cause: new RateLimitError() }))).toBe(false)
    expect(dead(new DOMException('late', 'TimeoutError'))).toBe(true)
  })

  it('matches by name, by code and by a function', () => {
    const never = (includeErrors: DLQPolicy['includeErrors'], error: unknown): boolean =>
      new DLQPolicy({ includeErrors }).shouldDeadLetter(delivered(1), error)
    expect(never(['RateLimitError'], new SlowDownError())).toBe(true)
    expect(never(['ECONNRESET'], Object.assign(new Error('x'), { code: 'ECONNRESET' }))).toBe(true)
    expect(never([(error) => error === plain], plain)).toBe(true)
    const old = function (error: unknown): boolean {
      return error === plain
    }
    expect(never([old], plain)).toBe(true)
    expect(never(['RateLimitError', () => false], plain)).toBe(false)
    for (const thrown of ['text', null, undefined, 7, Object.create(null)])
      expect(never(['RateLimitError', RateLimitError], thrown)).toBe(false)
  })

  it('handles cyclic and endless causes', () => {
    class Endless extends Error {
      override get cause(): unknown {
        return new Endless()
      }
    }
    const looped = new Error('a')
    looped.cause = new Error('b', { cause: looped })
    const policy = new DLQPolicy({ includeErrors: [RateLimitError] })
    for (const error of [looped, new Endless()])
      expect(policy.shouldDeadLetter(delivered(1), error)).toBe(false)
  })

  it('limits excluded errors by absoluteCap', () => {
    const policy = (maxDeliveryCount: number): DLQPolicy =>
      new DLQPolicy({ maxDeliveryCount, excludeErrors: [RateLimitError] })
    expect([1, 5, 20].map((count) => policy(count).absoluteCap)).toEqual([50, 50, 200])
    expect(policy(5).shouldDeadLetter(delivered(50), new RateLimitError())).toBe(true)
    const capped = new DLQPolicy({ excludeErrors: [RateLimitError], absoluteCap: 7 })
    expect(capped.shouldDeadLetter(delivered(6), new RateLimitError())).toBe(false)
    expect(capped.shouldDeadLetter(delivered(7), new RateLimitError())).toBe(true)
  })

  it('does not run a message after more than maxDeliveryCount deliveries without a failure', () => {
    for (const policy of [new DLQPolicy(), new DLQPolicy({ excludeErrors: [RateLimitError] })])
      expect([5, 6].map((count) => policy.overDelivered(count))).toEqual([false, true])
  })

  it.each<[string, ConstructorParameters<typeof DLQPolicy>[0]]>([
    ['maxDeliveryCount', { maxDeliveryCount: 0 }],
    ['maxDeliveryCount', { maxDeliveryCount: -1 }],
    ['maxDeliveryCount', { maxDeliveryCount: 2.5 }],
    ['maxDeliveryCount', { maxDeliveryCount: NaN }],
    ['absoluteCap', { maxDeliveryCount: 5, absoluteCap: 4 }],
    ['includeErrors', { includeErrors: [7 as unknown as string] }],
    ['excludeErrors', { excludeErrors: [null as unknown as string] }],
    ['excludeErrors', { excludeErrors: 'RateLimitError' }],
    ['includeErrors', { includeErrors: RateLimitError as never }],
    ['exact', { exact: 'yes' as never }],
    ['classify', { classify: 1 as never }],
    ['mailbox', { mailbox: 'redis://localhost#dead' as never }],
    ['mailbox', { mailbox: Promise.resolve({}) as never }],
    ['did you mean "maxDeliveryCount"', { max_delivery_count: 5 } as never],
    ['did you mean "excludeErrors"', { excludeError: [] } as never],
  ])('rejects an invalid %s: %o', (name, options) => {
    const refused = { code: 'INVALID_CONFIG', message: expect.stringContaining(name) as string }
    expect(() => new DLQPolicy(options)).toThrow(expect.objectContaining(refused))
  })
})

describe('a DLQPolicy that classifies', () => {
  const policy = new DLQPolicy({ classify: true, excludeErrors: [RateLimitError] })
  const withFacts = (facts: object): Error => Object.assign(new Error('x'), facts)

  it.each<[string, unknown, boolean]>([
    ['a permission', withFacts({ status: 403 }), true],
    ['a validation', withFacts({ status: 422 }), true],
    ['a connection', withFacts({ code: 'ECONNREFUSED' }), false],
    ['a rate limit', withFacts({ status: 429 }), false],
    ['an error that says nothing', plain, false],
    ['a string', 'odd', false],
    ['an excluded error', Object.assign(new RateLimitError(), { status: 403 }), false],
  ])('at the first failure, for %s', (_, error, dead) => {
    expect(policy.shouldDeadLetter(delivered(1), error)).toBe(dead)
  })

  it('is off by default', () => {
    expect(new DLQPolicy().classify).toBe(false)
    expect(new DLQPolicy().shouldDeadLetter(delivered(1), withFacts({ status: 403 }))).toBe(false)
  })
})

describe('decideDeadLetter', () => {
  class ErrorBudgetPolicy extends DLQPolicy {
    errorRate = 0

    override shouldDeadLetter(message: Delivered, _error: unknown): boolean {
      if (message.deliveryCount >= this.maxDeliveryCount) return true
      return this.errorRate > 0.3
    }
  }

  it('calls an override of the policy', () => {
    const policy = new ErrorBudgetPolicy({ maxDeliveryCount: 10 })
    expect(decideDeadLetter(policy, delivered(5), plain)).toEqual({ deadLetter: false })
    policy.errorRate = 0.5
    expect(decideDeadLetter(policy, delivered(1), plain)).toEqual({ deadLetter: true })
  })

  class Broken extends DLQPolicy {
    override shouldDeadLetter(): boolean {
      throw new Error('bad day')
    }
  }

  class Promising extends DLQPolicy {
    override shouldDeadLetter(): boolean {
      return Promise.resolve(true) as unknown as boolean
    }
  }

  it.each([
    ['throws', new Broken(), 'bad day'],
    ['answers no boolean', new Promising(), 'Promise'],
    [
      'has a function among its errors that throws',
      new DLQPolicy({ includeErrors: [() => JSON.parse('{')] }),
      'SyntaxError',
    ],
  ])('falls back to the threshold and reports it when the policy %s', (_, policy, problem) => {
    for (const [count, deadLetter] of [
      [4, false],
      [5, true],
    ] as const) {
      const decision = decideDeadLetter(policy, delivered(count), plain)
      expect(decision).toMatchObject({ deadLetter })
      expect(decision.problem).toContain(problem)
    }
  })

  it('limits every override by absoluteCap', () => {
    class Stubborn extends DLQPolicy {
      override shouldDeadLetter(): boolean {
        return false
      }
    }
    expect(decideDeadLetter(new Stubborn(), delivered(49), plain).deadLetter).toBe(false)
    expect(decideDeadLetter(new Stubborn(), delivered(50), plain).deadLetter).toBe(true)
    expect(
      decideDeadLetter(new Stubborn({ absoluteCap: Infinity }), delivered(1e9), plain).deadLetter,
    ).toBe(false)
  })
})
