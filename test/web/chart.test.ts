import { describe, expect, it } from 'vitest'
import { findIsolated, formatTicks, stackValues } from '../../web/src/format/chart.ts'

describe('stackValues', () => {
  it('adds each series to those below it', () => {
    expect(
      stackValues([
        [1, 2],
        [3, 4],
        [0, 1],
      ]),
    ).toEqual([
      [1, 2],
      [4, 6],
      [4, 7],
    ])
  })

  it('has a gap only where no series has a value', () => {
    expect(
      stackValues([
        [null, null],
        [null, 4],
      ]),
    ).toEqual([
      [null, 0],
      [null, 4],
    ])
  })

  it('accepts no series and no values', () => {
    expect(stackValues([])).toEqual([])
    expect(stackValues([[]])).toEqual([[]])
  })
})

describe('findIsolated', () => {
  it('finds values between gaps and at the ends', () => {
    expect(findIsolated([null, 1, null, 2, 3, null, 0])).toEqual([1, 6])
    expect(findIsolated([4, null, 5])).toEqual([0, 2])
    expect(findIsolated([4])).toEqual([0])
  })

  it('finds none in lines', () => {
    expect(findIsolated([1, 2, null, 3, 4])).toEqual([])
    expect(findIsolated([])).toEqual([])
  })
})

describe('formatTicks', () => {
  const midnight = Date.parse('2026-11-18T00:00:00Z')
  const hourMs = 3_600_000

  it('shows the clock, and the date at midnight', () => {
    expect(formatTicks([midnight - hourMs, midnight, midnight + hourMs], hourMs, 'UTC')).toEqual([
      '23:00',
      '11-18',
      '01:00',
    ])
  })

  it('shows dates if the steps are days', () => {
    expect(formatTicks([midnight + hourMs], 24 * hourMs, 'UTC')).toEqual(['11-18'])
  })
})
