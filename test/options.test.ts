import { describe, expect, it } from 'vitest'
import { readOptions, readPolicy } from '../src/options.ts'
import { fixed } from '../src/policy/backoff.ts'

describe('readOptions', () => {
  it('fills in the defaults', () => {
    expect(readOptions({})).toMatchObject({
      maxRetries: 3,
      priority: 'medium',
      maxConcurrent: 10,
      leaseMs: 30_000,
      pollMs: 1000,
      overflow: 'reject',
      maxItems: Infinity,
    })
  })

  it('takes what is given, and undefined for not given', () => {
    expect(readOptions({ maxRetries: 7, leaseMs: undefined as unknown as number })).toMatchObject({
      maxRetries: 7,
      leaseMs: 30_000,
    })
  })

  it.each<[object, string]>([
    [{ maxRetires: 1 }, 'unknown option "maxRetires": did you mean "maxRetries"?'],
    [{ colour: 'red' }, 'unknown option "colour": known: '],
    [{ queues: { mail: { retries: 3 } } }, 'unknown option "queues.mail.retries"'],
    [{ maxRetries: -1 }, '"maxRetries"'],
    [{ maxRetries: 2.5 }, '"maxRetries"'],
    [{ maxRetries: Number.NaN }, '"maxRetries"'],
    [{ maxItems: 0 }, '"maxItems"'],
    [{ leaseMs: Infinity }, '"leaseMs"'],
    [{ leaseMs: 1e308 }, '"leaseMs"'],
    [{ pollMs: 'P1D' }, '"pollMs"'],
    [{ pollMs: 0 }, '"pollMs"'],
    [{ timeoutMs: -5 }, '(got -5)'],
    [{ priority: 'urgent' }, '"priority"'],
    [{ overflow: 'drop' }, '"overflow"'],
    [{ backoff: { kind: 'exponential', baseMs: -1, factor: 2, maxMs: 1 } }, '"backoff"'],
    [{ backoff: { kind: 'sometimes' } }, '"backoff"'],
    [{ retention: { archiveAfterMs: '3 days' } }, '"retention.archiveAfterMs"'],
    [{ breaker: { failures: 0 } }, '"breaker'],
    [{ rules: 'none' }, '"rules"'],
    [{ observers: [1] }, '"observers.0"'],
    [{ worker: '' }, '"worker"'],
  ])('refuses %j with INVALID_CONFIG that names it', (options, message) => {
    expect(() => readOptions(options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(message) as string,
      }) as Error,
    )
  })
})

describe('readPolicy', () => {
  it('takes the options of one queue and refuses those of the whole', () => {
    expect(readPolicy({ backoff: fixed(1), maxRetries: 1 })).toEqual({
      backoff: fixed(1),
      maxRetries: 1,
    })
    expect(() => readPolicy({ maxItems: 3 } as object)).toThrow('unknown queue option "maxItems"')
  })
})
