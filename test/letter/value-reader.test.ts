import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue } from '../../src/letter/value-reader.ts'

describe('decodeValue', () => {
  it.each([
    ['', SyntaxError],
    ['{', SyntaxError],
    ['undefined', SyntaxError],
    ['{"$":1}', TypeError],
    ['{"$":[]}', TypeError],
    ['{"$":["nobody"]}', TypeError],
    ['{"$":["undefined"],"more":1}', TypeError],
    ['{"$":["number","5"]}', TypeError],
    ['{"$":["bigint","1e9"]}', TypeError],
    ['{"$":["bigint",5]}', TypeError],
    ['{"$":["bigint",""]}', TypeError],
    ['{"$":["date","yesterday"]}', TypeError],
    ['{"$":["date"]}', TypeError],
    ['{"$":["ref",0]}', TypeError],
    ['[{"$":["ref",-1]}]', TypeError],
    ['[{"$":["ref",0.5]}]', TypeError],
    ['[{"$":["ref","length"]}]', TypeError],
    ['{"$":["map",[1]]}', TypeError],
    ['{"$":["map",{}]}', TypeError],
    ['{"$":["set"]}', TypeError],
    ['{"$":["object",[]]}', TypeError],
    ['{"$":["error",null]}', TypeError],
    ['{"$":["regexp","(","g"]}', TypeError],
    ['{"$":["regexp","a","gg"]}', TypeError],
    ['{"$":["url","not a url"]}', TypeError],
    ['{"$":["bytes","Buffer","a"]}', TypeError],
    ['{"$":["bytes","Buffer","!!!!"]}', TypeError],
    ['{"$":["bytes","Float64Array","AAAA"]}', TypeError],
    ['{"$":["bytes","Function","AAAA"]}', TypeError],
    ['{"$":["bytes","constructor","AAAA"]}', TypeError],
    ['['.repeat(5000) + ']'.repeat(5000), TypeError],
  ])('rejects %.40s', (text, kind) => {
    expect(() => decodeValue(text)).toThrow(kind)
    expect(() => decodeValue(text)).toThrow(/^the payload /)
  })

  it('reads or rejects any JSON, and throws only TypeError or SyntaxError', () => {
    const names = ['undefined', 'lost', 'ref', 'cut', 'object', 'instance', 'error', 'map', 'set']
    const scalars = ['number', 'bigint', 'date', 'regexp', 'url', 'boxed', 'bytes', 'nobody']
    const node = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 5 },
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie('node')),
        fc.dictionary(fc.constantFrom('__proto__', 'a', '$', 'name'), tie('node')),
        fc
          .tuple(fc.constantFrom(...names, ...scalars), fc.array(tie('node'), { maxLength: 3 }))
          .map(([name, rest]) => ({ $: [name, ...rest] })),
      ),
    })).node
    fc.assert(
      fc.property(node, (value) => {
        try {
          decodeValue(JSON.stringify(value))
        } catch (error) {
          expect(error).toSatisfy((it) => it instanceof TypeError || it instanceof SyntaxError)
        }
        expect(({} as { a?: unknown }).a).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  it('pollutes no prototype', () => {
    const hostile = '{"__proto__":{"admin":true},"a":{"__proto__":{"admin":true}}}'
    const strings = [
      hostile,
      ...['object', 'instance', 'error'].map((n) => `{"$":["${n}",${hostile}]}`),
    ]
    for (const text of strings) {
      const value = decodeValue(text) as object
      expect(Object.keys(value)).toContain('__proto__')
      expect((value as { admin?: unknown }).admin).toBeUndefined()
    }
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it('reads numbers and bigints of every form', () => {
    expect(decodeValue('[{"$":["number","-0"]},{"$":["number","NaN"]}]')).toEqual([-0, Number.NaN])
    expect(decodeValue('[{"$":["bigint","-12"]},{"$":["bigint","-0xff"]}]')).toEqual([-12n, -255n])
  })
})
