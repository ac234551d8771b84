import { describe, expect, it } from 'vitest'
import {
  countFailures,
  facetsOf,
  growthOf,
  lastDayOf,
  mergeSeen,
  PendingGroup,
  readSeen,
  seenOf,
  titleOf,
  trendOf,
  writeSeen,
  type Seen,
} from '../../src/groups/seen.ts'
import type { DeadLetter } from '../../src/letter/letter.ts'
import { aLetter } from '../../src/testing/index.ts'

const nowMs = Date.UTC(2026, 0, 10, 12, 30)
const hourMs = 3_600_000
const ago = (hours: number): string => new Date(nowMs - hours * hourMs).toISOString()

function seen(...letters: Partial<DeadLetter>[]): Seen {
  const group = new PendingGroup()
  for (const letter of letters) group.add(aLetter(letter))
  return group.seen()
}

const times = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

describe('PendingGroup', () => {
  it('has the newest letter, the times, and all facets with counts', () => {
    const group = seen(
      { deadLetteredAt: ago(1), queue: 'b', tenant: 't', app: { host: 'h', pid: 1, version: '1' } },
      { deadLetteredAt: ago(3), queue: 'a', category: 'timeout' },
      { deadLetteredAt: ago(2), queue: 'a', app: { host: 'h', pid: 2 } },
    )
    expect(group).toMatchObject({ firstAt: ago(3), lastAt: ago(1), newest: { queue: 'b' } })
    const names = (facets: Seen['queues']): string[] =>
      facetsOf(facets).map(({ name, count }) => `${name} ${count}`)
    expect(names(group.queues)).toEqual(['a 2', 'b 1'])
    expect(names(group.tenants)).toEqual(['t 1'])
    expect(names(group.hosts)).toEqual(['h 2'])
    expect(names(group.versions)).toEqual(['1 1'])
    expect(countFailures(group)).toBe(3)
  })

  it('is bounded in names', () => {
    const group = seen(...times(500).map((n) => ({ deadLetteredAt: ago(1), tenant: `t${n}` })))
    expect(group.tenants.size).toBe(100)
    expect(countFailures(group)).toBe(500)
  })
})

describe('mergeSeen', () => {
  const a = seen({ deadLetteredAt: ago(5), queue: 'a' }, { deadLetteredAt: ago(4), queue: 'b' })
  const b = seen({ deadLetteredAt: ago(1), queue: 'a' })
  const c = seen({ deadLetteredAt: ago(4), queue: 'c', tenant: 't' })

  it('gives the same in every order', () => {
    const sum = mergeSeen(mergeSeen(a, b), c)
    expect(mergeSeen(a, mergeSeen(b, c))).toEqual(sum)
    expect(mergeSeen(c, mergeSeen(b, a))).toEqual(sum)
    expect(sum).toMatchObject({ firstAt: ago(5), lastAt: ago(1), newest: { id: b.newest.id } })
    expect(countFailures(sum)).toBe(4)
  })

  it('keeps 48 hours, 30 days and the most frequent names', () => {
    let sum = seen({ deadLetteredAt: ago(40 * 24) })
    for (const n of times(40 * 24)) sum = mergeSeen(sum, seen({ deadLetteredAt: ago(40 * 24 - n) }))
    expect([sum.hours.size, sum.days.size]).toEqual([48, 30])
    const names = times(30).map((n) => seen({ deadLetteredAt: ago(1), tenant: `t${n}` }))
    const often = seen({ deadLetteredAt: ago(1), tenant: 'often' })
    const all = [...names, often, often].reduce(mergeSeen)
    expect(all.tenants.size).toBe(20)
    expect(facetsOf(all.tenants)[0]).toMatchObject({ name: 'often' })
  })

  it('survives being stored', () => {
    const hostile = seen({ deadLetteredAt: ago(1), tenant: '__proto__', queue: 'constructor' })
    expect(readSeen(JSON.parse(JSON.stringify(writeSeen(hostile))))).toEqual(hostile)
  })
})

describe('trendOf', () => {
  it('has a point for every hour and day, the present last', () => {
    const group = seen(...[0, 0, 1, 47].map((hours) => ({ deadLetteredAt: ago(hours) })))
    const { hours, days } = trendOf(group, nowMs)
    expect([hours.length, days.length]).toEqual([48, 30])
    expect(hours.at(-1)).toEqual({ at: '2026-01-10T12:00:00.000Z', count: 2 })
    expect(hours[0]!.count).toBe(1)
    expect(days.at(-1)).toEqual({ at: '2026-01-10T00:00:00.000Z', count: 3 })
    const sum = (counts: { count: number }[]): number =>
      counts.reduce((n, { count }) => n + count, 0)
    expect([sum(hours), sum(days)]).toEqual([4, 4])
  })
})

describe('growthOf', () => {
  it('compares the last 24 hours with the 24 hours before', () => {
    const at = (...hours: number[]): Seen => seen(...hours.map((h) => ({ deadLetteredAt: ago(h) })))
    expect(growthOf(at(0, 1, 23), nowMs)).toBe(3)
    expect(growthOf(at(24, 47), nowMs)).toBe(-2)
    expect(growthOf(at(1, 2, 30), nowMs)).toBe(1)
    expect(growthOf(at(48), nowMs)).toBe(0)
  })
})

describe('lastDayOf', () => {
  it('counts the failures of each of the last 24 hours, the oldest first', () => {
    const at = (...hours: number[]): Seen => seen(...hours.map((h) => ({ deadLetteredAt: ago(h) })))
    const counts = lastDayOf(at(0, 0, 1, 23, 24), nowMs)
    expect(counts).toHaveLength(24)
    expect([counts[0], counts[1], counts[22], counts[23]]).toEqual([1, 0, 1, 2])
  })
})

describe('seenOf', () => {
  it('knows what one letter shows', () => {
    const letter = aLetter({ queue: 'a', tenant: 't' })
    expect(seenOf(letter)).toMatchObject({
      newest: { id: letter.id, queue: 'a', title: titleOf(letter.failure) },
      lastAt: letter.deadLetteredAt,
    })
  })
})
