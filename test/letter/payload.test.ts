import { isDeepStrictEqual } from 'node:util'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodePayload,
  encodePayload,
  kindOf,
  shared,
  valueType,
} from '../../src/letter/payload.ts'
import { hostileBytes, hostileValues } from './hostile.ts'

const roundTrip = (value: unknown): unknown => decodePayload(encodePayload(value))
const textOf = (value: unknown, contentType?: string): string =>
  new TextDecoder().decode(encodePayload(value, contentType).bytes)

describe('encodePayload', () => {
  it.each(hostileValues)('encodes $name', ({ make, lossy }) => {
    const payload = encodePayload(make())
    expect(payload.lossy ?? false).toBe(lossy)
    expect(payload).toMatchObject({ version: 1, size: payload.bytes.byteLength })
    decodePayload(payload)
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it.each(
    hostileValues.filter(
      ({ lossy, name }) => !lossy && !/another realm|without a prototype|2\^40|holes/.test(name),
    ),
  )('preserves $name', ({ make }) => {
    expect(isDeepStrictEqual(roundTrip(make()), make())).toBe(true)
  })

  it('converts holes of an array to undefined', () => {
    // oxlint-disable-next-line no-sparse-arrays
    expect(roundTrip([1, , 3])).toStrictEqual([1, undefined, 3])
  })

  it('preserves any JSON value as JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const payload = encodePayload(value)
        expect(isDeepStrictEqual(decodePayload(payload), value)).toBe(true)
        if (!JSON.stringify(value).includes('-0') && !hasMinusZero(value))
          expect(payload.contentType).toBe('application/json')
      }),
    )
  })

  it('writes the output of JSON.stringify for plain JSON values', () => {
    const order = { b: 1, a: [true, null, 'x\u2028\ud800', 1e21], nested: { 2: 'b', 1: 'a' } }
    expect(textOf(order)).toBe(JSON.stringify(order))
    expect(encodePayload(order).contentType).toBe('application/json')
  })

  it('writes an object that occurs twice in a JSON value twice', () => {
    const address = { city: 'Berlin' }
    expect(textOf({ to: address, from: address })).toBe(
      '{"to":{"city":"Berlin"},"from":{"city":"Berlin"}}',
    )
  })

  it.each([
    ['undefined', { a: undefined }],
    ['minus zero', [-0]],
    ['not a number', { a: Number.NaN }],
    ['a date', new Date(0)],
    ['a cycle', hostileValues.find(({ name }) => name.includes('holds itself'))!.make()],
    ['a toJSON', { a: 1, toJSON: () => 'other' }],
    ['a symbol key', { [Symbol('s')]: 1 }],
    ['an array with an extra property', Object.assign([1], { extra: 1 })],
  ])('does not encode %s as plain JSON', (_, value) => {
    expect(encodePayload(value).contentType).toBe(valueType)
  })

  it('calls no toJSON', () => {
    const value = { kept: 1, toJSON: () => expect.unreachable() }
    expect(roundTrip(value)).toEqual({ kept: 1, toJSON: undefined })
  })

  it('stores a copy of bytes unchanged', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), (bytes) => {
        const whole = new Uint8Array([9, ...bytes, 9])
        const forms = [whole.subarray(1, -1), Buffer.from(bytes), new Uint8Array(bytes).buffer]
        for (const form of forms) {
          const payload = encodePayload(form)
          if (form instanceof Uint8Array) form.fill(1)
          expect(payload.contentType).toBe('application/octet-stream')
          expect(payload.bytes).toEqual(bytes)
          expect(payload.bytes.buffer.byteLength).toBe(bytes.length)
          expect(decodePayload(payload)).toEqual(Buffer.from(bytes))
        }
      }),
    )
  })

  it('stores bytes of another realm as bytes', () => {
    for (const code of ['new Uint8Array([1, 2])', 'new Uint8Array([1, 2]).buffer'])
      expect(encodePayload(runInNewContext(code))).toMatchObject({
        contentType: 'application/octet-stream',
        bytes: Uint8Array.of(1, 2),
      })
  })

  it.each(hostileValues)('writes $name identically with shared memory', ({ make }) => {
    const [own, other] = [undefined, shared].map((memory) =>
      encodePayload(make(), undefined, memory),
    )
    expect({ ...other, bytes: '' }).toEqual({ ...own, bytes: '' })
    // Some are large: to compare them number by number would take minutes.
    expect(Buffer.compare(own!.bytes, other!.bytes)).toBe(0)
  })

  it('shares memory, and ignores false lengths and tags', () => {
    class FalseLength extends Uint8Array {
      override get byteLength(): number {
        return 4000
      }
      override get length(): number {
        return 4000
      }
    }
    const given = new FalseLength([1, 2, 3])
    const { bytes } = encodePayload(given, undefined, shared)
    given[0] = 9
    expect([...bytes]).toEqual([1, 2, 3])
    const wide = Object.defineProperty(new Float64Array([1, 2, 3]), Symbol.toStringTag, {
      value: 'Uint8Array',
    })
    expect([...encodePayload(wide, undefined, shared).bytes]).toEqual([1, 2, 3])
    expect(encodePayload('é\ud800', 'text/plain', shared).bytes).toEqual(
      Buffer.from(new TextEncoder().encode('é\ud800')),
    )
  })

  it('does not treat an object with the toStringTag of bytes as bytes', () => {
    for (const tag of ['Uint8Array', 'ArrayBuffer'])
      expect(encodePayload({ [Symbol.toStringTag]: tag }).contentType).toBe(valueType)
  })

  it('stores bytes with the given content type', () => {
    const payload = encodePayload(Buffer.from('{"a":1}'), 'application/json')
    expect(payload.contentType).toBe('application/json')
    expect(decodePayload(payload)).toEqual({ a: 1 })
  })

  it('stores a string with a content type as its UTF-8 bytes', () => {
    expect(textOf('{ "a" : 1 }', 'application/json')).toBe('{ "a" : 1 }')
    expect(decodePayload(encodePayload('\ufeff<a>é</a>', 'text/xml'))).toBe('\ufeff<a>é</a>')
    const latin = encodePayload('é', 'text/plain; charset=latin1')
    expect(latin.contentType).toBe('text/plain; charset=utf-8')
    expect(decodePayload(latin)).toBe('é')
    expect(encodePayload('x', 'text/plain;charset=UTF-8').contentType).toBe(
      'text/plain;charset=UTF-8',
    )
  })

  it('writes JSON in UTF-8 and sets the charset, whatever charset was given', () => {
    const zoe = encodePayload({ name: 'Zoë' }, 'application/json; charset=iso-8859-1')
    expect(zoe.contentType).toBe('application/json; charset=utf-8')
    expect(decodePayload(zoe)).toEqual({ name: 'Zoë' })
  })

  it('marks text with a lone surrogate as lossy', () => {
    expect(encodePayload('a\ud800', 'text/plain').lossy).toBe(true)
    expect(encodePayload('a\ud800').lossy).toBeUndefined()
  })

  it('uses the given content type for a value only if it is a JSON type', () => {
    expect(encodePayload({}, 'application/cloudevents+json').contentType).toBe(
      'application/cloudevents+json',
    )
    expect(encodePayload({}, 'text/plain').contentType).toBe('application/json')
    expect(encodePayload({ $: 1 }, valueType).contentType).toBe('application/json')
    expect(encodePayload([1n], 'application/json').contentType).toBe(valueType)
  })

  it('is not affected by later changes of the value', () => {
    const value = { list: [1, 2], bytes: new Uint8Array([1]), when: new Date(0) }
    const payload = encodePayload(value)
    const before = decodePayload(payload)
    value.list.push(3)
    value.bytes[0] = 9
    value.when.setTime(1)
    expect(decodePayload(payload)).toEqual(before)
    const raw = new Uint8Array([1, 2, 3])
    const kept = encodePayload(raw)
    ;(decodePayload(kept) as Buffer).fill(0)
    expect(kept.bytes).toEqual(raw)
  })

  it('survives getters that return another value each time', () => {
    let reads = 0
    const value = {
      get turn() {
        reads += 1
        if (reads === 2) throw new Error('boom')
        return reads
      },
    }
    expect(encodePayload(value)).toMatchObject({ version: 1 })
  })
})

