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
      'a leased letter: when its lease ends',
      { state: 1, leasedUntil: late, retryAt: middle },
      late,
    ],
    ['a leased letter without an end: at its last change', { state: 1, updatedAt: middle }, middle],
    ['a pending one: when it is to be retried', { state: 0, retryAt: late }, late],
    ['a pending one with no such time: when it came', { state: 0, deadLetteredAt: early }, early],
    [
      'a parked one: when it was to be retried',
      { state: stateCode('parked'), retryAt: late },
      late,
    ],
    ['a parked one with no such time: never', { state: stateCode('parked') }, null],
  ])('%s', (_, given, due) => {
    const blank = { ...row, leasedUntil: null, retryAt: null }
    expect(dueOf({ ...blank, ...given })).toBe(due === null ? null : Date.parse(due))
  })

  it.each(['soon', '0001-01-01T00:00:00.000Z'])('takes %s as long past', (retryAt) => {
    expect(dueOf({ ...row, state: 0, retryAt })).toBe(0)
  })
})
