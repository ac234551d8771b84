import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories, type Failure, type RetryPolicy } from '../../src/letter/letter.ts'
import {
  backoffMs,
  custom,
  defaultPolicyFor,
  exponential,
  fixed,
  immediate,
  linear,
  never,
  parsePolicy,
  retryDelay,
} from '../../src/policy/backoff.ts'

const minuteMs = 60_000
const half = (): number => 0.5
const failure: Failure = {
  name: 'Error',
  message: 'no',
  causes: [],
  at: '2025-01-01T00:00:00.000Z',
}

const jitters = fc.oneof(
  fc.constant('none' as const),
  fc.constant('full' as const),
  fc.double({ min: 0, max: 1, noNaN: true }),
)
const ms = fc.integer({ min: 0, max: 1e10 })
const policies: fc.Arbitrary<Exclude<RetryPolicy, { kind: 'never' | 'custom' }>> = fc.oneof(
  fc.constant({ kind: 'immediate' as const }),
  fc.record({ kind: fc.constant('fixed' as const), delayMs: ms, jitter: jitters }),
  fc.record({ kind: fc.constant('linear' as const), stepMs: ms, maxMs: ms, jitter: jitters }),
  fc.record({
    kind: fc.constant('exponential' as const),
    baseMs: ms,
    factor: fc.double({ min: 1, max: 1000, noNaN: true }),
    maxMs: ms,
    jitter: jitters,
  }),
)
const retries = fc.oneof(fc.nat(20), fc.nat(10_000))
const chances = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

function capOf(policy: RetryPolicy): number {
  if (policy.kind === 'linear' || policy.kind === 'exponential') return policy.maxMs
  return policy.kind === 'fixed' ? 2 * policy.delayMs : 0
}

describe('backoffMs', () => {
  const minutes = (policy: RetryPolicy): (number | null)[] =>
    Array.from({ length: 8 }, (_, retry) => {
      const delayMs = backoffMs(policy, retry, half)
      return delayMs === null ? null : delayMs / minuteMs
    })

  it.each<[RetryPolicy, (number | null)[]]>([
    [linear(), [5, 10, 15, 20, 25, 30, 35, 40]],
    [exponential(), [1, 2, 4, 8, 16, 32, 60, 60]],
    [immediate(), [0, 0, 0, 0, 0, 0, 0, 0]],
    [fixed(3 * minuteMs), [3, 3, 3, 3, 3, 3, 3, 3]],
    [never(), [null, null, null, null, null, null, null, null]],
  ])('computes %o by its formula', (policy, expected) => {
    expect(minutes(policy)).toEqual(expected)
  })

  it('starts at the base delay', () => {
    const policy = exponential({ baseMs: 1000, factor: 2, maxMs: 60_000 })
    expect([0, 1, 2, 3].map((retry) => backoffMs(policy, retry, half))).toEqual([
      1000, 2000, 4000, 8000,
    ])
  })

  it('stays at maxMs when the power overflows', () => {
    expect(backoffMs(exponential(), 10_000, half)).toBe(60 * minuteMs)
    expect(backoffMs(exponential({ baseMs: 0 }), 10_000, half)).toBe(0)
    expect(backoffMs(linear(), 1e300, half)).toBe(60 * minuteMs)
  })

  it('treats an invalid retry number as the first one', () => {
    for (const retry of [-1, NaN, -Infinity])
      expect(backoffMs(linear(), retry, half)).toBe(5 * minuteMs)
  })

  it('is never negative and never above maxMs, for any random number', () => {
    fc.assert(
      fc.property(policies, retries, chances, (policy, retry, chance) => {
        const delayMs = backoffMs(policy, retry, () => chance)
        expect(delayMs).toBeGreaterThanOrEqual(0)
        expect(delayMs).toBeLessThanOrEqual(capOf(policy))
      }),
    )
  })

  it('never shrinks from one retry to the next without jitter', () => {
    fc.assert(
      fc.property(policies, retries, (policy, retry) => {
        const steady: RetryPolicy =
          policy.kind === 'immediate' ? policy : { ...policy, jitter: 'none' }
        const [first, second] = [backoffMs(steady, retry, half), backoffMs(steady, retry + 1, half)]
        expect(second).toBeGreaterThanOrEqual(first!)
      }),
    )
  })

  it('spreads by the share of the jitter and no further', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), chances, (share, chance) => {
        const delayMs = backoffMs(fixed(10_000, share), 0, () => chance)
        expect(delayMs).toBeGreaterThanOrEqual(Math.floor(10_000 * (1 - share)))
        expect(delayMs).toBeLessThanOrEqual(Math.ceil(10_000 * (1 + share)))
      }),
    )
  })

  it('draws full jitter between 0 and the delay', () => {
    const policy = exponential({ baseMs: 1000, jitter: 'full' })
    expect([0, 0.5, 0.999].map((chance) => backoffMs(policy, 3, () => chance))).toEqual([
      0, 4000, 7992,
    ])
  })

  it('spreads letters at maxMs below it', () => {
    const policy = linear({ stepMs: 1000, maxMs: 1000, jitter: 0.5 })
    const delays = [0, 0.25, 0.5, 0.75, 0.999].map((chance) => backoffMs(policy, 9, () => chance))
    expect(delays).toEqual([500, 625, 750, 875, 1000])
  })

  it('is deterministic', () => {
    fc.assert(
      fc.property(policies, retries, chances, (policy, retry, chance) => {
        const delayOf = (): number | null => backoffMs(policy, retry, () => chance)
        expect(delayOf()).toBe(delayOf())
      }),
    )
  })

  it('calls a custom backoff by its name', () => {
    const customs = { hourly: (retry: number) => (retry + 1) * 60 * minuteMs }
    expect(backoffMs(custom('hourly'), 2, half, customs)).toBe(180 * minuteMs)
  })
})