describe('decodePayload', () => {
  it.each(hostileBytes)('reads or rejects $name', ({ make, contentType, valid }) => {
    const bytes = make()
    const payload = encodePayload(bytes, contentType)
    expect(Buffer.from(payload.bytes).equals(bytes)).toBe(true)
    if (valid) decodePayload(payload)
    else expect(() => decodePayload(payload)).toThrow(/^the payload/)
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it('throws a SyntaxError or TypeError that quotes nothing of the payload', () => {
    const refusal = (text: string, contentType: string): unknown => {
      try {
        return decodePayload(encodePayload(text, contentType))
      } catch (error) {
        return error
      }
    }
    for (const contentType of ['application/json', valueType]) {
      const error = refusal('{"card": secret}', contentType)
      expect(error).toBeInstanceOf(SyntaxError)
      expect(String(error)).toBe('SyntaxError: the payload is not valid JSON')
    }
    expect(refusal('{"$":["secret"]}', valueType)).toBeInstanceOf(TypeError)
    expect(String(refusal('{"$":["secret"]}', valueType))).not.toContain('secret')
  })

  it('treats __proto__ as an ordinary key', () => {
    const value = decodePayload(encodePayload('{"__proto__":{"admin":true}}', 'application/json'))
    expect(Object.keys(value as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  it('reads text by its charset', () => {
    const latin = { bytes: Uint8Array.of(0xe9), contentType: 'text/plain; charset="ISO-8859-1"' }
    expect(decodePayload(latin)).toBe('é')
  })
})

describe('kindOf', () => {
  it.each([
    ['application/json', 'json'],
    ['Application/JSON; charset=utf-8', 'json'],
    ['application/problem+json', 'json'],
    [valueType, 'value'],
    ['text/csv', 'text'],
    ['image/svg+xml', 'text'],
    ['application/x-www-form-urlencoded', 'text'],
    ['application/x-protobuf', 'bytes'],
    ['', 'bytes'],
    [';', 'bytes'],
  ])('reads %s as %s', (contentType, kind) => {
    expect(kindOf(contentType)).toBe(kind)
  })
})

function hasMinusZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(hasMinusZero)
  return Object.is(value, -0)
}
