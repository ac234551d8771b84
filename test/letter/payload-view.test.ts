import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../src/letter/payload.ts'
import { escapeHidden, viewPayload } from '../../src/letter/payload-view.ts'
import { hostileBytes, hostileValues } from './hostile.ts'

const view = (value: unknown, contentType?: string, maxChars = 10_000): string =>
  viewPayload(encodePayload(value, contentType), maxChars)

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u

describe('viewPayload', () => {
  const payloads = [
    ...hostileBytes.map(({ name, make, contentType }) => ({
      name: `the bytes of ${name}`,
      make: () => encodePayload(make(), contentType),
    })),
    ...hostileValues
      .filter(({ row }) => row !== 'size')
      .map(({ name, make }) => ({ name: `the value ${name}`, make: () => encodePayload(make()) })),
  ]

  it.each(payloads)('formats $name', ({ make }) => {
    const payload = make()
    for (const maxChars of [0, 1, 200, 5000]) {
      const text = viewPayload(payload, maxChars)
      expect(text.length).toBeLessThanOrEqual(maxChars + 60)
      expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(unseen)
      expect(text.isWellFormed()).toBe(true)
    }
  })

  it('formats any bytes with any content type', () => {
    const types = fc.constantFrom(
      'application/json',
      'text/plain',
      'text/plain; charset=utf-16',
      '',
    )
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        types,
        fc.integer(),
        (bytes, type, maxChars) => {
          expect(viewPayload({ bytes, contentType: type }, maxChars)).toBeTypeOf('string')
        },
      ),
    )
  })

  it('indents JSON without changing its meaning', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        fc.pre(!unseen.test(text))
        expect(view(text, 'application/json', 1e6)).toBe(JSON.stringify(JSON.parse(text), null, 2))
      }),
    )
  })

  it('preserves numbers, duplicate keys and the order of keys', () => {
    expect(view('{"b":9007199254740993,"a":1e400,"b":-0}', 'application/json')).toBe(
      '{\n  "b": 9007199254740993,\n  "a": 1e400,\n  "b": -0\n}',
    )
  })

  it('formats invalid JSON', () => {
    expect(view('{"a": [1, oops', 'application/json')).toBe('{\n  "a": [\n    1,\n    oops')
    expect(view(']]}', 'application/json')).toContain(']')
    expect(view('"never ends \\', 'application/json')).toBe('"never ends \\')
  })

  it('marks where JSON is nested too deeply', () => {
    const deep = `${'['.repeat(150)}1${']'.repeat(150)}`
    const shown = view(deep, 'application/json', 100_000)
    expect(shown).toContain('… [deeper than 100 levels]')
    expect(shown.replaceAll(/\s/g, '')).toBe(
      `${'['.repeat(100)}…[deeperthan100levels]${']'.repeat(100)}`,
    )
  })

  it('truncates long payloads, notes the total size, and reads only the visible part', () => {
    const bytes = new TextEncoder().encode('x'.repeat(10_000))
    expect(viewPayload({ bytes, contentType: 'text/plain' }, 10)).toBe(
      'xxxxxxxxxx… [cut, 10000 bytes in total]',
    )
    const broken = new Uint8Array([...bytes, 0xff])
    expect(viewPayload({ bytes: broken, contentType: 'text/plain' }, 3)).toMatch(/^xxx… /)
  })

  it('does not treat a truncated character as invalid text', () => {
    expect(view(`a${'é'.repeat(100)}`, 'text/plain', 7)).toMatch(/^aéééééé… /)
    expect(view(`a${'🦊'.repeat(100)}`, 'text/plain', 3)).toMatch(/^a🦊… /)
  })

  it('dumps binary data as hex', () => {
    expect(view(Buffer.from('\0\u0001hello, wide world'))).toBe(
      [
        '00000000  00 01 68 65 6c 6c 6f 2c 20 77 69 64 65 20 77 6f  ..hello, wide wo',
        '00000010  72 6c 64                                         rld',
      ].join('\n'),
    )
    expect(view(Uint8Array.of(0xff, 0x41), 'text/plain')).toMatch(/^0{8} {2}ff 41 .*\.A$/)
    expect(view(new Uint8Array())).toBe('')
  })

  it('formats type markers unchanged', () => {
    expect(view({ at: new Date(0) })).toContain('"1970-01-01T00:00:00.000Z"')
  })
})

describe('escapeHidden', () => {
  it.each([
    ['a\0b', 'a\\u0000b'],
    ['\u001b[31mred', '\\u001b[31mred'],
    ['a\u202eb\u2066c\u200fd', 'a\\u202eb\\u2066c\\u200fd'],
    ['zero\u200bwidth\ufeff', 'zero\\u200bwidth\\ufeff'],
    ['line\u2028\r\n\tend', 'line\\u2028\\u000d\n\tend'],
    ['\u{e0041}', '\\u{e0041}'],
    ['lone \ud800', 'lone \\ud800'],
    ['plain é 🦊', 'plain é 🦊'],
  ])('makes %j visible', (text, shown) => {
    expect(escapeHidden(text)).toBe(shown)
  })
})
