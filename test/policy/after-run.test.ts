import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  categories,
  priorities,
  type DeadLetter,
  type ErrorCategory,
  type Failure,
  type RetryPolicy,
} from '../../src/letter/letter.ts'
import type { Judged, Mover } from '../../src/letter/moves.ts'
import { toTimestamp } from '../../src/letter/time.ts'
import { changeAfterFailure, type FailedRun } from '../../src/policy/after-run.ts'
import { custom, exponential, fixed, immediate, linear, never } from '../../src/policy/backoff.ts'
import { judgement } from '../../src/policy/judgement.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const minuteMs = 60_000
const at = '2025-01-01T00:00:00.000Z'
const nowMs = Date.parse(at)
const moverAt = (ms: number): Mover => ({ at: toTimestamp(ms), actor: 'w', guard: 'epoch' })
const judged = (category: ErrorCategory, over: Partial<Failure> = {}): Judged => ({
  ...judgement(category),
  failure: { name: 'Error', message: 'no', causes: [], at, ...over },
  fingerprint: 'v1-0',
})

/** The fields of a change that the tests check. */
interface Decision {
  move: string
  delayMs?: number
  reason?: string
  maxRetries?: number
  policy?: RetryPolicy
}

function decide(
  category: ErrorCategory,
  over: Partial<DeadLetter> = {},
  settings: Partial<FailedRun> = {},
): Decision {
  const letter = aLetter({
    state: 'retrying',
    category: 'network',
    policy: exponential(),
    priority: 'medium',
    retries: 1,
    maxRetries: 5,
    deadLetteredAt: at,
    ...over,
  })
  const { change } = changeAfterFailure({
    letter,
    by: moverAt(nowMs),
    judged: judged(category),
    limits: { maxRetries: 5 },
    random: () => 0.5,
    ...settings,
  })
  const { backoffMs, reason, maxRetries, policy, retryAt } = change.set
  if (retryAt) expect(Date.parse(retryAt)).toBe(Date.parse(change.entry.at) + backoffMs!)
  return {
    move: change.action,
    ...(backoffMs === undefined ? {} : { delayMs: backoffMs }),
    ...(change.action === 'park' ? { reason: reason! } : {}),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(policy === undefined || policy === letter.policy ? {} : { policy }),
  }
}

