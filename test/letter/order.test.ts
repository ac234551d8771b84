import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { priorities } from '../../src/letter/letter.ts'
import { ageingMs, claimScore, dueAt, rankOf } from '../../src/letter/order.ts'
import { aLetter } from '../../src/testing/a-letter.ts'

describe('claimScore', () => {
  it('puts the higher priority first among letters due at once', () => {
    const scores = priorities.map((priority) => claimScore(rankOf(priority), 1000))
    expect(scores).toEqual([...scores].sort((a, b) => a - b))
    expect(new Set(scores).size).toBe(priorities.length)
  })

  it('puts the letter that is due longer first within a priority', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 1e6 }), fc.nat(3), (due, later, rank) => {
        expect(claimScore(rank, due)).toBeLessThan(claimScore(rank, due + later))
      }),
    )
  })

  it('lifts a letter by one priority for each ageing period that it waits', () => {
    const now = 1_000_000_000
    const low = rankOf('low')
    expect(claimScore(low, now - 3 * ageingMs)).toBe(claimScore(rankOf('critical'), now))
    expect(claimScore(low, now - 3 * ageingMs - 1)).toBeLessThan(
      claimScore(rankOf('critical'), now),
    )
    expect(claimScore(low, now - 3 * ageingMs + 1)).toBeGreaterThan(
      claimScore(rankOf('critical'), now),
    )
  })
})

describe('rankOf', () => {
  it('counts from critical to low', () => {
    expect(priorities.map(rankOf)).toEqual([0, 1, 2, 3])
  })
})

describe('dueAt', () => {
  const timestamp = '2026-05-05T00:00:00.000Z'

  it('is the retryAt of a pending letter, or its capture time', () => {
    expect(dueAt(aLetter({ retryAt: timestamp }))).toBe(timestamp)
    const { retryAt: _, ...without } = aLetter({ deadLetteredAt: timestamp })
    expect(dueAt(without)).toBe(timestamp)
  })

  it('is the end of the lease of a retrying letter', () => {
    const lease = { worker: 'w', epoch: 1, expiresAt: timestamp }
    expect(dueAt(aLetter({ state: 'retrying', lease }))).toBe(timestamp)
  })

  it.each(['resolved', 'exhausted', 'parked', 'archived'] as const)(
    'is undefined for %s',
    (state) => {
      expect(dueAt(aLetter({ state }))).toBeUndefined()
    },
  )
})
