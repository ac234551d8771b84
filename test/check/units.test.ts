import { assert, integer, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatUnits, parseDuration, parseSize } from '../../src/check/units.ts'

describe('parseDuration', () => {
  it.each<[string, number | undefined]>([
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['30', undefined],
    ['30 s', undefined],
    ['-1s', undefined],
    ['1w', undefined],
    ['1h30m', undefined],
    ['1.s', undefined],
    ['', undefined],
  ])('reads %j as %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })
})

describe('parseSize', () => {
  it.each<[string, number | undefined]>([
    ['512B', 512],
    ['64KiB', 65_536],
    ['16MiB', 16_777_216],
    ['1GiB', 1_073_741_824],
    ['16MB', undefined],
    ['16M', undefined],
    ['16mib', undefined],
  ])('reads %j as %j', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes)
  })
})

describe('formatUnits', () => {
  it('formats a number as a string that parses to the same number', () => {
    assert(
      property(integer({ min: 1, max: 10 ** 12 }), (value) => {
        expect(parseDuration(formatUnits(value, 'duration'))).toBe(value)
        expect(parseSize(formatUnits(value, 'size'))).toBe(value)
      }),
    )
  })
})
