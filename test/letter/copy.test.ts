import { expect, it } from 'vitest'
import { copyOf } from '../../src/letter/copy.ts'

it('copies objects, arrays and bytes at every depth', () => {
  const value = { list: [{ count: 1 }], bytes: Uint8Array.of(1, 2), nothing: null, flag: true }
  const copy = copyOf(value)
  expect(copy).toEqual(value)
  value.list[0]!.count = 2
  value.bytes[0] = 9
  expect(copy).toEqual({
    list: [{ count: 1 }],
    bytes: Uint8Array.of(1, 2),
    nothing: null,
    flag: true,
  })
})

it('copies a key named __proto__ as an own key', () => {
  const copy = copyOf(JSON.parse('{"__proto__":{"admin":true}}') as Record<string, unknown>)
  expect(Object.keys(copy)).toEqual(['__proto__'])
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  expect(copy['admin']).toBeUndefined()
})
