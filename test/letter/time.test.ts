import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toMs, toTimestamp } from '../../src/letter/time.ts'

describe('toTimestamp', () => {
  it.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [1.9, '1970-01-01T00:00:00.001Z'],
    [-5, '1970-01-01T00:00:00.000Z'],
    [-Infinity, '1970-01-01T00:00:00.000Z'],
    [1e12, '2001-09-09T01:46:40.000Z'],
  ])('writes %d as %s', (ms, at) => {
    expect(toTimestamp(ms)).toBe(at)
  })

  const ms = fc.integer({ min: 0, max: Date.parse('9999-12-31T23:59:59.999Z') })

  it('writes a timestamp like Date.toISOString', () => {
    fc.assert(
      fc.property(ms, (number) => {
        expect(toTimestamp(number)).toBe(new Date(number).toISOString())
      }),
    )
  })

  it('is reversed by toMs', () => {
    fc.assert(
      fc.property(ms, (number) => {
        expect(toMs(toTimestamp(number))).toBe(number)
      }),
    )
  })

  it('clamps numbers beyond the range of dates', () => {
    for (const beyond of [1e16, Number.MAX_VALUE, Infinity])
      expect(toMs(toTimestamp(beyond))).toBeGreaterThan(Date.parse('9999-01-01T00:00:00.000Z'))
  })

  it('sorts like its numbers', () => {
    fc.assert(
      fc.property(ms, ms, (a, b) => {
        expect(toTimestamp(a) < toTimestamp(b)).toBe(a < b)
      }),
    )
  })
})

describe('toMs', () => {
  it('is NaN for an invalid timestamp', () => {
    expect(toMs('soon')).toBeNaN()
    expect(toMs('')).toBeNaN()
  })
})