describe('changeAfterFailure', () => {
  it('waits longer after each counted run', () => {
    const delays = [1, 2, 3, 4].map((retries) => decide('network', { retries }))
    expect(delays).toEqual(
      [2, 4, 8, 16].map((minutes) => ({ move: 'reschedule', delayMs: minutes * minuteMs })),
    )
  })

  it('exhausts a letter that has used all its retries', () => {
    for (const retries of [5, 6])
      expect(decide('network', { retries })).toEqual({ move: 'exhaust' })
    expect(decide('network', { maxRetries: 0, retries: 1 })).toEqual({ move: 'exhaust' })
  })

  it.each<ErrorCategory>(['permanent', 'permission', 'validation'])(
    'parks a letter at once after a %s failure',
    (category) => {
      expect(decide(category)).toEqual({ move: 'park', reason: 'permanent' })
      expect(decide(category, { retries: 5, policy: immediate() })).toEqual({
        move: 'park',
        reason: 'permanent',
      })
    },
  )

  it('retries an unknown failure a few times, then asks a person', () => {
    const unknown = { category: 'unknown' as const, maxRetries: 3 }
    expect(decide('unknown', { ...unknown, retries: 2 })).toMatchObject({ move: 'reschedule' })
    expect(decide('unknown', { ...unknown, retries: 3 })).toEqual({
      move: 'park',
      reason: 'retries-exhausted',
    })
    const one = { limits: { maxRetries: 5, unknownRetries: 1 } }
    expect(decide('unknown', { retries: 1 }, one)).toEqual({
      move: 'park',
      reason: 'retries-exhausted',
      maxRetries: 1,
    })
    const three = { limits: { maxRetries: 3 } }
    expect(decide('unknown', { ...unknown, retries: 3 }, three)).toEqual({ move: 'exhaust' })
  })

  it('uses the limit of the category of each failure', () => {
    const limits = { maxRetries: 5, maxRetriesByCategory: { 'rate-limit': 3, resource: 2 } }
    const decideBy = (category: ErrorCategory, over: Partial<DeadLetter>): Decision =>
      decide(category, over, { limits })
    expect(decideBy('rate-limit', { retries: 2 })).toMatchObject({
      move: 'reschedule',
      maxRetries: 3,
    })
    expect(decideBy('rate-limit', { retries: 3 })).toEqual({ move: 'exhaust', maxRetries: 3 })
    expect(decideBy('resource', { retries: 4 })).toEqual({ move: 'exhaust', maxRetries: 2 })
    expect(decideBy('network', { retries: 2, maxRetries: 2 })).toMatchObject({
      move: 'reschedule',
      maxRetries: 5,
    })
  })

  it('keeps a limit that was chosen for the letter, or set by other options', () => {
    const limits = { maxRetries: 9, maxRetriesByCategory: { network: 1 } }
    const chosen = { maxRetries: 9, maxRetriesChosen: true as const }
    for (const own of [chosen, { maxRetries: 7 }]) {
      expect(decide('network', { ...own, retries: 6 }, { limits })).toMatchObject({
        move: 'reschedule',
      })
      expect(decide('unknown', { ...own, retries: own.maxRetries }, { limits })).toEqual({
        move: 'exhaust',
      })
    }
  })

  it('exhausts by time with retryForMs, regardless of the number of retries', () => {
    const limits = { maxRetries: 3, retryForMs: 10 * minuteMs }
    const after = (minutes: number, over: Partial<DeadLetter>): Decision =>
      decide('network', over, { limits, by: moverAt(nowMs + minutes * minuteMs) })
    expect(after(9, { retries: 50, policy: fixed(1000) })).toEqual({
      move: 'reschedule',
      delayMs: 1000,
      maxRetries: 53,
    })
    expect(after(10, { retries: 51 })).toEqual({ move: 'exhaust', maxRetries: 51 })
    const budgetSince = new Date(nowMs + 5 * minuteMs).toISOString()
    expect(after(10, { retries: 1, budgetSince })).toMatchObject({ move: 'reschedule' })
  })

  it('runs a last time when the time is up, but not before the other side asks', () => {
    const limits = { maxRetries: 3, retryForMs: 10 * minuteMs }
    const policy = fixed(60 * minuteMs)
    expect(decide('network', { policy }, { limits })).toMatchObject({ delayMs: 10 * minuteMs })
    const slowDown = judged('rate-limit', { retryAfterMs: 30 * minuteMs })
    expect(decide('rate-limit', { policy }, { limits, judged: slowDown })).toMatchObject({
      delayMs: 30 * minuteMs,
    })
  })

  it('exhausts at once at a limit of 0, even with time left', () => {
    const limits = { maxRetries: 3, maxRetriesByCategory: { network: 0 }, retryForMs: minuteMs }
    expect(decide('network', { retries: 1, maxRetries: 3 }, { limits })).toEqual({
      move: 'exhaust',
      maxRetries: 0,
    })
  })

  it('parks a letter again whose policy is never', () => {
    expect(decide('network', { policy: never() })).toEqual({ move: 'park', reason: 'never' })
  })

  it('changes a policy that was derived from the category', () => {
    expect(decide('resource')).toEqual({
      move: 'reschedule',
      delayMs: 10 * minuteMs,
      policy: linear(),
    })
    const invalid: Partial<DeadLetter> = { category: 'validation', policy: never() }
    expect(decide('network', invalid)).toEqual({
      move: 'reschedule',
      delayMs: 2 * minuteMs,
      policy: exponential(),
    })
    const reordered = {
      maxMs: 3_600_000,
      factor: 2,
      kind: 'exponential',
      baseMs: 60_000,
    } satisfies RetryPolicy
    expect(decide('resource', { policy: reordered })).toMatchObject({ policy: linear() })
  })

  it('keeps a chosen policy', () => {
    expect(decide('resource', { policy: fixed(5000) })).toEqual({
      move: 'reschedule',
      delayMs: 5000,
    })
    expect(decide('timeout')).toEqual({ move: 'reschedule', delayMs: 2 * minuteMs })
  })

  it('uses an override without storing it in the letter', () => {
    const policyOverride = fixed(9000)
    expect(decide('resource', {}, { policyOverride })).toEqual({
      move: 'reschedule',
      delayMs: 9000,
    })
    expect(decide('validation', {}, { policyOverride })).toMatchObject({ move: 'park' })
  })

  it('never reschedules a letter without retries left, and always with a finite delay', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...categories),
        fc.constantFrom(...categories),
        fc.constantFrom(...priorities),
        fc.constantFrom(
          never(),
          immediate(),
          fixed(5),
          linear(),
          exponential({ jitter: 'full' }),
          custom('x'),
        ),
        fc.nat(20),
        fc.nat(20),
        (before, category, priority, policy, retries, maxRetries) => {
          const next = decide(category, { category: before, priority, policy, retries, maxRetries })
          if (next.move !== 'reschedule') return
          expect(retries).toBeLessThan(next.maxRetries ?? maxRetries)
          expect(next.delayMs).toBeGreaterThanOrEqual(0)
          expect(Number.isFinite(next.delayMs)).toBe(true)
        },
      ),
    )
  })
})

