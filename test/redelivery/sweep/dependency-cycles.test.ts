import { describe, expect, it } from 'vitest'
import type { LetterSummary, State } from '../../../src/letter/letter.ts'
import { findDependencyCycles } from '../../../src/redelivery/sweep/dependency-cycles.ts'
import { aLetter } from '../../../src/testing/a-letter.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

describe('findDependencyCycles', () => {
  const waits: Record<string, string[]> = {
    behind: ['a'],
    a: ['before', 'b'],
    b: ['c'],
    c: ['between', 'a'],
    between: ['d'],
    d: ['e'],
    e: ['d'],
    before: ['gone'],
  }
  const lettersOf = (states: Record<string, State> = {}): Map<string, LetterSummary> =>
    new Map(
      Object.entries(waits).map(([id, dependsOn]) => [
        id,
        aLetter({ id, dependsOn, state: states[id] ?? 'pending' }),
      ]),
    )
  const found = (there: Map<string, LetterSummary>): string[] =>
    [...findDependencyCycles(there)].sort()

  it('finds the letters of a cycle, and none before, behind or between cycles', () => {
    expect(found(lettersOf())).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('ignores a cycle with a letter that is resolved or waits for a person', () => {
    expect(found(lettersOf({ b: 'resolved', d: 'parked' }))).toEqual([])
  })

  it('finds a letter that depends on itself', () => {
    expect(found(new Map([['a', aLetter({ id: 'a', dependsOn: ['a'] })]]))).toEqual(['a'])
  })

  it('finds the same letters as a search from each letter', () => {
    const clock = fakeClock()
    for (let round = 0; round < 300; round++) {
      const ids = Array.from(
        { length: 1 + Math.floor(clock.random() * 12) },
        (_, index) => `id-${index}`,
      )
      const few = clock.random() * 0.3
      const there = new Map(
        ids.map((id) => {
          const dependsOn = ids.filter(() => clock.random() < few)
          const state = clock.random() < 0.9 ? 'pending' : 'parked'
          return [id, aLetter({ id, dependsOn, state })]
        }),
      )
      expect(found(there)).toEqual(ids.filter((id) => reaches(id, there)).sort())
    }
  })

  it('visits each letter once, regardless of the number of paths to it', () => {
    const ids = Array.from({ length: 400 }, (_, index) => `id-${index}`)
    let lookups = 0
    const there = new Map(
      ids.map((id, index) => [
        id,
        aLetter({ id, dependsOn: ids.slice(0, index), state: 'pending' }),
      ]),
    )
    const counting = Object.assign(new Map(there), {
      get: (id: string) => {
        lookups++
        return there.get(id)
      },
    })
    expect(found(counting)).toEqual([])
    expect(lookups).toBe((400 * 399) / 2)
  })
})

/** The plain way: from one letter on to all that it waits for. */
function reaches(id: string, there: Map<string, LetterSummary>): boolean {
  const seen = new Set<string>()
  const ahead = [id]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const letter = there.get(next)
    if (letter?.state !== 'pending' || seen.has(next)) continue
    seen.add(next)
    if (letter.dependsOn?.includes(id)) return true
    ahead.push(...(letter.dependsOn ?? []))
  }
  return false
}
