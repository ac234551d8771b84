import { describe, expect, it } from 'vitest'
import { describeLetter, type Described } from '../../web/src/format/letter-sentence.ts'

const nowMs = Date.parse('2026-11-18T12:00:00.000Z')
const at = (offsetMs: number): string => new Date(nowMs + offsetMs).toISOString()
const minute = 60_000

function aLetter(change: Partial<Described> = {}): Described {
  return {
    queue: 'charge-card',
    state: 'pending',
    failure: {
      name: 'Error',
      message: 'connect ETIMEDOUT',
      code: 'ETIMEDOUT',
      causes: [],
      at: at(0),
    },
    attempts: 1,
    retries: 3,
    maxRetries: 4,
    ...change,
  }
}

const waiting = { retryAt: at(3 * minute) }
const parked = (reason: Described['reason']): Partial<Described> => ({
  state: 'parked',
  retries: 0,
  ...(reason === undefined ? {} : { reason }),
})
const resolved = { state: 'resolved', settledAt: at(-2 * minute) } as const

describe('describeLetter', () => {
  it.each<[Partial<Described>, string]>([
    [waiting, 'charge-card failed 4 times with ETIMEDOUT. Next retry in 3 min, 1 retry left.'],
    [
      { ...waiting, retries: 1 },
      'charge-card failed twice with ETIMEDOUT. Next retry in 3 min, 3 retries left.',
    ],
    [
      { retryAt: at(-minute), retries: 0 },
      'charge-card failed with ETIMEDOUT. The next retry is due now, 4 retries left.',
    ],
    [
      { ...waiting, retries: 4 },
      'charge-card failed 5 times with ETIMEDOUT. Next retry in 3 min, no retries left.',
    ],
    [
      { retries: 0, dependsOn: ['a', 'b'] },
      'charge-card failed with ETIMEDOUT. It waits for 2 letters that must succeed before it, 4 retries left.',
    ],
    [
      { retries: 0 },
      'charge-card failed with ETIMEDOUT. It has no time for its next retry, 4 retries left.',
    ],
    [
      { state: 'retrying', retries: 2, lease: { worker: 'w-1', epoch: 2, expiresAt: at(minute) } },
      'charge-card failed twice with ETIMEDOUT. Retry 2 of 4 runs now on w-1.',
    ],
    [
      { state: 'exhausted', retries: 4 },
      'charge-card failed 5 times with ETIMEDOUT. All 4 retries failed. Fix the cause, then retry it.',
    ],
    [
      { state: 'exhausted', retries: 1, maxRetries: 1 },
      'charge-card failed twice with ETIMEDOUT. Its retry failed. Fix the cause, then retry it.',
    ],
    [
      { state: 'exhausted', retries: 0, maxRetries: 0 },
      'charge-card failed with ETIMEDOUT. It has no retries. Fix the cause, then retry it.',
    ],
    [
      { state: 'exhausted', retries: 1, reason: 'expired' },
      'charge-card failed twice with ETIMEDOUT. It expired before a retry succeeded.',
    ],
    [
      { ...resolved, retries: 2 },
      'charge-card failed twice with ETIMEDOUT. Retry 2 succeeded 2 min ago.',
    ],
    [
      { ...resolved, retries: 0, reason: 'operator' },
      'charge-card failed with ETIMEDOUT. A person marked it as resolved 2 min ago.',
    ],
    [
      { ...resolved, retries: 0, reason: 'replayed' },
      'charge-card failed with ETIMEDOUT. It was published to its source again 2 min ago.',
    ],
    [
      { ...resolved, retries: 0, reason: 'superseded' },
      'charge-card failed with ETIMEDOUT. Newer work replaced it 2 min ago.',
    ],
    [
      { state: 'archived', archivedFrom: 'parked', settledAt: at(-minute), retries: 0 },
      'charge-card failed with ETIMEDOUT. Archived 1 min ago: nothing happens to it. It was parked before.',
    ],
    [
      { ...parked('replayed'), retryAt: at(minute) },
      'charge-card failed with ETIMEDOUT. It was published to its source again, and waits for the confirmation that it succeeded.',
    ],
    [parked('operator'), 'charge-card failed with ETIMEDOUT. A person set it aside.'],
    [
      parked(undefined),
      'charge-card failed with ETIMEDOUT. It waits for the decision of a person.',
    ],
  ])('%o', (change, sentence) => {
    expect(describeLetter(aLetter(change), nowMs)).toBe(sentence)
  })

  it.each([
    'permanent',
    'malformed',
    'no-handler',
    'never',
    'crash-loop',
    'max-hops',
    'expired',
    'replay-limit',
    'dependency-failed',
    'retries-exhausted',
    'superseded',
    'replayed',
    'redacted',
    'erased',
  ] as const)('says why a letter is parked: %s', (reason) => {
    const sentence = describeLetter(aLetter(parked(reason)), nowMs)
    expect(sentence).toMatch(/^charge-card failed with ETIMEDOUT\. [A-Z].{15,}\.$/)
    expect(sentence).not.toMatch(/undefined|NaN/)
  })

  it.each([
    [{ code: 'ECONNRESET', status: 500 }, 'ECONNRESET'],
    [{ code: '42', status: 503 }, 'HTTP 503'],
    [{ status: 404 }, 'HTTP 404'],
    [{ name: 'TypeError', message: 'x is not a function' }, 'TypeError'],
    [{ message: 'the limit is 500\nmore' }, '“the limit is 500”'],
    [{ message: '' }, 'Error'],
  ])('names a failure by what people recognize: %o', (failure, name) => {
    const letter = aLetter({
      ...parked('operator'),
      failure: { name: 'Error', message: 'm', causes: [], at: at(0), ...failure },
    })
    expect(describeLetter(letter, nowMs)).toContain(`failed with ${name}. `)
  })
})
