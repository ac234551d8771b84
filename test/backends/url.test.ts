import { describe, expect, it } from 'vitest'
import { queryOf, urlSettings } from '../../src/backends/url.ts'

const known = ['prefix', 'replicas'] as const

describe('urlSettings', () => {
  it('returns settings by name', () => {
    expect(urlSettings('test URL', queryOf('a://b?prefix=x&replicas=2#name'), known)).toEqual({
      prefix: 'x',
      replicas: '2',
    })
    expect(urlSettings('test URL', queryOf('a://b'), known)).toEqual({})
  })

  it.each([
    ['prefx=1', 'unknown key "prefx" in test URL: did you mean "prefix"?'],
    ['colour=red', 'unknown key "colour" in test URL: known: prefix, replicas'],
    ['constructor=1', 'unknown key "constructor" in test URL'],
    ['__proto__=1', 'unknown key "__proto__" in test URL'],
  ])('rejects ?%s by name', (query, message) => {
    expect(() => urlSettings('test URL', queryOf(`a://b?${query}`), known)).toThrow(message)
  })

  it('does not repeat the rest of a password with a ? in it', () => {
    const read = () => urlSettings('test URL', queryOf('a://me:x?hush@host:1/0'), known)
    expect(read).toThrow('write a ? in a password as %3F')
    expect(read).not.toThrow('hush')
  })
})
