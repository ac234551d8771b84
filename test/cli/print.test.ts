import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  escapeBlock,
  truncate,
  formatRelativeTime,
  toJson,
  escapeLine,
  formatDuration,
  formatTable,
  hasColours,
  widthOf,
} from '../../src/cli/print.ts'
import { hostileText } from './run-cli.ts'

describe('escapeLine', () => {
  it('escapes control characters', () => {
    expect(escapeLine(hostileText)).toBe('0;pwned\\u0007red next\\u0000 \\u202eltr')
  })

  it('returns one line for any string', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeLine(text)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
      }),
    )
  })
})

describe('escapeBlock', () => {
  it('keeps lines and indentation', () => {
    expect(escapeBlock('a\r\n\tb\u001b[1mc')).toBe('a\n  bc')
  })
})

describe('hasColours', () => {
  const terminal = { isTTY: true }

  it.each([
    [true, terminal, { TERM: 'xterm' }],
    [true, terminal, { TERM: 'xterm', CI: 'true' }],
    [true, terminal, { TERM: 'unheard-of' }],
    [true, terminal, { TERM: 'xterm', NO_COLOR: '' }],
    [true, {}, { FORCE_COLOR: '1', NO_COLOR: '1' }],
    [false, terminal, { TERM: 'xterm', NO_COLOR: '1' }],
    [false, terminal, { TERM: 'xterm', FORCE_COLOR: '0' }],
    [false, terminal, { TERM: 'dumb' }],
    [false, {}, { TERM: 'xterm' }],
  ])('is %o for %o with %o', (expected, stream, env) => {
    expect(hasColours(stream, env)).toBe(expected)
  })
})

describe('toJson', () => {
  it('parses to the same value and contains no hidden character', () => {
    const hostile = fc.oneof(
      fc.jsonValue(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\u009b', '\u202e', '\u{e0001}', '\u2028'),
    )
    fc.assert(
      fc.property(hostile, (value) => {
        const text = toJson(value)
        expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(JSON.stringify(JSON.parse(text))).toBe(JSON.stringify(value))
      }),
    )
  })
})

describe('widthOf', () => {
  it.each([
    ['abc', 3],
    ['日本', 4],
    ['é', 1],
    ['e\u0301', 1],
    ['👍', 2],
    ['…', 1],
  ])('counts the columns of %s', (text, width) => {
    expect(widthOf(text)).toBe(width)
  })
})

describe('truncate', () => {
  it.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['日本語', 4, '日…'],
    ['abc', 1, '…'],
    ['abc', 0, ''],
  ])('cuts %s to %i columns', (text, width, expected) => {
    expect(truncate(text, width)).toBe(expected)
  })

  it('never exceeds the given width', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(30), (text, width) => {
        expect(widthOf(truncate(text, width))).toBeLessThanOrEqual(width)
      }),
    )
  })
})

interface Row {
  id: string
  name: string
  kind: string
  text: string
}

describe('formatTable', () => {
  const columns = [
    { title: 'ID', cell: (row: Row) => row.id },
    { title: 'NAME', cell: (row: Row) => row.name, minWidth: 6 },
    { title: 'KIND', cell: (row: Row) => row.kind, optional: true, alignRight: true },
    { title: 'TEXT', cell: (row: Row) => row.text, minWidth: 8 },
  ]
  const row: Row = {
    id: '0123456789',
    name: 'a name',
    kind: 'some kind',
    text: 'what it says, at length',
  }

  it('prints whole cells if they fit', () => {
    expect(formatTable(columns, [row], 100)).toEqual([
      'ID          NAME         KIND  TEXT',
      '0123456789  a name  some kind  what it says, at length',
    ])
  })

  it('truncates the last column first, then omits optional columns', () => {
    expect(formatTable(columns, [row], 44)[1]).toBe('0123456789 a name some kind what it says, a…')
    expect(formatTable(columns, [row], 32)[1]).toBe('0123456789 a name what it says,…')
  })

  it('fits the width for any cell contents', () => {
    const word = fc.string({ unit: 'grapheme', maxLength: 60 }).map(escapeLine)
    const rows = fc.array(
      fc.record({ id: fc.constant('01995c3a-1'), name: word, kind: word, text: word }),
    )
    fc.assert(
      fc.property(rows, fc.integer({ min: 28, max: 200 }), (some, width) => {
        for (const text of formatTable(columns, some, width))
          expect(widthOf(text)).toBeLessThanOrEqual(width)
      }),
    )
  })
})

describe('formatRelativeTime', () => {
  it.each([
    [0, 'now'],
    [999, 'now'],
    [4 * 60_000, 'in 4 min'],
    [-2 * 3_600_000, '2 h ago'],
    [-3 * 86_400_000, '3 d ago'],
    [59_999, 'in 59 s'],
  ])('formats %i ms as %s', (ms, text) => {
    expect(formatRelativeTime(1e12 + ms, 1e12)).toBe(text)
  })
})

describe('formatDuration', () => {
  it('uses the largest unit', () => {
    expect([formatDuration(0), formatDuration(90_000), formatDuration(7_200_000)]).toEqual([
      '0 s',
      '1 min',
      '2 h',
    ])
  })
})
