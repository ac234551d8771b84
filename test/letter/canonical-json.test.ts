import { describe, expect, it } from 'vitest'
import { toCanonicalJson } from '../../src/letter/canonical-json.ts'

describe('toCanonicalJson', () => {
  it.each<[unknown, unknown]>([
    [
      { a: 1, b: { c: [1, { d: 2, e: 3 }] } },
      { b: { c: [1, { e: 3, d: 2 }] }, a: 1 },
    ],
    [{ a: undefined, b: 1 }, { b: 1 }],
    [JSON.parse('{"__proto__":1,"a":2}'), JSON.parse('{"a":2,"__proto__":1}')],
  ])('is equal for equal values: %j', (one, other) => {
    expect(toCanonicalJson(one)).toBe(toCanonicalJson(other))
  })

  it.each<[unknown, unknown]>([
    [
      [1, 2],
      [2, 1],
    ],
    ['\ud800', '\ud801'],
    [{ a: null }, {}],
    [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":2}')],
  ])('differs for different values: %j', (one, other) => {
    expect(toCanonicalJson(one)).not.toBe(toCanonicalJson(other))
  })
})
