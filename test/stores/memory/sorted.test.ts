import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { merge, Sorted } from '../../../src/stores/memory/sorted.ts'

const smaller = (a: number, b: number): boolean => a < b

function filled(numbers: Iterable<number>): Sorted<number> {
  const sorted = new Sorted(smaller)
  for (const number of numbers) sorted.add(number)
  return sorted
}

describe('Sorted', () => {
  it('keeps items in order through any additions and deletions', () => {
    const steps = fc.array(fc.record({ item: fc.nat(3000), add: fc.boolean() }), {
      maxLength: 4000,
      size: 'max',
    })
    fc.assert(
      fc.property(steps, fc.nat(3000), (steps, at) => {
        const sorted = new Sorted(smaller)
        const expected = new Set<number>()
        for (const { item, add } of steps) {
          if (add && !expected.has(item)) sorted.add(item)
          else if (!add) sorted.delete(item)
          if (add) expected.add(item)
          else expected.delete(item)
        }
        const all = [...expected].sort((a, b) => a - b)
        expect([...sorted.ascend()]).toEqual(all)
        expect([...sorted.descend()]).toEqual(all.toReversed())
        expect(sorted.size).toBe(all.length)
        expect(sorted.first()).toBe(all[0])
        expect([...sorted.ascend((item) => item <= at)]).toEqual(all.filter((item) => item > at))
        expect([...sorted.descend((item) => item < at)]).toEqual(
          all.filter((item) => item < at).toReversed(),
        )
      }),
      { numRuns: 50 },
    )
  })

  it('splits and empties chunks', () => {
    const numbers = Array.from({ length: 5000 }, (_, n) => (n * 2731) % 5000)
    const sorted = filled(numbers)
    expect([...sorted.ascend()]).toEqual(numbers.toSorted((a, b) => a - b))
    for (const number of numbers) sorted.delete(number)
    expect([sorted.size, sorted.first(), [...sorted.ascend()], [...sorted.descend()]]).toEqual([
      0,
      undefined,
      [],
      [],
    ])
    sorted.add(1)
    expect(sorted.first()).toBe(1)
  })

  it('leaves alone what is not there', () => {
    const sorted = filled([1, 3])
    sorted.delete(2)
    sorted.delete(9)
    expect([...sorted.ascend()]).toEqual([1, 3])
  })
})

describe('merge', () => {
  it('makes one order of several', () => {
    const lists = fc.array(fc.uniqueArray(fc.nat(1000), { maxLength: 50 }), { maxLength: 12 })
    fc.assert(
      fc.property(lists, (lists) => {
        const sources = lists.map((list) => filled(list).ascend())
        expect([...merge(sources, smaller)]).toEqual(lists.flat().sort((a, b) => a - b))
      }),
    )
  })

  it('reads no more than it is asked for', () => {
    let read = 0
    function* endless(): Generator<number> {
      for (;;) yield read++
    }
    const [first, second] = merge([endless(), filled([5, 6]).ascend()], smaller)
    expect([first, second]).toEqual([0, 1])
    expect(read).toBeLessThan(4)
  })
})