describe('retryDelay', () => {
  const delayOf = (
    over: Partial<Parameters<typeof retryDelay>[0]> = {},
  ): ReturnType<typeof retryDelay> =>
    retryDelay({
      policy: exponential(),
      retry: 1,
      priority: 'medium',
      failure,
      random: half,
      ...over,
    })

  it('uses the delay of the policy', () => {
    expect(delayOf()).toEqual({ delayMs: 2 * minuteMs })
    expect(delayOf({ policy: never() })).toEqual({ delayMs: null })
  })

  it('retries a critical letter at once the first time only', () => {
    expect(delayOf({ priority: 'critical', retry: 0 })).toEqual({ delayMs: 0 })
    expect(delayOf({ priority: 'critical', retry: 1 })).toEqual({ delayMs: 2 * minuteMs })
  })

  it.each([
    ['longer than the backoff', 5 * minuteMs, 5 * minuteMs],
    ['shorter than the backoff', 1000, 2 * minuteMs],
    ['longer than a day', 90 * 86_400_000, 86_400_000],
    ['endless', Infinity, 86_400_000],
    ['nonsense', NaN, 2 * minuteMs],
    ['negative', -5, 2 * minuteMs],
  ])('honours a retry-after that is %s', (_, retryAfterMs, expected) => {
    expect(delayOf({ failure: { ...failure, retryAfterMs } })).toEqual({ delayMs: expected })
  })

  it('honours a retry-after even for a critical letter, except with never', () => {
    const limited = { ...failure, retryAfterMs: 7000 }
    expect(delayOf({ priority: 'critical', retry: 0, failure: limited })).toEqual({ delayMs: 7000 })
    expect(delayOf({ policy: immediate(), failure: limited })).toEqual({ delayMs: 7000 })
    expect(delayOf({ policy: never(), failure: limited })).toEqual({ delayMs: null })
  })

  it('passes the failure to a custom backoff', () => {
    const customs = { byStatus: (_: number, given: Failure) => given.status ?? 0 }
    const request = { policy: custom('byStatus'), customs, failure: { ...failure, status: 503 } }
    expect(delayOf(request)).toEqual({ delayMs: 503 })
  })

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('bad day')
      },
    ],
    ['answers NaN', () => NaN],
    ['answers Infinity', () => Infinity],
    ['answers a negative number', () => -1],
    ['answers a promise', () => Promise.resolve(1)],
    ['answers nothing', () => undefined],
    ['answers a far future', () => 1e300],
  ])('falls back to the default and reports it when a custom backoff %s', (_, backoff) => {
    const { delayMs, problem } = delayOf({
      policy: custom('odd'),
      customs: { odd: backoff as () => number },
    })
    expect(delayMs).toBe(2 * minuteMs)
    expect(problem).toContain('"odd"')
  })

  it('falls back for unregistered names, also those of Object.prototype', () => {
    for (const name of ['missing', 'constructor', '__proto__']) {
      const { delayMs, problem } = delayOf({ policy: custom(name) })
      expect(delayMs).toBe(2 * minuteMs)
      expect(problem).toContain('not registered')
    }
  })

  it('falls back for an unknown stored policy', () => {
    const stored = [
      { kind: 'fibonacci' },
      { kind: 'linear' },
      { kind: 'exponential', baseMs: -1, factor: 2, maxMs: 5 },
    ]
    for (const policy of stored) {
      const { delayMs, problem } = delayOf({ policy: policy as RetryPolicy })
      expect(delayMs).toBe(2 * minuteMs)
      expect(problem).toContain(policy.kind)
    }
  })
})

