import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import { deflateRawSync, gzipSync } from 'node:zlib'

/**
 * Hostile input as data: thrown values, payloads and bytes that break careless code. Each one is
 * created for each use, since reading changes some of them. `row` is the group of the input.
 */
interface Hostile<T> {
  row:
    | 'missing'
    | 'unsayable'
    | 'throwing'
    | 'errors'
    | 'numbers'
    | 'text'
    | 'prototypes'
    | 'size'
    | 'binary'
  name: string
  make: () => T
}

const boom = (): never => {
  throw new Error('boom')
}

/** Every trap throws. */
function throwingProxy(target: object): object {
  const traps = Reflect.ownKeys(Reflect).filter((key) => typeof key === 'string')
  return new Proxy(target, Object.fromEntries(traps.map((trap) => [trap, boom])))
}

function revokedProxy(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function withGetters(target: object, ...keys: string[]): object {
  for (const key of keys) Object.defineProperty(target, key, { get: boom, enumerable: true })
  return target
}

function nested(depth: number): unknown {
  let value: unknown = 'the bottom'
  for (let level = 0; level < depth; level++) value = { deeper: value }
  return value
}

function bottomless(): object {
  return new Proxy({}, { get: () => bottomless(), ownKeys: () => ['a'], ...listed })
}

const listed = {
  getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
}

const megabytes = (count: number): string => 'x'.repeat(count * 1024 * 1024)

function chained(length: number): Error {
  let error = new Error('link 0')
  for (let link = 1; link < length; link++) error = new Error(`link ${link}`, { cause: error })
  return error
}

/** What people and libraries throw. */
export const hostileErrors: Hostile<unknown>[] = [
  ...[null, undefined, 0, Number.NaN, '', 'str', false, 10n, Symbol('sign'), {}, []].map(
    (thrown): Hostile<unknown> => ({
      row: 'errors',
      name: `a thrown ${inspect(thrown)}`,
      make: () => thrown,
    }),
  ),
  { row: 'errors', name: 'a thrown function', make: () => boom },
  { row: 'errors', name: 'a function named by itself', make: () => namedByItself() },
  { row: 'errors', name: 'an object without a prototype', make: () => Object.create(null) },
  { row: 'errors', name: 'a huge bigint', make: () => 1n << 4_000_000n },
  { row: 'errors', name: 'bytes', make: () => new Uint8Array(1_000_000) },
  { row: 'errors', name: 'a boxed string', make: () => Object(megabytes(1)) },
  {
    row: 'errors',
    name: 'an error of another realm',
    make: () => runInNewContext('new RangeError("far away")'),
  },
  { row: 'errors', name: 'a DOMException', make: () => new DOMException('aborted', 'AbortError') },
  {
    row: 'errors',
    name: 'an error whose message, stack, name and code throw',
    make: () => withGetters(new Error('unseen'), 'message', 'stack', 'name', 'code', 'cause'),
  },
  {
    row: 'errors',
    name: 'an error whose status, response and headers throw',
    make: () =>
      withGetters(new Error('seen'), 'status', 'statusCode', 'response', 'headers', 'errors'),
  },
  {
    row: 'errors',
    name: 'an error whose strings are no strings',
    make: () => Object.assign(new Error(), { message: 5, stack: [], name: {}, code: {} }),
  },
  {
    row: 'errors',
    name: 'an object whose toString and toJSON throw',
    make: () => ({ toString: boom, toJSON: boom, [Symbol.toPrimitive]: boom }),
  },
  { row: 'errors', name: 'a proxy that throws', make: () => throwingProxy(new Error('hidden')) },
  { row: 'errors', name: 'a function proxy that throws', make: () => throwingProxy(boom) },
  { row: 'errors', name: 'a revoked proxy', make: () => revokedProxy({}) },
  { row: 'errors', name: 'a revoked function proxy', make: () => revokedProxy(boom) },
  { row: 'errors', name: 'an error that is its own cause', make: () => ownCause() },
  { row: 'errors', name: 'two errors that cause each other', make: () => causeOfEachOther() },
  { row: 'errors', name: 'a chain of a thousand causes', make: () => chained(1000) },
  { row: 'errors', name: 'a bottomless cause', make: () => bottomless() },
  {
    row: 'errors',
    name: 'an AggregateError of 100,000',
    make: () =>
      new AggregateError(
        Array.from({ length: 100_000 }, (_, index) => new Error(`member ${index}`)),
        'all of them',
      ),
  },
  {
    row: 'errors',
    name: 'an AggregateError of itself',
    make: () => {
      const error = new AggregateError([], 'again')
      error.errors = Array.from({ length: 1000 }, () => error)
      return error
    },
  },
  {
    row: 'errors',
    name: 'errors in a proxy that throws',
    make: () => Object.assign(new Error('x'), { errors: throwingProxy([1, 2]) }),
  },
  {
    row: 'errors',
    name: 'aggregates of aggregates with long stacks',
    make: () => bushy(4, megabytes(1)),
  },
  { row: 'errors', name: 'a message of 50 MB', make: () => new Error(megabytes(50)) },
  {
    row: 'errors',
    name: 'a stack of 50 MB',
    make: () => Object.assign(new Error('x'), { stack: megabytes(50), code: megabytes(1) }),
  },
  {
    row: 'errors',
    name: 'a name of 10 MB',
    make: () => Object.assign(new Error('x'), { name: megabytes(10) }),
  },
  { row: 'errors', name: 'a thrown string of 10 MB', make: () => megabytes(10) },
  {
    row: 'errors',
    name: 'lone surrogates, NUL and direction marks',
    make: () => Object.assign(new Error('a\ud800b\udc00c\0d\u202ee\ufefff'), { code: '\ud800' }),
  },
  {
    row: 'errors',
    name: 'headers that never end',
    make: () =>
      Object.assign(new Error('x'), {
        headers: {
          *[Symbol.iterator]() {
            for (;;) yield ['x-more', '1']
          },
        },
      }),
  },
]

function namedByItself(): unknown {
  const named = (): void => undefined
  return Object.defineProperty(named, 'name', { value: named })
}

function ownCause(): Error {
  const error = new Error('round')
  error.cause = error
  return error
}

function causeOfEachOther(): Error {
  const first = new Error('first')
  first.cause = new Error('second', { cause: first })
  return first
}

function bushy(depth: number, stack: string): Error {
  const members = depth === 0 ? [] : Array.from({ length: 6 }, () => bushy(depth - 1, stack))
  return Object.assign(new AggregateError(members, stack), { stack })
}

/**
 * Values that a caller may pass as a payload. `lossy`: some part of the value cannot be stored.
 */
export const hostileValues: (Hostile<unknown> & { lossy: boolean })[] = [
  { row: 'missing', name: 'undefined', lossy: false, make: () => undefined },
  { row: 'missing', name: 'null', lossy: false, make: () => null },
  { row: 'missing', name: 'an empty string', lossy: false, make: () => '' },
  { row: 'missing', name: 'an empty object', lossy: false, make: () => ({}) },
  { row: 'missing', name: 'an undefined property', lossy: false, make: () => ({ a: undefined }) },

  { row: 'unsayable', name: 'an object that holds itself', lossy: false, make: () => round() },
  { row: 'unsayable', name: 'a map that holds itself', lossy: false, make: () => roundMap() },
  { row: 'unsayable', name: 'one object in two places', lossy: false, make: () => shared() },
  { row: 'unsayable', name: 'bigints', lossy: false, make: () => [0n, -5n, 2n ** 5000n] },
  {
    row: 'unsayable',
    name: 'map, set, date, regexp, url',
    lossy: false,
    make: () => ({
      map: new Map<unknown, unknown>([[{ key: 1 }, new Set([1, 'a', null])]]),
      date: new Date(0),
      never: new Date(Number.NaN),
      pattern: /a\/"b/giu,
      url: new URL('https://example.com/?q=1#x'),
    }),
  },
  {
    row: 'unsayable',
    name: 'bytes inside',
    lossy: false,
    make: () => ({
      buffer: Buffer.from([0, 255]),
      floats: new Float64Array([1.5, Number.NaN]),
      longs: new BigInt64Array([-1n]),
      raw: new Uint8Array([1, 2, 3]).buffer,
      window: new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
    }),
  },
  {
    row: 'unsayable',
    name: 'an error with a cause and an index',
    lossy: false,
    make: () =>
      Object.assign(new TypeError('bad', { cause: new Error('worse') }), {
        code: 'E1',
        7: 'seven',
      }),
  },
  // oxlint-disable-next-line no-sparse-arrays
  { row: 'unsayable', name: 'an array with holes', lossy: false, make: () => [1, , 3] },
  { row: 'unsayable', name: 'a function', lossy: true, make: () => boom },
  { row: 'unsayable', name: 'a symbol', lossy: true, make: () => ({ a: Symbol('s') }) },
  { row: 'unsayable', name: 'a symbol key', lossy: true, make: () => ({ [Symbol('k')]: 1, a: 1 }) },
  {
    row: 'unsayable',
    name: 'an instance of a class',
    lossy: true,
    make: () =>
      new (class Order {
        id = 1
        #hidden = 2
        peek = () => this.#hidden
      })(),
  },
  {
    row: 'unsayable',
    name: 'a subclass of Map',
    lossy: true,
    make: () => new (class M extends Map {})(),
  },
  { row: 'unsayable', name: 'a promise', lossy: true, make: () => ({ later: Promise.resolve(1) }) },
  { row: 'unsayable', name: 'a weak map', lossy: true, make: () => [new WeakMap()] },
  {
    row: 'unsayable',
    name: 'an array with a name',
    lossy: true,
    make: () => Object.assign([1], { extra: true }),
  },
  {
    row: 'unsayable',
    name: 'a date with a name',
    lossy: true,
    make: () => Object.assign(new Date(0), { zone: 'Berlin' }),
  },
  {
    row: 'unsayable',
    name: 'a date that is none',
    lossy: true,
    make: () => Object.create(Date.prototype),
  },
  {
    row: 'unsayable',
    name: 'plain data of another realm',
    lossy: false,
    make: () => runInNewContext('({ list: [1, { a: 2 }], when: new Date(0) })'),
  },

  {
    row: 'throwing',
    name: 'a getter that throws',
    lossy: true,
    make: () => withGetters({ a: 1 }, 'b'),
  },
  {
    row: 'throwing',
    name: 'a toJSON that throws no error',
    lossy: true,
    make: () => ({
      kept: 1,
      toJSON: () => {
        throw 'not an error' // oxlint-disable-line no-throw-literal
      },
    }),
  },
  {
    row: 'throwing',
    name: 'a proxy that throws',
    lossy: true,
    make: () => ({ p: throwingProxy({}) }),
  },
  {
    row: 'throwing',
    name: 'an array proxy that throws',
    lossy: true,
    make: () => throwingProxy([]),
  },
  { row: 'throwing', name: 'a revoked proxy', lossy: true, make: () => revokedProxy({}) },
  { row: 'throwing', name: 'a revoked array proxy', lossy: true, make: () => [revokedProxy([])] },
  { row: 'throwing', name: 'a proxy without a bottom', lossy: true, make: () => bottomless() },
  { row: 'throwing', name: 'bytes that were given away', lossy: true, make: () => detached() },

  {
    row: 'numbers',
    name: 'numbers that JSON has no word for',
    lossy: false,
    make: () => [Number.NaN, Infinity, -Infinity, -0, 2 ** 53 + 2, 5e-324, 1.7976931348623157e308],
  },

  {
    row: 'text',
    name: 'lone surrogates, NUL, marks, emoji',
    lossy: false,
    make: () => ({ 'k\ud800': 'a\ud800b\udc00c\0d\ufeff\u202e\u200b\u2028🦊' }),
  },

  {
    row: 'prototypes',
    name: '__proto__ as a key',
    lossy: false,
    make: () =>
      JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}'),
  },
  {
    row: 'prototypes',
    name: '__proto__ as a key beside a date',
    lossy: false,
    make: () =>
      Object.assign(JSON.parse('{"a":{"__proto__":{"admin":true}}}'), { at: new Date(0) }),
  },
  {
    row: 'prototypes',
    name: 'keys of Object.prototype',
    lossy: false,
    make: () => ({ toString: 1, valueOf: null, hasOwnProperty: 'x', isPrototypeOf: true }),
  },
  {
    row: 'prototypes',
    name: 'keys that look like markers',
    lossy: false,
    make: () => ({ $: ['date', 'x'], inside: { $: [{ $: 1 }] }, at: new Date(0) }),
  },
  {
    row: 'prototypes',
    name: 'an object without a prototype',
    lossy: false,
    make: () => Object.assign(Object.create(null), { a: 1 }),
  },

  { row: 'size', name: 'depth 500', lossy: false, make: () => nested(500) },
  { row: 'size', name: 'depth 600', lossy: true, make: () => nested(600) },
  { row: 'size', name: 'depth 10,000', lossy: true, make: () => nested(10_000) },
  { row: 'size', name: 'depth 100,000', lossy: true, make: () => nested(100_000) },
  {
    row: 'size',
    name: 'a million elements',
    lossy: false,
    make: () => Array.from({ length: 1_000_000 }, (_, index) => index),
  },
  {
    row: 'size',
    name: 'four billion holes',
    lossy: true,
    make: () => Object.assign([], { length: 2 ** 32 - 1 }),
  },
  { row: 'size', name: 'one object on 2^40 ways', lossy: false, make: () => doubling(40) },
  { row: 'size', name: 'a string of 10 MB', lossy: false, make: () => megabytes(10) },
]

