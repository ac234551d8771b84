import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { exponential, fixed, never } from '../../src/policy/backoff.ts'
import { Backtest, type BacktestChange } from '../../src/policy/backtest.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

const at = '2026-01-01T00:00:00.000Z'
const failure = { name: 'Error', message: 'quota of the day is used up', causes: [], at }
const base: Partial<DeadLetter> = {
  failure,
  category: 'transient',
  severity: 'low',
  recoverability: 'retryable',
  fingerprint: 'f1',
  policy: fixed(1000),
  maxRetries: 3,
  retries: 3,
  state: 'exhausted',
}
const permanent = {
  name: 'quota',
  when: { message: 'quota of the day' },
  category: 'permanent',
} as const

function run(change: BacktestChange, ...letters: Partial<DeadLetter>[]) {
  const limitsFor = () => ({ maxRetries: 3, maxRetriesByCategory: { timeout: 7 } })
  const customs = { broken: () => NaN }
  const backtest = new Backtest(change, { rules: [], customs, limitsFor })
  for (const fields of letters) backtest.add(aLetter({ ...base, ...fields }))
  return backtest.report(true)
}

describe('Backtest', () => {
  it('changes nothing without a change', () => {
    const letters = [
      {},
      { state: 'parked', category: 'permission' },
      { state: 'resolved' },
    ] as const
    const report = run({}, ...letters)
    expect(report).toMatchObject({ letters: 3, changed: 0, newlyParked: 0, newlyRetried: 0 })
    expect(report.after).toEqual(report.before)
    expect(report.before).toEqual({
      categories: { transient: 2, permission: 1 },
      recoverabilities: { retryable: 3 },
      parked: 1,
      retries: 6,
      waitMs: 6000,
    })
  })

  it('parks at once what new rules call permanent', () => {
    const other = { failure: { ...failure, message: 'odd' }, fingerprint: 'f2' }
    const report = run({ rules: [permanent] }, {}, {}, other)
    expect(report).toMatchObject({ letters: 3, changed: 2, newlyParked: 2, newlyRetried: 0 })
    expect(report.groups).toMatchObject([
      {
        group: 'f1',
        failure: 'Error: quota of the day is used up',
        letters: 2,
        changed: 2,
        newlyParked: 2,
        before: { categories: { transient: 2 }, retries: 6, waitMs: 6000, parked: 0 },
        after: { categories: { permanent: 2 }, retries: 0, waitMs: 0, parked: 2 },
      },
      { group: 'f2', letters: 1, changed: 0 },
    ])
  })

  it('retries what new rules call a timeout, by the limit and the advice of the rule', () => {
    const parked = { state: 'parked', category: 'permanent', retries: 0 } as const
    const rule = { name: 'slow', when: { message: 'quota' }, category: 'timeout' } as const
    expect(run({ rules: [rule] }, parked)).toMatchObject({
      newlyRetried: 1,
      after: { categories: { timeout: 1 }, retries: 7, waitMs: 7000 },
    })
    const advised = { ...rule, backoff: fixed(5), maxRetries: 2 }
    expect(run({ rules: [advised] }, parked)).toMatchObject({ after: { retries: 2, waitMs: 10 } })
  })

  it('keeps the stored classification where both sets of rules agree', () => {
    // The stored failure alone is unknown: the thrown error said that it was transient.
    const report = run({ rules: [{ ...permanent, when: { message: 'other' } }] }, {})
    expect(report).toMatchObject({ changed: 0, after: { categories: { transient: 1 } } })
  })

  it('a policy of a category follows the category, a chosen one stays', () => {
    const rule = { name: 'r', when: { message: 'quota' }, category: 'rate-limit' } as const
    const chosen = run({ rules: [rule] }, { policy: fixed(1000) })
    expect(chosen.after.waitMs).toBe(3000)
  })

  it('sums the delays of a new policy, in the middle of its jitter', () => {
    const policy = exponential({ baseMs: 100, factor: 2, maxMs: 60_000, jitter: 'full' })
    expect(run({ policy }, {}).after).toMatchObject({ retries: 3, waitMs: 50 + 100 + 200 })
    expect(run({ policy: never() }, {})).toMatchObject({ newlyParked: 1, after: { retries: 0 } })
  })

  it.each<[string, Partial<DeadLetter>, number, number]>([
    ['exhausted uses all retries', {}, 3, 5],
    ['resolved needs as many as it had', { state: 'resolved', retries: 2 }, 2, 2],
    [
      'archived after it was resolved, too',
      { state: 'archived', archivedFrom: 'resolved', retries: 2 },
      2,
      2,
    ],
    ['resolved without a retry tells nothing', { state: 'resolved', retries: 0 }, 3, 5],
    ['with a limit of its own keeps it', { maxRetriesChosen: true }, 3, 3],
  ])('a letter that is %s', (_name, fields, before, after) => {
    const report = run({ maxRetries: 5 }, fields)
    expect([report.before.retries, report.after.retries]).toEqual([before, after])
  })

  it('limits a resolved letter by fewer retries', () => {
    expect(run({ maxRetries: 1 }, { state: 'resolved' }).after.retries).toBe(1)
    expect(run({ maxRetriesByCategory: { transient: 0 } }, {})).toMatchObject({ newlyParked: 1 })
  })

  it('reports rules and backoffs that fail, once each', () => {
    const throws = {
      name: 'bad',
      when: () => {
        throw new Error('oops')
      },
      category: 'unknown',
    } as const
    const policy = { kind: 'custom', name: 'broken' } as const
    const { problems } = run({ rules: [throws], policy }, {}, {})
    expect(problems).toHaveLength(2)
    expect(problems[0]).toContain('rule "bad" threw')
    expect(problems[1]).toContain('custom backoff "broken" returned NaN')
  })
})