describe('constructors', () => {
  it.each<[string, () => unknown]>([
    ['delayMs', () => fixed(-1)],
    ['delayMs', () => fixed(NaN)],
    ['delayMs', () => fixed(1e308)],
    ['delayMs', () => fixed('P1D' as unknown as number)],
    ['stepMs', () => linear({ stepMs: Infinity })],
    ['maxMs', () => linear({ maxMs: -5 })],
    ['baseMs', () => exponential({ baseMs: -1 })],
    ['factor', () => exponential({ factor: 0.5 })],
    ['factor', () => exponential({ factor: Infinity })],
    ['jitter', () => exponential({ jitter: 1.5 })],
    ['jitter', () => linear({ jitter: 'some' as 'full' })],
    ['name', () => custom('')],
  ])('reject an invalid %s by name', (name, make) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(name)
  })

  it('reject an unknown option by name', () => {
    expect(() => exponential({ basMs: 5 } as never)).toThrow(
      'unknown key "basMs" in exponential backoff: did you mean "baseMs"?',
    )
    expect(() => linear({ stepsMs: 5 } as never)).toThrow('did you mean "stepMs"?')
    expect(parsePolicy({ kind: 'exponential', base: 5 })).toBeUndefined()
  })

  it('create plain data that survives storage', () => {
    for (const policy of [
      never(),
      immediate(),
      fixed(5, 0.1),
      linear(),
      exponential({ jitter: 'full' }),
      custom('a'),
    ])
      expect(JSON.parse(JSON.stringify(policy))).toEqual(policy)
  })
})

describe('parsePolicy', () => {
  it.each([
    ['never', never()],
    ['immediate', immediate()],
    ['linear', linear()],
    [' EXPONENTIAL ', exponential()],
    [{ kind: 'exponential', baseMs: 10 }, exponential({ baseMs: 10 })],
    [{ kind: 'fixed', delayMs: 10, jitter: 0.5 }, fixed(10, 0.5)],
    [{ kind: 'custom', name: 'x' }, custom('x')],
  ])('reads %o', (input, policy) => {
    expect(parsePolicy(input)).toEqual(policy)
  })

  it('reads all policies of the constructors', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(parsePolicy(policy)).toEqual(policy)
      }),
    )
  })

  it('returns undefined for anything else', () => {
    const odd = [
      '',
      'sometimes',
      'fixed',
      'custom',
      7,
      null,
      undefined,
      [],
      {},
      { kind: 'linear', stepMs: '5' },
    ]
    for (const input of odd) expect(parsePolicy(input)).toBeUndefined()
    fc.assert(fc.property(fc.anything(), (input) => void parsePolicy(input)))
  })
})

describe('defaultPolicyFor', () => {
  it('retries temporary failures and parks the others', () => {
    const kinds = Object.fromEntries(
      categories.map((category) => [category, defaultPolicyFor(category).kind]),
    )
    expect(kinds).toEqual({
      transient: 'exponential',
      network: 'exponential',
      timeout: 'exponential',
      'rate-limit': 'exponential',
      dependency: 'exponential',
      unknown: 'exponential',
      resource: 'linear',
      permission: 'never',
      validation: 'never',
      permanent: 'never',
    })
  })
})
