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
  ])('schedules the first retry of a %s failure', (category, minutes) => {
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

  it('uses the policy of the queue, but still parks permanent failures', () => {
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

  it('uses the policy that the caller chose, regardless of the category', () => {
    const chosen = immediate()
    expect(decide('validation', { chosen })).toMatchObject({
      state: 'pending',
      delayMs: 0,
      policy: chosen,
    })
    expect(decide('network', { chosen, preferred: fixed(7000) })).toMatchObject({ delayMs: 0 })
  })

  it('parks a letter with the policy never', () => {
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

  it('parks a letter with maxRetries 0', () => {
    expect(decide('network', { maxRetries: 0 })).toEqual({
      kind: 'keep',
      state: 'parked',
      policy: exponential(),
      reason: 'never',
    })
  })

  it('retries critical letters at once, unless the other side asks for a delay', () => {
    expect(decide('network', { priority: 'critical' })).toMatchObject({ delayMs: 0 })
    const limited = judged('rate-limit', { retryAfterMs: 90_000 })
    expect(decide('rate-limit', { priority: 'critical', judged: limited })).toMatchObject({
      delayMs: 90_000,
    })
  })

  it('reports the problem with a custom backoff', () => {
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
