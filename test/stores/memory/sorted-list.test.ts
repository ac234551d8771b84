import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SortedList } from '../../../src/stores/memory/sorted-list.ts'

describe('SortedList', () => {
  it('keeps items in order through any additions and deletions', () => {
    const steps = fc.array(fc.record({ item: fc.nat(100), add: fc.boolean() }), { maxLength: 300 })
    fc.assert(
      fc.property(steps, fc.nat(20), (steps, count) => {
        const list = new SortedList<number>((a, b) => a - b)
        const expected = new Set<number>()
        for (const { item, add } of steps) {
          if (add && !expected.has(item)) list.add(item)
          else if (!add) list.delete(item)
          if (add) expected.add(item)
          else expected.delete(item)
        }
        const sorted = [...expected].sort((a, b) => a - b)
        expect(list.size).toBe(sorted.length)
        expect(list.first()).toBe(sorted[0])
        expect(list.head(count)).toEqual(sorted.slice(0, count))
      }),
    )
  })
})
