import { describe, expect, it } from 'vitest'
import * as letter from '../../../src/letter/letter.ts'
import * as codes from '../../../src/stores/sqlite/codes.ts'

describe('codes', () => {
  it.each(['states', 'priorities', 'categories', 'actions'] as const)('has all %s', (list) => {
    expect([...codes[list]].sort()).toEqual([...letter[list]].sort())
  })

  it('reads back the parts of a cell', () => {
    const cell = { queue: 123_456, state: 5, category: 9, priority: 3, policy: 5 }
    expect(codes.partsOf(codes.cellOf(cell.queue, cell))).toEqual(cell)
  })
})
