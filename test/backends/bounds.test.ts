import { describe, expect, it } from 'vitest'
import { lineage } from '../../src/letter/lineage.ts'
import { bounded, toPortable, checkHeaders, printable, whole } from '../../src/backends/bounds.ts'

const invalid = (message: RegExp): unknown =>
  expect.objectContaining({ code: 'INVALID_INPUT', message: expect.stringMatching(message) })

describe('bounded', () => {
  it.each([0, 0.5, 10])('accepts %d', (value) => {
    expect(bounded('wait', value, 10)).toBe(value)
  })

  it.each([-1, -0.001, 10.001, Number.NaN, Infinity, -Infinity, '5', null, undefined, {}, 5n])(
    'rejects %s, and names the allowed range',
    (value) => {
      expect(() => bounded('wait', value as number, 10)).toThrow(
        invalid(/^wait must be from 0 to 10, got /),
      )
    },
  )

  it('shortens the rejected value in its message', () => {
    const long = 'x'.repeat(1000) as unknown as number
    expect(() => bounded('wait', long, 10)).toThrow(invalid(/^.{1,80}$/))
    const hostile = {
      toString: (): string => {
        throw new Error('no')
      },
    }
    expect(() => bounded('wait', hostile as unknown as number, 10)).toThrow(invalid(/got object/))
  })
})

describe('whole', () => {
  it('accepts both ends, and no fractions', () => {
    expect([whole('max', 1, 10), whole('max', 10, 10)]).toEqual([1, 10])
    expect(() => whole('max', 1.5, 10)).toThrow(invalid(/^max must be a whole number, got 1.5/))
    expect(() => whole('max', 0, 10)).toThrow(invalid(/^max must be from 1 to 10/))
  })
})

describe('printable', () => {
  it.each(['a', 'with space', 'ünï 東京 💌', 'a/b:c{d}', 'x'.repeat(200)])('accepts %s', (name) => {
    expect(printable('a name', name)).toBe(name)
  })

  it.each(['', 'x'.repeat(201), 'a\nb', '\u0000', 'a\u007f', '\ud800', 5, undefined])(
    'rejects %j',
    (name) => {
      expect(() => printable('a name', name as string)).toThrow(
        invalid(/^a name must have 1 to 200/),
      )
    },
  )
})

describe('toPortable', () => {
  it('escapes only characters that no protocol can transport, so that any string becomes valid', () => {
    expect(toPortable('100% ünï 東京 💌')).toBe('100% ünï 東京 💌')
    expect(toPortable('java.lang.X\r\n\tat y\u007f\ud800')).toBe(
      'java.lang.X%0D%0A%09at y%7F\ufffd',
    )
    checkHeaders({ a: toPortable('\u0000\n\udfff') })
  })
})

describe('checkHeaders', () => {
  const many = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`h${n}`, '']))

  it('accepts up to a hundred headers of any printable string', () => {
    const longest = { [`ü${'n'.repeat(99)}`]: 'v'.repeat(8192), empty: '' }
    for (const headers of [{}, many(100), longest])
      expect(() => checkHeaders(headers)).not.toThrow()
  })

  it('does not count lineage headers', () => {
    const past = Object.fromEntries(Object.values(lineage).map((name) => [name, '1']))
    checkHeaders({ ...many(100), ...past })
    const tooMany = { ...many(101), ...past }
    expect(() => checkHeaders(tooMany)).toThrow(
      invalid(/^a message has at most 100 headers, got 101/),
    )
  })

  it.each([
    [many(101), /^a message has at most 100 headers, got 101/],
    [{ '': 'x' }, /^the name of a header/],
    [{ ['n'.repeat(101)]: 'x' }, /^the name of a header/],
    [{ 'a\r': 'x' }, /^the name of a header/],
    [{ a: 'x\r\nb: c' }, /^header a must be/],
    [{ a: 'v'.repeat(8193) }, /^header a must be/],
    [{ a: '\udfff' }, /^header a must be/],
    [{ a: 5 }, /^header a must be/],
  ])('rejects invalid headers: case %#', (headers, message) => {
    expect(() => checkHeaders(headers as Record<string, string>)).toThrow(invalid(message))
  })

  it('does not reveal the value of a header', () => {
    expect(() => checkHeaders({ a: 'hunter2\n' })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') }),
    )
  })
})
