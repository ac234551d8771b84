import * as fc from 'fast-check'
import { createPatch } from 'rfc6902'
import { describe, expect, it } from 'vitest'
import { patchPayload } from '../../src/check/patch-payload.ts'
import { RedriveError } from '../../src/errors.ts'
import type { JsonPatch } from '../../src/letter/json-patch.ts'
import { decodePayload, encodePayload } from '../../src/letter/payload.ts'

const patched = (document: unknown, patch: unknown): unknown =>
  decodePayload(patchPayload(encodePayload(document), patch as JsonPatch))

const json = (text: string) => encodePayload(text, 'application/json')

function refusal(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    expect(error).toBeInstanceOf(RedriveError)
    expect(error).toMatchObject({ code: 'INVALID_INPUT' })
    return (error as Error).message
  }
  throw new Error('it was not refused')
}

describe('patchPayload', () => {
  // The examples of appendix A of RFC 6902, and the corners that its text names.
  it.each<[string, unknown, unknown, unknown]>([
    [
      'adds a member',
      { foo: 'bar' },
      { op: 'add', path: '/baz', value: 'q' },
      { baz: 'q', foo: 'bar' },
    ],
    ['adds an element', [1, 3], { op: 'add', path: '/1', value: 2 }, [1, 2, 3]],
    ['adds at the end', [1], { op: 'add', path: '/-', value: [2] }, [1, [2]]],
    ['adds at the length', [1], { op: 'add', path: '/1', value: 2 }, [1, 2]],
    ['replaces by add', { a: 1 }, { op: 'add', path: '/a', value: 2 }, { a: 2 }],
    ['adds null', {}, { op: 'add', path: '/a', value: null }, { a: null }],
    ['removes a member', { a: 1, b: 2 }, { op: 'remove', path: '/a' }, { b: 2 }],
    ['removes an element', [1, 2, 3], { op: 'remove', path: '/1' }, [1, 3]],
    ['replaces a value', { a: [1] }, { op: 'replace', path: '/a/0', value: {} }, { a: [{}] }],
    ['replaces the document', { a: 1 }, { op: 'replace', path: '', value: [1] }, [1]],
    [
      'moves a value',
      { a: { b: 1 }, c: {} },
      { op: 'move', from: '/a/b', path: '/c/d' },
      { a: {}, c: { d: 1 } },
    ],
    ['moves an element', [1, 2, 3], { op: 'move', from: '/0', path: '/2' }, [2, 3, 1]],
    ['moves a value to itself', { a: 1 }, { op: 'move', from: '/a', path: '/a' }, { a: 1 }],
    ['copies a value', { a: [1] }, { op: 'copy', from: '/a', path: '/b' }, { a: [1], b: [1] }],
    [
      'tests a value',
      { a: { b: [1, null] } },
      { op: 'test', path: '/a', value: { b: [1, null] } },
      { a: { b: [1, null] } },
    ],
    ['reads escaped keys', { 'a/b': 1, 'm~n': 2 }, { op: 'remove', path: '/a~1b' }, { 'm~n': 2 }],
    ['reads the empty key', { '': 1 }, { op: 'replace', path: '/', value: 2 }, { '': 2 }],
    ['ignores other members', { a: 1 }, { op: 'remove', path: '/a', note: 1 }, {}],
  ])('%s', (_name, document, operation, expected) => {
    expect(patched(document, [operation])).toEqual(expected)
  })

  it.each<[string, unknown, unknown, string]>([
    [
      'a missing member',
      {},
      { op: 'remove', path: '/a' },
      'operation 2 of the patch (remove "/a") cannot be applied: nothing is at "/a"',
    ],
    [
      'a missing parent',
      {},
      { op: 'add', path: '/a/b', value: 1 },
      'no object or array contains "b"',
    ],
    [
      'an index past the end',
      [1],
      { op: 'add', path: '/2', value: 1 },
      '"2" is not an index of an array of 1 values',
    ],
    ['a name as an index', [1], { op: 'remove', path: '/length' }, 'nothing is at "/length"'],
    ['a leading zero', [1, 2], { op: 'replace', path: '/01', value: 1 }, 'nothing is at "/01"'],
    ['the end of an array to remove', [1], { op: 'remove', path: '/-' }, 'nothing is at "/-"'],
    [
      'a move into itself',
      { a: { b: 1 } },
      { op: 'move', from: '/a', path: '/a/b' },
      'cannot move into itself',
    ],
    ['a copy of nothing', {}, { op: 'copy', from: '/x', path: '/a' }, 'nothing is at "/x"'],
    [
      'a test that fails',
      { a: 1 },
      { op: 'test', path: '/a', value: '1' },
      '(test "/a") cannot be applied: the value differs',
    ],
    ['a test of nothing', {}, { op: 'test', path: '/a', value: null }, 'nothing is at "/a"'],
    [
      'the document to remove',
      {},
      { op: 'remove', path: '' },
      'the whole document cannot be removed',
    ],
  ])('refuses %s, and names the operation', (_name, document, operation, why) => {
    const payload = encodePayload(document)
    const before = Buffer.from(payload.bytes)
    const first = { op: 'test', path: '', value: document }
    expect(refusal(() => patchPayload(payload, [first, operation] as JsonPatch))).toContain(why)
    expect(Buffer.compare(before, payload.bytes)).toBe(0)
  })

  it.each<[string, unknown, string]>([
    ['no list', { op: 'add' }, '`patch` must be an array of JSON Patch operations, got an object'],
    ['no operation', [], 'from 1 to 1000 operations, got 0'],
    ['many operations', Array.from({ length: 1001 }, () => ({})), 'got 1001'],
    ['a string', ['add'], 'operation 1 of the patch must be an object'],
    [
      'an unknown op',
      [{ op: 'increment', path: '/a' }],
      'operation 1 of the patch has the unknown `op` "increment"',
    ],
    ['an inherited op', [{ op: 'toString', path: '/a' }], 'unknown `op` "toString"'],
    ['no path', [{ op: 'remove' }], 'operation 1 of the patch (remove) needs `path`'],
    ['no value', [{ op: 'add', path: '/a' }], '(add) needs `value`'],
    ['no from', [{ op: 'move', path: '/a' }], '(move) needs `from`'],
    [
      'a path without /',
      [{ op: 'remove', path: 'a' }],
      'needs a JSON Pointer such as /items/0 as `path`, got "a"',
    ],
    ['a bad escape', [{ op: 'remove', path: '/a~2' }], 'got "/a~2"'],
    [
      'a function as value',
      [{ op: 'add', path: '/a', value: () => 1 }],
      'a `value` that JSON cannot represent',
    ],
    [
      'a bigint as value',
      [{ op: 'add', path: '/a', value: 1n }],
      'a `value` that JSON cannot represent',
    ],
  ])('refuses a patch with %s', (_name, patch, why) => {
    expect(refusal(() => patchPayload(encodePayload({ a: 1 }), patch as JsonPatch))).toContain(why)
  })

  const remove = [{ op: 'remove', path: '/a' }] as const

  it.each([
    ['bytes', encodePayload(new Uint8Array([1])), 'this one is application/octet-stream'],
    ['text', encodePayload('a', 'text/plain'), 'this one is text/plain'],
    ['a JS value', encodePayload({ a: new Date(0) }), 'this one is application/vnd.redrive.value'],
    ['broken JSON', json('{"a":'), 'the payload is not valid JSON'],
    ['a reference', { ...json(''), reference: 's3://x' }, 'the payload is only a reference'],
    ['a huge integer', json('{"a":1,"id":12345678901234567890}'), 'a number under "id"'],
    ['many decimals', json('{"a":1,"x":0.12345678901234567890123}'), 'a number under "x"'],
  ])('refuses %s', (_name, payload, why) => {
    expect(refusal(() => patchPayload(payload, remove))).toContain(why)
  })

  it('accepts numbers in any exact form, and keeps the content type', () => {
    const payload = encodePayload(
      '\ufeff{"a":1,"b":[1.50,1e3,-0.0,9007199254740991]}',
      'application/vnd.x+json',
    )
    const next = patchPayload(payload, remove)
    expect(next).toMatchObject({ contentType: 'application/vnd.x+json', version: 2 })
    expect(Buffer.from(next.bytes).toString()).toBe('{"b":[1.5,1000,0,9007199254740991]}')
  })

  it.each([
    { op: 'add', path: '/__proto__/polluted', value: true },
    { op: 'add', path: '/constructor/prototype/polluted', value: true },
    { op: 'add', path: '/toString/polluted', value: true },
    { op: 'replace', path: '/hasOwnProperty/call', value: true },
    { op: 'copy', from: '/constructor', path: '/b' },
    { op: 'move', from: '/__proto__', path: '/b' },
  ])('reads and writes own properties only: $op $path', (operation) => {
    expect(refusal(() => patched({ a: 1 }, [operation]))).toMatch(/nothing is at|contains/)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Reflect.get(Reflect.get({}, 'toString') as object, 'polluted')).toBeUndefined()
  })

  it('treats __proto__ as a name like any other', () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":true}}')
    const operations = [
      { op: 'add', path: '/a', value },
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/b/__proto__/more', value: 1 },
      { op: 'add', path: '/__proto__', value: 2 },
    ]
    const next = patchPayload(encodePayload({}), operations as JsonPatch)
    expect(Buffer.from(next.bytes).toString()).toBe(
      '{"a":{"__proto__":{"polluted":true}},"b":{"__proto__":{"polluted":true,"more":1}},"__proto__":2}',
    )
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('refuses copies that would grow without bound', () => {
    const double = Array.from({ length: 60 }, (_, index) => ({
      op: 'copy',
      from: '',
      path: `/${index}`,
    }))
    const act = () => patchPayload(encodePayload({ a: 'x'.repeat(100) }), double as JsonPatch, 1e6)
    expect(refusal(act)).toContain('the payload would be larger than 1000000 bytes')
  })

  it('applies what another implementation computes as the difference', () => {
    const values = fc
      .jsonValue({ depthSize: 'small' })
      .filter((value) => !/"(?:__proto__|)":/.test(JSON.stringify(value)))
    const documents = fc.dictionary(
      fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
      values,
    )
    fc.assert(
      fc.property(documents, documents, (before, after) => {
        const from: unknown = JSON.parse(JSON.stringify(before))
        const to: unknown = JSON.parse(JSON.stringify(after))
        const patch = createPatch(from, to)
        if (patch.length > 0) expect(patched(from, patch)).toEqual(to)
      }),
      { numRuns: 300 },
    )
  })
})
