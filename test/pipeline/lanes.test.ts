import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Lanes } from '../../src/pipeline/lanes.ts'

interface Entry {
  lane: string | undefined
  n: number
}

describe('Lanes', () => {
  it('run one item of each lane at a time, in order, and all others at once', () => {
    const lane = fc.constantFrom('a', 'b', undefined)
    fc.assert(
      fc.property(fc.array(lane, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (all, picks) => {
        const lanes = new Lanes<Entry>()
        const going: Entry[] = []
        const gone: Entry[] = []
        for (const [n, lane] of all.entries()) {
          const entry = { lane, n }
          if (lanes.enter(entry)) going.push(entry)
        }
        while (going.length > 0) {
          const busy = going.flatMap(({ lane }) => lane ?? [])
          expect(new Set(busy).size).toBe(busy.length)
          const [entry] = going.splice(picks.next().value! % going.length, 1)
          gone.push(entry!)
          const next = lanes.leave(entry!)
          if (next) going.push(next)
        }
        expect(gone).toHaveLength(all.length)
        for (const lane of ['a', 'b']) {
          const order = gone.filter((entry) => entry.lane === lane).map(({ n }) => n)
          expect(order).toEqual(order.toSorted((a, b) => a - b))
        }
      }),
    )
  })

  it('forget removed items, and continue with the rest', () => {
    const lanes = new Lanes<Entry>()
    const [first, second, third] = [1, 2, 3].map((n) => ({ lane: 'a', n }))
    for (const entry of [first!, second!, third!]) lanes.enter(entry)
    lanes.remove(({ n }) => n === 2)
    expect(lanes.waiting()).toEqual([third])
    expect(lanes.leave(first!)).toBe(third)
    expect(lanes.leave(third!)).toBeUndefined()
    expect(lanes.enter(second!)).toBe(true)
  })
})
