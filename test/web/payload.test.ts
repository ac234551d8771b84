import { describe, expect, it } from 'vitest'
import { decodeBase64, formatHex } from '../../web/src/format/hex.ts'
import { pathOf, previewJson, searchJson } from '../../web/src/format/json-search.ts'

describe('formatHex', () => {
  it('shows offset, bytes and printable characters', () => {
    const bytes = new TextEncoder().encode('Redrive\n0123456789')
    expect(formatHex(bytes, 100)).toBe(
      [
        '00000000  52 65 64 72 69 76 65 0a  30 31 32 33 34 35 36 37  Redrive.01234567',
        `00000010  ${'38 39'.padEnd(48)}  89`,
      ].join('\n'),
    )
  })

  it('stops at the limit', () => {
    expect(formatHex(new Uint8Array(1000), 32).split('\n')).toHaveLength(2)
  })
})

describe('decodeBase64', () => {
  it('returns the bytes, or undefined if the text is not base64', () => {
    expect(decodeBase64('AAEC/w==')).toEqual(Uint8Array.of(0, 1, 2, 255))
    expect(decodeBase64('%')).toBeUndefined()
  })
})

describe('searchJson', () => {
  const value = { order: 7, customer: { name: 'Ada', 'e mail': 'ada@example.com' }, lines: ['x'] }

  it('finds keys and values in any case, in order', () => {
    expect(searchJson(value, 'ADA').matches).toEqual([
      { path: '$.customer.name', value: '"Ada"' },
      { path: '$.customer["e mail"]', value: '"ada@example.com"' },
    ])
    expect(searchJson(value, 'lines').matches).toEqual([{ path: '$.lines', value: '[1 item]' }])
    expect(searchJson(value, 'none')).toEqual({ matches: [], isComplete: true })
  })

  it('stops at a limit, and says so', () => {
    const many = Array.from({ length: 1000 }, () => 'same')
    const { matches, isComplete } = searchJson(many, 'same')
    expect(matches).toHaveLength(200)
    expect(isComplete).toBe(false)
  })

  it('searches deep and wide values', () => {
    let deep: object = { wanted: 1 }
    for (let level = 0; level < 10_000; level++) deep = { deep }
    expect(searchJson(deep as never, 'wanted').matches).toHaveLength(1)
    const wide = Array.from({ length: 150_000 }, (_, index) => index)
    expect(searchJson(wide, '149999').matches).toEqual([{ path: '$[149999]', value: '149999' }])
  })
})

describe('pathOf and previewJson', () => {
  it('quote what is not a plain word and shorten what is long', () => {
    expect(pathOf('$', '__proto__')).toBe('$.__proto__')
    expect(pathOf('$', 'a"]')).toBe('$["a\\"]"]')
    expect(previewJson('x'.repeat(1000))).toHaveLength(201)
    expect(previewJson({})).toBe('{}')
    expect(previewJson({ a: 1 })).toBe('{1 key}')
  })
})