describe('changeAfterFailure during an outage', () => {
  /** The delay of a letter that was deferred so many times before; undefined if the run counts. */
  const deferral = (
    deferrals: number,
    over: Partial<DeadLetter> = {},
    settings: Partial<FailedRun> = {},
  ): number | undefined => {
    const history = Array.from({ length: deferrals }, () => released)
    const letter = { policy: fixed(7000), maxRetries: 3, backoffMs: 7000, history, ...over }
    const next = decide('network', letter, { limits: { maxRetries: 3 }, deferMs: 0, ...settings })
    return next.move === 'release' ? next.delayMs : undefined
  }
  const released: DeadLetter['history'][number] = {
    at,
    actor: 'w',
    action: 'release',
    from: 'retrying',
    to: 'pending',
    failure: { name: 'Error', message: 'no', category: 'network' },
  }

  it('waits by the policy while retries would be left, and then twice as long each time', () => {
    expect([0, 1].map((deferrals) => deferral(deferrals))).toEqual([7000, 7000])
    expect(deferral(2)).toBe(14_000)
    expect(deferral(3, { backoffMs: 14_000 })).toBe(28_000)
    expect(deferral(40, { backoffMs: 50 * minuteMs })).toBe(60 * minuteMs)
  })

  it('waits at least as long as the breaker and the other side ask, and in the end a second', () => {
    expect(deferral(0, {}, { deferMs: 30_000 })).toBe(30_000)
    const slowDown = judged('network', { retryAfterMs: 90_000 })
    expect(deferral(0, {}, { judged: slowDown })).toBe(90_000)
    expect(deferral(0, { backoffMs: 0, policy: immediate() })).toBe(0)
    expect(deferral(5, { backoffMs: 0, policy: immediate() })).toBe(1000)
  })

  it('counts the run when there is no outage, no retry is wanted, or the time is up', () => {
    expect(deferral(0, {}, { deferMs: undefined })).toBeUndefined()
    expect(deferral(0, { policy: never() })).toBeUndefined()
    expect(deferral(0, { maxRetries: 0, maxRetriesChosen: true })).toBeUndefined()
    const limits = { maxRetries: 3, retryForMs: minuteMs }
    expect(deferral(0, {}, { limits, by: moverAt(nowMs + minuteMs) })).toBeUndefined()
    expect(deferral(9, { backoffMs: 50_000 }, { limits })).toBe(minuteMs)
  })
})
