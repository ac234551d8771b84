import { describe, expect, it } from 'vitest'
import type { ErrorCategory, Failure } from '../../src/letter/letter.ts'
import {
  custom,
  defaultPolicyFor,
  exponential,
  fixed,
  immediate,
  never,
} from '../../src/policy/backoff.ts'
import { checkFitness, decideCapture } from '../../src/policy/decide.ts'

const minuteMs = 60_000
const at = '2025-01-01T00:00:00.000Z'
const nowMs = Date.parse(at)
const random = (): number => 0.5
const failure: Failure = { name: 'Error', message: 'no', causes: [], at }
const judged = (
  category: ErrorCategory,
  over: Partial<Failure> = {},
): { failure: Failure; category: ErrorCategory } => ({
  failure: { ...failure, ...over },
  category,
})

describe('decideCapture', () => {
  const decide = (
    category: ErrorCategory,
    over: Partial<Parameters<typeof decideCapture>[0]> = {},
  ): ReturnType<typeof decideCapture> =>
    decideCapture({ judged: judged(category), priority: 'medium', maxRetries: 3, random, ...over })

  it.each<[ErrorCategory, number]>([
    ['transient', 1],
    ['network', 1],
    ['timeout', 1],
    ['rate-limit', 1],
    ['dependency', 1],
    ['unknown', 1],
    ['resource', 5],
  ])('lets a %s failure wait for its first retry', (category, minutes) => {
    const policy = defaultPolicyFor(category)
    expect(decide(category)).toEqual({
      kind: 'keep',
      state: 'pending',
      policy,
      delayMs: minutes * minuteMs,
    })
  })

  it.each<ErrorCategory>(['permanent', 'permission', 'validation'])(
    'parks a %s failure and keeps it',
    (category) => {
      expect(decide(category)).toEqual({
        kind: 'keep',
        state: 'parked',
        policy: never(),
        reason: 'permanent',
      })
    },
  )

  it('waits as the queue prefers, but parks what is hopeless all the same', () => {
    const preferred = fixed(7000)
    expect(decide('network', { preferred })).toMatchObject({
      state: 'pending',
      delayMs: 7000,
      policy: preferred,
    })
    expect(decide('validation', { preferred })).toMatchObject({
      state: 'parked',
      reason: 'permanent',
    })
  })

  it('does what the caller chose for this letter, whatever its category', () => {
    const chosen = immediate()
    expect(decide('validation', { chosen })).toMatchObject({
      state: 'pending',
      delayMs: 0,
      policy: chosen,
    })
    expect(decide('network', { chosen, preferred: fixed(7000) })).toMatchObject({ delayMs: 0 })
  })

  it('parks what is never to be retried by choice', () => {
    expect(decide('network', { chosen: never() })).toMatchObject({
      state: 'parked',
      reason: 'never',
    })
    expect(decide('network', { preferred: never() })).toMatchObject({
      state: 'parked',
      reason: 'never',
    })
    expect(decide('permanent', { chosen: never() })).toMatchObject({
      state: 'parked',
      reason: 'permanent',
    })
  })

  it('parks a letter without retries instead of letting it wait for ever', () => {
    expect(decide('network', { maxRetries: 0 })).toEqual({
      kind: 'keep',
      state: 'parked',
      policy: exponential(),
      reason: 'never',
    })
  })

  it('lets critical letters go at once, unless the other side asked for time', () => {
    expect(decide('network', { priority: 'critical' })).toMatchObject({ delayMs: 0 })
    const told = judged('rate-limit', { retryAfterMs: 90_000 })
    expect(decide('rate-limit', { priority: 'critical', judged: told })).toMatchObject({
      delayMs: 90_000,
    })
  })

  it('passes on what was wrong with a custom backoff', () => {
    expect(decide('network', { chosen: custom('gone') })).toMatchObject({
      delayMs: minuteMs,
      problem: expect.stringContaining('gone') as string,
    })
  })
})

describe('checkFitness', () => {
  const letter = { retries: 1, maxRetries: 3 }

  it('runs a letter up to its limit', () => {
    for (const retries of [1, 2, 3])
      expect(checkFitness({ ...letter, retries }, nowMs)).toBeUndefined()
  })

  it('parks a letter that was claimed too often without a result, without counting the claim', () => {
    expect(checkFitness({ ...letter, retries: 4 }, nowMs)).toMatchObject({
      reason: 'crash-loop',
      retries: 3,
    })
  })

  it('runs a letter with maxRetries 0 once when a person retries it', () => {
    expect(checkFitness({ retries: 1, maxRetries: 0 }, nowMs)).toBeUndefined()
    expect(checkFitness({ retries: 2, maxRetries: 0 }, nowMs)).toMatchObject({
      reason: 'crash-loop',
    })
  })

  it('parks a corrupt letter with the reason', () => {
    const corrupt = 'history is no JSON'
    const unfit = { reason: 'malformed', retries: 8, note: corrupt }
    expect(checkFitness({ ...letter, retries: 9, corrupt }, nowMs)).toEqual(unfit)
  })

  it('parks a letter after its expiry, not at the exact timestamp', () => {
    expect(checkFitness({ ...letter, expiresAt: at }, nowMs)).toBeUndefined()
    expect(checkFitness({ ...letter, expiresAt: at }, nowMs + 1)).toMatchObject({
      reason: 'expired',
      retries: 0,
    })
    expect(checkFitness({ ...letter, expiresAt: 'no timestamp' }, nowMs)).toBeUndefined()
  })
})
