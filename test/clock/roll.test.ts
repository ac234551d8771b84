import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Roll } from '../../src/clock/roll.ts'

describe('a roll', () => {
  it('has whoever came and did not leave, as a Set would', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9)), { maxLength: 60 }), (steps) => {
        const people = Array.from({ length: 10 }, (_, name) => ({ name, at: 0 }))
        const roll = new Roll<(typeof people)[number]>()
        const model = new Set<(typeof people)[number]>()
        for (const [comes, who] of steps) {
          const one = people[who]!
          if (!comes) expect(roll.delete(one)).toBe(model.delete(one))
          else if (!model.has(one)) {
            roll.add(one)
            model.add(one)
          }
          expect(roll.size).toBe(model.size)
          expect(new Set(roll.list())).toEqual(model)
          for (const each of people) expect(roll.has(each)).toBe(model.has(each))
        }
      }),
    )
  })
})
