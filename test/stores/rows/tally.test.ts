import { describe, expect, it } from 'vitest'
import {
  archived,
  categoryCode,
  policyCode,
  priorityCode,
  stateCode,
} from '../../../src/stores/rows/codes.ts'
import { cellCodes, isCountable, passes, valuesOf, wordOf } from '../../../src/stores/rows/tally.ts'
import type { LetterFilter } from '../../../src/letter/query.ts'
import { aLetter } from '../../../src/testing/index.ts'

const cell = {
  state: stateCode('parked'),
  category: categoryCode('network'),
  priority: priorityCode('high'),
  policy: policyCode('fixed'),
}

describe('isCountable', () => {
  it('is true only for filters by counted fields', () => {
    expect(isCountable({ queue: 'a', state: 'parked', category: 'network' })).toBe(true)
    expect(isCountable({ priority: ['low', 'high'], policy: 'never' })).toBe(true)
    expect(isCountable({ queue: 'a', tag: 'b' })).toBe(false)
    expect(isCountable({ ids: [] })).toBe(false)
  })
})

describe('passes', () => {
  it.each<[LetterFilter, boolean]>([
    [{}, true],
    [
      { state: 'parked', category: ['network', 'timeout'], priority: 'high', policy: 'fixed' },
      true,
    ],
    [{ state: 'pending' }, false],
    [{ category: 'timeout' }, false],
    [{ priority: ['low', 'medium'] }, false],
    [{ policy: 'never' }, false],
    [{ state: [] }, false],
  ])('returns for %j: %s', (filter, expected) => {
    expect(passes(cellCodes(filter), cell)).toBe(expected)
  })

  it('excludes archived letters unless the filter names their state or ids', () => {
    const among = (filter: LetterFilter): boolean =>
      passes(cellCodes(filter), { ...cell, state: archived })
    expect([among({}), among({ state: 'archived' }), among({ ids: ['a'] })]).toEqual([
      false,
      true,
      true,
    ])
  })
})

describe('valuesOf', () => {
  it('returns each tag once, and one value for other fields', () => {
    const letter = aLetter({ queue: 'q', tags: ['a', 'b', 'a'], policy: { kind: 'never' } })
    expect(valuesOf(letter, 'tag')).toEqual(['a', 'b'])
    expect(valuesOf(letter, 'queue')).toEqual(['q'])
    expect(valuesOf(letter, 'policy')).toEqual(['never'])
    expect(valuesOf(letter, 'group')).toEqual([letter.fingerprint])
  })
})

describe('wordOf', () => {
  it('reads the codes of cells, and unknown codes as unknown', () => {
    expect(wordOf('category', cell.category)).toBe('network')
    expect(wordOf('policy', 99)).toBe('unknown')
  })
})
