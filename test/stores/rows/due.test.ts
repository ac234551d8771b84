import { describe, expect, it } from 'vitest'
import { stateCode } from '../../../src/stores/rows/codes.ts'
import { dueOf } from '../../../src/stores/rows/due.ts'
import { pack } from '../../../src/stores/rows/pack.ts'
import { rowOf, type Row } from '../../../src/stores/rows/row.ts'
import { aLetter } from '../../../src/testing/index.ts'

const [early, middle, late] = ['2026-01-01', '2026-01-02', '2026-01-03'].map(
  (day) => `${day}T00:00:00.000Z`,
) as [string, string, string]
const row = rowOf(pack(aLetter())[0])

describe('dueOf', () => {
  it.each<[string, Partial<Row>, string | null]>([
    [
      'the end of the lease for a leased letter',
      { state: 1, leasedUntil: late, retryAt: middle },
      late,
    ],
    ['the last change for a leased letter without an end', { state: 1, updatedAt: middle }, middle],
    ['retryAt for a pending letter', { state: 0, retryAt: late }, late],
    [
      'the capture time for a pending letter without retryAt',
      { state: 0, deadLetteredAt: early },
      early,
    ],
    ['retryAt for a parked letter', { state: stateCode('parked'), retryAt: late }, late],
    ['null for a parked letter without retryAt', { state: stateCode('parked') }, null],
  ])('returns %s', (_, given, due) => {
    const blank = { ...row, leasedUntil: null, retryAt: null }
    expect(dueOf({ ...blank, ...given })).toBe(due === null ? null : Date.parse(due))
  })

  it.each(['soon', '0001-01-01T00:00:00.000Z'])(
    'returns 0 for the invalid or early retryAt %s',
    (retryAt) => {
      expect(dueOf({ ...row, state: 0, retryAt })).toBe(0)
    },
  )
})
