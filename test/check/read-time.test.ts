import { describe, expect, it } from 'vitest'
import { isTime, readTime } from '../../src/check/read-time.ts'

describe('readTime', () => {
  it.each<[string | Date, string]>([
    [new Date(Date.UTC(2026, 0, 31, 9, 30)), '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00.123Z', '2026-01-31T09:30:00.123Z'],
    ['2026-01-31T09:30Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ])('reads %j', (value, timestamp) => {
    expect(readTime('at', value)).toBe(timestamp)
    expect(isTime(value)).toBe(true)
  })

  it.each<[unknown, string]>([
    ['5', '"5"'],
    [5, '5'],
    ['tomorrow', '"tomorrow"'],
    ['', '""'],
    ['2026', '"2026"'],
    ['1/2/2026', '"1/2/2026"'],
    ['2026-02-30T00:00:00Z', '"2026-02-30T00:00:00Z"'],
    ['2026-02-29', '"2026-02-29"'],
    ['2026-13-01', '"2026-13-01"'],
    ['2026-01-01T25:00:00Z', '"2026-01-01T25:00:00Z"'],
    [new Date(Number.NaN), 'an invalid Date'],
    [undefined, 'undefined'],
    [null, 'null'],
  ])('rejects %j and names the option, the form and the value', (value, given) => {
    expect(() => readTime('at', value)).toThrow(
      expect.objectContaining({
        code: 'INVALID_INPUT',
        message: `\`at\` must be a Date or an ISO-8601 time such as 2026-01-31T09:30:00Z, got ${given}`,
      }) as Error,
    )
    expect(isTime(value)).toBe(false)
  })
})
