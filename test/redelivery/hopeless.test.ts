import { describe, expect, it } from 'vitest'
import type { LetterSummary, State } from '../../src/letter/letter.ts'
import { waitsForItself } from '../../src/redelivery/hopeless.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

describe('waitsForItself', () => {
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
    [...there.values()].filter((one) => waitsForItself(one, there)).map(({ id }) => id)

  it('knows those of a circle, and not what stands before, behind or between', () => {
    expect(found(lettersOf())).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('takes no circle for one in which something is resolved, or is with a person', () => {
    expect(found(lettersOf({ b: 'resolved', d: 'parked' }))).toEqual(['b', 'd'])
  })
})