function round(): object {
  const value: Record<string, unknown> = { name: 'round', list: [] }
  value['self'] = value
  value['list'] = [value, { up: value }]
  return value
}

function roundMap(): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  return map.set('self', map).set(map, new Set([map]))
}

function shared(): object {
  const address = { city: 'Berlin', since: new Date(0) }
  return { billing: address, shipping: address, since: address.since }
}

function doubling(depth: number): unknown {
  let value: unknown[] = ['x']
  for (let level = 0; level < depth; level++) value = [value, value]
  return value
}

function detached(): object {
  const bytes = new Uint8Array([1, 2, 3])
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return { bytes: new DataView(new ArrayBuffer(1)), gone: revokedProxy(bytes), bytesGone: bytes }
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Received bodies. `valid`: the bytes match the content type. */
export const hostileBytes: (Hostile<Uint8Array> & { contentType: string; valid: boolean })[] = [
  ...(
    [
      ['missing', 'no bytes', 'application/octet-stream', true, new Uint8Array()],
      ['missing', 'no bytes of text', 'text/plain', true, new Uint8Array()],
      ['missing', 'no bytes of JSON', 'application/json', false, new Uint8Array()],
      ['numbers', 'an integer beyond 2^53', 'application/json', true, utf8('9007199254740993')],
      ['numbers', '1e400', 'application/json', true, utf8('[1e400,-1e400,-0]')],
      ['numbers', 'doubled keys, in order', 'application/json', true, utf8('{"b":1,"a":2,"b":3}')],
      ['text', 'a byte order mark', 'text/plain', true, utf8('\ufefftext')],
      ['text', 'JSON after a byte order mark', 'application/json', true, utf8('\ufeff{"a":1}')],
      ['text', 'NUL and direction marks', 'text/plain', true, utf8('a\0b\u202ec\u200bd\u2066e')],
      ['text', 'emoji', 'text/plain; charset=utf-8', true, utf8('👩‍🚀🦊')],
      ['text', 'invalid UTF-8', 'text/plain', false, Uint8Array.of(0xff, 0xfe, 0xc0, 0x80)],
      ['text', 'invalid UTF-8 as JSON', 'application/json', false, Uint8Array.of(0x22, 0xff, 0x22)],
      ['text', 'latin1', 'text/plain; charset=latin1', true, Uint8Array.of(0xe9, 0xe8)],
      ['text', 'latin1 that says nothing', 'text/plain', false, Uint8Array.of(0xe9, 0xe8)],
      [
        'text',
        'UTF-16',
        'text/plain; charset=utf-16le',
        true,
        Uint8Array.of(0x61, 0, 0x3d, 0xd8, 0, 0xde),
      ],
      ['text', 'a charset that is none', 'text/plain; charset=klingon', false, utf8('nuqneH')],
      ['text', 'JSON cut short', 'application/json', false, utf8('{"a":[1,2')],
      ['text', 'lone surrogates as escapes', 'application/json', true, utf8('"\\ud800"')],
      ['prototypes', '__proto__', 'application/json', true, utf8('{"__proto__":{"admin":true}}')],
      [
        'prototypes',
        '__proto__ in a marker',
        valueType(),
        true,
        utf8('{"$":["object",{"__proto__":{"admin":true}}]}'),
      ],
      [
        'prototypes',
        '__proto__ in an error',
        valueType(),
        true,
        utf8('{"$":["error",{"__proto__":{"admin":true}}]}'),
      ],
      [
        'binary',
        'a protobuf record',
        'application/x-protobuf',
        true,
        Uint8Array.of(8, 150, 1, 18, 3, 0, 255, 7),
      ],
      [
        'binary',
        'every byte',
        'application/octet-stream',
        true,
        Uint8Array.from({ length: 256 }, (_, byte) => byte),
      ],
      [
        'binary',
        'ciphertext called JSON',
        'application/json',
        false,
        Uint8Array.from({ length: 64 }, (_, n) => (n * 97 + 131) % 256),
      ],
    ] as const
  ).map(([row, name, contentType, valid, bytes]) => ({
    row,
    name,
    contentType,
    valid,
    make: () => bytes,
  })),
  {
    row: 'size',
    name: 'JSON of depth 100,000',
    contentType: 'application/json',
    valid: true,
    make: () => utf8('['.repeat(100_000) + ']'.repeat(100_000)),
  },
  {
    row: 'size',
    name: 'markers of depth 100,000',
    contentType: valueType(),
    valid: false,
    make: () => utf8('{"$":["cut",'.repeat(100_000) + '1' + ']}'.repeat(100_000)),
  },
  {
    row: 'size',
    name: 'a million keys',
    contentType: 'application/json',
    valid: true,
    make: () => utf8(`{${Array.from({ length: 1_000_000 }, (_, n) => `"k${n}":${n}`).join(',')}}`),
  },
  {
    row: 'binary',
    name: 'a gzip bomb',
    contentType: 'application/gzip',
    valid: true,
    make: () => new Uint8Array(gzipSync(Buffer.alloc(10 * 1024 * 1024))),
  },
  {
    row: 'binary',
    name: 'a deflate bomb called text',
    contentType: 'text/plain',
    valid: false,
    make: () => new Uint8Array(deflateRawSync(Buffer.alloc(10 * 1024 * 1024))),
  },
]

function valueType(): string {
  return 'application/vnd.redrive.value+json'
}
