import { describe, expect, it } from 'vitest'
import { actions, categories, priorities, states } from '../../../src/letter/letter.ts'
import * as codes from '../../../src/stores/rows/codes.ts'

describe('codes', () => {
  it('cover every state, priority, category and action', () => {
    expect(new Set<string>(codes.states)).toEqual(new Set(states))
    expect(new Set<string>(codes.priorities)).toEqual(new Set(priorities))
    expect(new Set<string>(codes.categories)).toEqual(new Set(categories))
    const counted = [...actions, 'fail', 'park-at-capture']
    expect(new Set<string>(codes.actions)).toEqual(new Set(counted))
  })

  it('encode a cell whose parts can be decoded', () => {
    const cell = { queue: 123_456, state: 5, category: 9, priority: 3, policy: 5 }
    expect(codes.partsOf(codes.cellOf(cell.queue, cell))).toEqual(cell)
  })
})
