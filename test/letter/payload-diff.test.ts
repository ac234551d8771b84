import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/letter/letter.ts'
import { encodePayload } from '../../src/letter/payload.ts'
import { diffPayloads } from '../../src/letter/payload-diff.ts'

const json = (value: unknown) => encodePayload(value)
const text = (value: string, type = 'text/plain') => encodePayload(value, type)
const bytes = (...values: number[]) => encodePayload(new Uint8Array(values))

describe('diffPayloads', () => {
  it.each<[string, Json, Json, object[]]>([
    ['a changed value', { a: 1, b: 2 }, { a: 1, b: 3 }, [{ path: '/b', before: 2, after: 3 }]],
    ['an added key', {}, { a: null }, [{ path: '/a', after: null }]],
    ['a removed key', { a: null }, {}, [{ path: '/a', before: null }]],
    [
      'a nested value',
      { items: [{ price: 1 }, { price: 2 }] },
      { items: [{ price: 1 }, { price: 5 }] },
      [{ path: '/items/1/price', before: 2, after: 5 }],
    ],
    ['a value removed from an array', [1, 2, 3], [1, 3], [{ path: '/1', before: 2 }]],
    ['a value added to an array', [1, 3], [1, 2, 3], [{ path: '/1', after: 2 }]],
    ['another type', { a: [] }, { a: {} }, [{ path: '/a', before: [], after: {} }]],
    ['the whole document', 1, 'one', [{ path: '', before: 1, after: 'one' }]],
    ['keys with / and ~', { 'a/b~c': 1 }, {}, [{ path: '/a~1b~0c', before: 1 }]],
    [
      'a key named __proto__',
      JSON.parse('{"__proto__":1}') as Json,
      JSON.parse('{"__proto__":2}') as Json,
      [{ path: '/__proto__', before: 1, after: 2 }],
    ],
  ])('lists %s', (_name, before, after, changes) => {
    expect(diffPayloads(json(before), json(after))).toEqual({
      kind: 'json',
      contentType: { before: 'application/json', after: 'application/json' },
      truncated: false,
      changes,
    })
  })

  it('reports that nothing changed only for equal bytes', () => {
    expect(diffPayloads(json({ a: 1 }), json({ a: 1 })).kind).toBe('same')
    const spaced = text('{ "a": 1 }', 'application/json')
    expect(diffPayloads(json({ a: 1 }), spaced)).toMatchObject({ kind: 'json', changes: [] })
  })

  it('compares JS values by their stored form', () => {
    expect(diffPayloads(json({ at: new Date(0) }), json({ at: new Date(1) }))).toMatchObject({
      kind: 'json',
      changes: [{ path: '/at/$/1' }],
    })
  })

  it.each<[string, string, string, object[]]>([
    ['a line', 'a\nb\nc\n', 'a\nx\nc\n', [{ line: 2, before: ['b'], after: ['x'] }]],
    ['an added line', 'a\nc\n', 'a\nb\nc\n', [{ line: 2, before: [], after: ['b'] }]],
    ['a removed line', 'a\nb\nc\n', 'a\nc\n', [{ line: 2, before: ['b'], after: [] }]],
    [
      'two places',
      'a\nb\nc\nd\n',
      'x\nb\nc\ny\n',
      [
        { line: 1, before: ['a'], after: ['x'] },
        { line: 4, before: ['d'], after: ['y'] },
      ],
    ],
  ])('lists %s of plain text', (_name, before, after, changes) => {
    expect(diffPayloads(text(before), text(after))).toMatchObject({ kind: 'text', changes })
  })

  it('compares broken JSON as text', () => {
    const broken = text('{"a":\n', 'application/json')
    expect(diffPayloads(broken, json({ a: 1 }))).toMatchObject({
      kind: 'text',
      changes: [{ line: 1, before: ['{"a":'], after: ['{"a":1}'] }],
    })
  })

  it('gives sizes and hashes of other bytes', () => {
    const sha256 = createHash('sha256').update(Buffer.of(1, 2)).digest('hex')
    expect(diffPayloads(bytes(1, 2), json(1))).toMatchObject({
      kind: 'bytes',
      before: { size: 2, sha256 },
      after: { size: 1 },
    })
  })

  it('is bounded for large payloads that have little in common', () => {
    const numbers = (from: number) => Array.from({ length: 20_000 }, (_, index) => index + from)
    const lists = diffPayloads(json(numbers(0)), json(numbers(1)))
    expect(lists).toMatchObject({ truncated: true })
    expect(lists.kind === 'json' && lists.changes.length).toBe(1000)
    const lines = diffPayloads(text(numbers(0).join('\n')), text(numbers(50_000).join('\n')))
    expect(lines.kind === 'text' && lines.changes.length).toBe(1)
  })

  it('never throws', () => {
    const deep = text('['.repeat(50_000) + ']'.repeat(50_000), 'application/json')
    expect(diffPayloads(deep, json([])).kind).toMatch(/json|text/)
    const contents = fc.oneof(
      fc.json().map((value) => text(value, 'application/json')),
      fc.string().map((value) => text(value)),
      fc.uint8Array().map((value) => encodePayload(value, 'application/json')),
      fc.uint8Array().map((value) => encodePayload(value, 'text/plain; charset=none')),
    )
    fc.assert(
      fc.property(contents, contents, (before, after) => {
        const { kind } = diffPayloads(before, after)
        expect(kind === 'same').toBe(Buffer.compare(before.bytes, after.bytes) === 0)
      }),
    )
  })
})
