import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/letter/letter.ts'
import { Roster } from '../../src/redelivery/roster.ts'
import type { DocumentRecord } from '../../src/store.ts'

const record = (version: number, value: Json = { queues: ['a'] }, id = 'w'): DocumentRecord => ({
  id,
  version,
  value,
  updatedAt: '2026-01-01T00:00:00.000Z',
})

/** Looks every second up to this one, at what is there then. */
function watch(seconds: number, there: (second: number) => DocumentRecord[], sweepMs = 5000) {
  const roster = new Roster(sweepMs)
  let seen = roster.look(there(0), 0)
  for (let second = 1; second <= seconds; second++) seen = roster.look(there(second), second * 1000)
  return { living: seen.living.map((queues) => [...queues]), gone: seen.gone }
}

describe('Roster', () => {
  it.each<[string, number, (second: number) => DocumentRecord[], number?]>([
    ['that has just appeared', 0, () => [record(1)]],
    ['whose record still changes', 1000, (second) => [record(second)]],
    ['that was silent for a minute and three sweeps', 75, () => [record(1)]],
    ['that sweeps seldom and says so', 660, () => [record(1, { queues: ['a'], sweepMs: 200_000 })]],
    ['while we ourselves look seldom', 660, () => [record(1)], 200_000],
    ['that has left and come back', 140, (second) => (second === 70 ? [] : [record(1)])],
  ])('takes a worker for living %s', (_what, seconds, there, sweepMs) => {
    expect(watch(seconds, there, sweepMs)).toEqual({ living: [['a']], gone: [] })
  })

  it.each<[string, number, Json]>([
    ['a minute and three sweeps', 76, { queues: ['a'] }],
    ['a minute and three sweeps of its own', 661, { queues: ['a'], sweepMs: 200_000 }],
    ['so long, whatever its record says', 76, null],
  ])('takes a worker for gone that was silent for longer than %s', (_what, seconds, value) => {
    expect(watch(seconds, () => [record(1, value)])).toEqual({ living: [], gone: ['w'] })
    // As long as the record is there.
    expect(watch(seconds + 1, () => [record(1, value)]).gone).toEqual(['w'])
  })

  it('takes nobody for gone after it could not look for long, since others may have been cut off as well', () => {
    const roster = new Roster(5000)
    roster.look([record(1)], 0)
    expect(roster.look([record(1)], 600_000).gone).toEqual([])
    for (let nowMs = 600_000; nowMs <= 675_000; nowMs += 5000)
      expect(roster.look([record(1)], nowMs).gone).toEqual([])
    expect(roster.look([record(1)], 680_000).gone).toEqual(['w'])
  })
})
