import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue } from '../../src/letter/value-reader.ts'
import { encodeValue } from '../../src/letter/value-writer.ts'
import { hostileValues } from './hostile.ts'

const roundTrip = (value: unknown): unknown => decodeValue(encodeValue(value).text)

const keys = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'toJSON', '$', '0', '10', '2', '-1'),
)

/** Values of all types that are preserved exactly. */
const rich = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.constantFrom(null, undefined, true, false, -0, Number.NaN, Infinity, -Infinity),
    fc.bigInt(),
    fc.date({ noInvalidDate: false }),
    fc.uint8Array(),
    fc.float64Array(),
    fc.bigInt64Array(),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.uint8Array().map((bytes) => new Uint8Array(bytes).buffer),
    fc.webUrl().map((url) => new URL(url)),
    fc.constantFrom(/a/, /["/\\]+/giu, /(?<x>.)/sy),
    fc.array(tie('value')),
    fc.array(tie('value')).map((items) => new Set(items)),
    fc.array(fc.tuple(tie('value'), tie('value'))).map((pairs) => new Map(pairs)),
    // Object.fromEntries makes __proto__ an own key, as a parser does.
    fc.array(fc.tuple(keys, tie('value'))).map((fields) => Object.fromEntries(fields)),
  ),
})).value

/** Random graphs of objects: shared, cyclic, in maps and sets. */
const tangled = fc
  .array(fc.tuple(fc.nat(3), fc.array(fc.nat(9), { maxLength: 4 })), {
    minLength: 10,
    maxLength: 10,
  })
  .map((plan) => {
    const make = [() => [], () => ({}), () => new Map(), () => new Set()] as const
    const nodes: unknown[] = plan.map(([kind]) => make[kind as 0 | 1 | 2 | 3]())
    for (const [index, [, links]] of plan.entries()) {
      const node = nodes[index]
      for (const [at, link] of links.entries()) {
        const target = nodes[link]
        if (Array.isArray(node)) node.push(target)
        else if (node instanceof Map) node.set(target, nodes[(link + 1) % 10])
        else if (node instanceof Set) node.add(target)
        else (node as Record<string, unknown>)[`${at % 2 === 0 ? 'k' : ''}${at}`] = target
      }
    }
    return nodes
  })

describe('encodeValue', () => {
  it('preserves rich values exactly', () => {
    fc.assert(
      fc.property(rich, (value) => {
        const { text, lossy } = encodeValue(value)
        expect(lossy).toBe(false)
        expect(isDeepStrictEqual(decodeValue(text), value)).toBe(true)
        expect(text.isWellFormed()).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('preserves shared and cyclic references', () => {
    fc.assert(
      fc.property(tangled, (value) => {
        const { text, lossy } = encodeValue(value)
        expect(lossy).toBe(false)
        // Repeated objects are written as references, so equal strings mean equal object graphs.
        expect(encodeValue(decodeValue(text)).text).toBe(text)
      }),
    )
  })

  it('never throws, and its output can be read', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    })
    const traps = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'] as const
    fc.assert(
      fc.property(anything, fc.subarray([...traps]), (target, throwing) => {
        const boom = (): never => {
          throw target
        }
        const handler = Object.fromEntries(throwing.map((trap) => [trap, boom]))
        const proxied =
          typeof target === 'object' && target !== null ? new Proxy(target, handler) : 0
        for (const value of [target, { proxied, beside: [proxied] }])
          decodeValue(encodeValue(value).text)
      }),
      { numRuns: 500 },
    )
  })

  it('preserves references when a value between them is lost', () => {
    const last = { last: true }
    const revoked = hostileValues.find(({ name }) => name === 'a revoked proxy')!.make()
    const value = [{ a: 1 }, () => 0, Symbol('s'), revoked, last, new WeakMap(), last]
    const back = roundTrip(value) as unknown[]
    expect(back).toEqual([{ a: 1 }, undefined, undefined, undefined, last, undefined, last])
    expect(back[4]).toBe(back[6])
  })

  it('preserves references when keys are read and written in different orders', () => {
    const shared = { shared: true }
    const error = Object.assign(new Error('x', { cause: shared }), {
      5: { five: 5 },
      again: shared,
    })
    const back = roundTrip(error) as typeof error
    expect(back.again).toBe(back.cause)
    expect(back[5]).toEqual({ five: 5 })
    const keysOf = { ownKeys: () => ['b', '1', 'a'] }
    const backwards = new Proxy({ a: shared, 1: { one: 1 }, b: shared }, keysOf)
    expect(roundTrip([backwards, new Date(0)])).toEqual([
      { a: shared, 1: { one: 1 }, b: shared },
      new Date(0),
    ])
  })

  it('preserves errors with their properties', () => {
    const cause = new RangeError('worse')
    const error = Object.assign(new TypeError('bad', { cause }), { code: 'E1', status: 500 })
    const back = roundTrip(error) as typeof error
    expect(back).toBeInstanceOf(TypeError)
    expect(back).toMatchObject({ message: 'bad', code: 'E1', status: 500, stack: error.stack })
    expect(back.cause).toBeInstanceOf(RangeError)
    expect(Object.keys(back)).toEqual(['code', 'status'])
    class Declined extends Error {
      override name = 'Declined'
    }
    expect(roundTrip(new Declined('no'))).toMatchObject({ name: 'Declined', message: 'no' })
    const all = roundTrip(new AggregateError([new Error('one')], 'all')) as AggregateError
    expect(all).toBeInstanceOf(AggregateError)
    expect(all.errors).toMatchObject([{ message: 'one' }])
  })

  it('marks each value that it cannot preserve', () => {
    class Order {
      id = 1
    }
    const value = { call: function later() {}, sign: Symbol('s'), order: new Order(), at: 1 }
    expect(JSON.parse(encodeValue(value).text)).toEqual({
      call: { $: ['lost', 'function later'] },
      sign: { $: ['lost', 'symbol s'] },
      order: { $: ['instance', { id: 1 }, 'Order'] },
      at: 1,
    })
    expect(roundTrip(value)).toEqual({ call: undefined, sign: undefined, order: { id: 1 }, at: 1 })
  })

  it('records how many elements of a container are missing', () => {
    const { text, lossy } = encodeValue(Array.from({ length: 1_000_005 }, () => 0))
    expect(lossy).toBe(true)
    expect(text.slice(-6)).toBe('0],5]}')
    expect(decodeValue(text)).toHaveLength(1_000_000)
  })

  it('writes an instance with a false toStringTag as plain data', () => {
    class FalseTag {
      at = 1
      get [Symbol.toStringTag](): string {
        return 'Date'
      }
    }
    expect(roundTrip(new FalseTag())).toEqual({ at: 1 })
  })
})
