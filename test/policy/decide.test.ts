import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  categories,
  priorities,
  type ErrorCategory,
  type Failure,
  type RetryPolicy,
} from '../../src/letter/letter.ts'
import {
  custom,
  defaultPolicyFor,
  exponential,
  fixed,
  immediate,
  linear,
  never,
} from '../../src/policy/backoff.ts'
import {
  decideAfterRun,
  decideCapture,
  decideClaimed,
  decideDeferral,
} from '../../src/policy/decide.ts'

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

describe('decideAfterRun', () => {
  type Letter = Parameters<typeof decideAfterRun>[0]['letter']
  const letter: Letter = {
    category: 'network',
    policy: exponential(),
    priority: 'medium',
    retries: 1,
    maxRetries: 5,
    deadLetteredAt: at,
  }
  const decide = (
    category: ErrorCategory,
    over: Partial<Letter> = {},
    settings: Partial<Parameters<typeof decideAfterRun>[0]> = {},
  ): ReturnType<typeof decideAfterRun> =>
    decideAfterRun({
      letter: { ...letter, ...over },
      judged: judged(category),
      limits: { maxRetries: 5 },
      nowMs,
      random,
      ...settings,
    })

  it('waits longer after each run that was counted', () => {
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
    'parks at once what turns out %s',
    (category) => {
      expect(decide(category)).toEqual({ move: 'park', reason: 'permanent' })
      expect(decide(category, { retries: 5, policy: immediate() })).toEqual({
        move: 'park',
        reason: 'permanent',
      })
    },
  )

  it('tries what it does not know a little, then asks a person', () => {
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

  it('follows the category of each failure with a limit that the options give', () => {
    const limits = { maxRetries: 5, maxRetriesByCategory: { 'rate-limit': 3, resource: 2 } }
    const decideBy = (
      category: ErrorCategory,
      over: Partial<Letter>,
    ): ReturnType<typeof decideAfterRun> => decide(category, over, { limits })
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

  it('keeps a limit that was chosen for the letter, or that other options gave', () => {
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

  it('gives up by time where that is the limit, whatever the number of retries', () => {
    const limits = { maxRetries: 3, retryForMs: 10 * minuteMs }
    const after = (minutes: number, over: Partial<Letter>): ReturnType<typeof decideAfterRun> =>
      decide('network', over, { limits, nowMs: nowMs + minutes * minuteMs })
    expect(after(9, { retries: 50, policy: fixed(1000) })).toEqual({
      move: 'reschedule',
      delayMs: 1000,
      maxRetries: 53,
    })
    expect(after(10, { retries: 51 })).toEqual({ move: 'exhaust', maxRetries: 51 })
    const budgetSince = new Date(nowMs + 5 * minuteMs).toISOString()
    expect(after(10, { retries: 1, budgetSince })).toMatchObject({ move: 'reschedule' })
  })

  it('runs a last time when the time is up, but not sooner than the other side asked', () => {
    const limits = { maxRetries: 3, retryForMs: 10 * minuteMs }
    const policy = fixed(60 * minuteMs)
    expect(decide('network', { policy }, { limits })).toMatchObject({ delayMs: 10 * minuteMs })
    const told = judged('rate-limit', { retryAfterMs: 30 * minuteMs })
    expect(decide('rate-limit', { policy }, { limits, judged: told })).toMatchObject({
      delayMs: 30 * minuteMs,
    })
  })

  it('gives up at once at a limit of 0, though there is time left', () => {
    const limits = { maxRetries: 3, maxRetriesByCategory: { network: 0 }, retryForMs: minuteMs }
    expect(decide('network', { retries: 1, maxRetries: 3 }, { limits })).toEqual({
      move: 'exhaust',
      maxRetries: 0,
    })
  })

  it('parks again a letter that somebody chose never to retry', () => {
    expect(decide('network', { policy: never() })).toEqual({ move: 'park', reason: 'never' })
  })

  it('follows the category with a policy that came from the category', () => {
    expect(decide('resource')).toEqual({
      move: 'reschedule',
      delayMs: 10 * minuteMs,
      policy: linear(),
    })
    const hopeless: Partial<Letter> = { category: 'validation', policy: never() }
    expect(decide('network', hopeless)).toEqual({
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

  it('keeps a policy that somebody chose', () => {
    expect(decide('resource', { policy: fixed(5000) })).toEqual({
      move: 'reschedule',
      delayMs: 5000,
    })
    expect(decide('timeout')).toEqual({ move: 'reschedule', delayMs: 2 * minuteMs })
  })

  it('waits by an override, without making it the policy of the letter', () => {
    const policyOverride = fixed(9000)
    expect(decide('resource', {}, { policyOverride })).toEqual({
      move: 'reschedule',
      delayMs: 9000,
    })
    expect(decide('validation', {}, { policyOverride })).toMatchObject({ move: 'park' })
  })

  it('never reschedules a letter without retries left and always answers with a wait that is a number', () => {
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

describe('decideDeferral', () => {
  type Question = Parameters<typeof decideDeferral>[1]
  const question: Question = {
    letter: {
      category: 'network',
      policy: fixed(7000),
      priority: 'medium',
      retries: 1,
      maxRetries: 3,
      deadLetteredAt: at,
    },
    judged: judged('network'),
    limits: { maxRetries: 3 },
    nowMs,
    random,
  }
  const released = (runs: number): Parameters<typeof decideDeferral>[0]['history'] =>
    Array.from({ length: runs }, () => ({
      at,
      actor: 'w',
      action: 'release',
      from: 'retrying',
      to: 'pending',
      failure: { name: 'Error', message: 'no', category: 'network' },
    }))
  const decide = (
    runs: number,
    over: { backoffMs?: number; deferMs?: number; asked?: Partial<Question> } = {},
  ): number | undefined =>
    decideDeferral(
      { history: released(runs), backoffMs: over.backoffMs ?? 7000 },
      { ...question, ...over.asked },
      over.deferMs ?? 0,
    )?.delayMs

  it('waits by the policy as long as there would be retries left, and then twice as long each time', () => {
    expect([0, 1].map((runs) => decide(runs))).toEqual([7000, 7000])
    expect(decide(2)).toBe(14_000)
    expect(decide(3, { backoffMs: 14_000 })).toBe(28_000)
    expect(decide(40, { backoffMs: 50 * minuteMs })).toBe(60 * minuteMs)
  })

  it('never waits for less than it is told, than the other side asked, and than a second in the end', () => {
    expect(decide(0, { deferMs: 30_000 })).toBe(30_000)
    const told = judged('network', { retryAfterMs: 90_000 })
    expect(decide(0, { asked: { judged: told } })).toBe(90_000)
    const immediately = { ...question.letter, policy: immediate() }
    expect(decide(0, { backoffMs: 0, asked: { letter: immediately } })).toBe(0)
    expect(decide(5, { backoffMs: 0, asked: { letter: immediately } })).toBe(1000)
  })

  it('counts the run when there is no outage, no retry is wanted, or the time is up', () => {
    expect(decideDeferral({ history: [], backoffMs: 0 }, question, undefined)).toBeUndefined()
    expect(
      decide(0, { asked: { letter: { ...question.letter, policy: never() } } }),
    ).toBeUndefined()
    const none = { ...question.letter, maxRetries: 0, maxRetriesChosen: true as const }
    expect(decide(0, { asked: { letter: none } })).toBeUndefined()
    const limits = { maxRetries: 3, retryForMs: minuteMs }
    const asked = { limits, nowMs: nowMs + minuteMs }
    expect(decide(0, { asked })).toBeUndefined()
    expect(decide(9, { asked: { limits }, backoffMs: 50_000 })).toBe(minuteMs)
  })
})

describe('decideClaimed', () => {
  const letter = { retries: 1, maxRetries: 3 }

  it('runs a letter up to its limit', () => {
    for (const retries of [1, 2, 3])
      expect(decideClaimed({ ...letter, retries }, nowMs)).toEqual({ move: 'run' })
  })

  it('parks a letter whose worker never came back, and takes the claim back', () => {
    expect(decideClaimed({ ...letter, retries: 4 }, nowMs)).toMatchObject({
      move: 'park',
      reason: 'crash-loop',
      retries: 3,
    })
  })

  it('runs a letter without retries once when a person asks for it', () => {
    expect(decideClaimed({ retries: 1, maxRetries: 0 }, nowMs)).toEqual({ move: 'run' })
    expect(decideClaimed({ retries: 2, maxRetries: 0 }, nowMs)).toMatchObject({
      reason: 'crash-loop',
    })
  })

  it('parks what cannot be read and says why', () => {
    const corrupt = 'history is no JSON'
    const parking = { move: 'park', reason: 'malformed', retries: 8, note: corrupt }
    expect(decideClaimed({ ...letter, retries: 9, corrupt }, nowMs)).toEqual(parking)
  })

  it('parks what has expired, but not at the very moment', () => {
    expect(decideClaimed({ ...letter, expiresAt: at }, nowMs)).toEqual({ move: 'run' })
    expect(decideClaimed({ ...letter, expiresAt: at }, nowMs + 1)).toMatchObject({
      reason: 'expired',
      retries: 0,
    })
    expect(decideClaimed({ ...letter, expiresAt: 'no moment' }, nowMs)).toEqual({ move: 'run' })
  })
})
