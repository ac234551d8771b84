import { describe, expect, it } from 'vitest'
import {
  formatValue,
  fromJson,
  lossOf,
  toJson,
} from '../../../src/backends/rabbitmq/field-values.ts'

const timestamp = { '!': 'timestamp', value: 1_700_000_000 }
const decimal = { '!': 'decimal', value: { places: 2, digits: 1999 } }
const int = (value: number): object => ({ '!': 'int', value })

/** Values as the client reads them, and as it gets them for sending. */
const values: [name: string, read: unknown, sent: unknown][] = [
  ['a string', 'x', 'x'],
  ['a small integer', 5, int(5)],
  ['a negative integer', -5, int(-5)],
  ['a large integer', 2 ** 40, { '!': 'long', value: 2 ** 40 }],
  ['a fraction', 1.5, 1.5],
  ['infinity', Infinity, { '!': 'double', value: Infinity }],
  ['a boolean', true, true],
  ['null', null, null],
  ['bytes', Buffer.from([0, 255]), Buffer.from([0, 255])],
  ['a timestamp', timestamp, timestamp],
  ['a decimal', decimal, decimal],
  ['an array', [1, 'x', Buffer.from('b'), null], [int(1), 'x', Buffer.from('b'), null]],
  ['a table', { a: 1, b: { c: timestamp } }, { a: int(1), b: { c: timestamp } }],
]

describe('toJson and fromJson', () => {
  it.each(values)('preserve the type of %s', (_name, read, sent) => {
    expect(fromJson(JSON.parse(JSON.stringify(toJson(read))))).toEqual(sent)
    expect(lossOf(read)).toBeUndefined()
  })
})

describe('formatValue', () => {
  it('formats a string unchanged and anything else as JSON', () => {
    expect(formatValue('5')).toBe('5')
    expect(formatValue(5)).toBe('5')
    expect(formatValue({ a: [1, null] })).toBe('{"a":[1,null]}')
    expect(formatValue(Buffer.from('hi'))).toBe('{"!":"bytes","value":"aGk="}')
  })
})

describe('lossOf', () => {
  const polluted: unknown = Object.setPrototypeOf({ a: 1 }, { b: 2 })
  it.each([
    [Number(9_007_199_254_740_993n), '64-bit integer'],
    [['x', { deep: -(2 ** 63) }], '64-bit integer'],
    ['caf\ufffd', 'not UTF-8'],
    [{ '!': 'timestamp', value: 2 ** 60 }, 'timestamp'],
    [{ '!': 'decimal', value: { places: 0, digits: 0xffffffff } }, 'sign of a decimal'],
    [{ '!': 'anything' }, 'the key "!"'],
    [polluted, '__proto__'],
  ])('reports values that the client could not read exactly: %j', (value, reason) => {
    expect(lossOf(value)).toContain(reason)
  })
})
