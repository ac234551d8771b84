import { describe, expect, it } from 'vitest'
import { compilePattern } from '../../../src/policy/redaction/pattern.ts'
import { replaceSpans } from '../../../src/policy/redaction/spans.ts'

function mask(pattern: string | RegExp, text: string): string {
  return replaceSpans(text, compilePattern(pattern).find(text), () => '#')
}

describe('compilePattern', () => {
  it.each<[string | RegExp, string, string]>([
    ['ORD-\\d{4}', 'see ORD-1234 and ORD-99', 'see # and ORD-99'],
    ['a|bc', 'xaxbcx', 'x#x#x'],
    ['(?:ab)+', 'abab-ab-a', '#-#-a'],
    ['(foo|bar)\\d*', 'foo1 bar baz', '# # baz'],
    ['^a', 'aa', '#a'],
    ['a$', 'aa', 'a#'],
    ['\\bid\\b', 'id kid id', '# kid #'],
    ['[A-F0-9]{2,4}', 'A1B2-x', '#-x'],
    ['[^a-z]+', 'ab12cd', 'ab#cd'],
    ['\\[x\\]', 'a[x]b', 'a#b'],
    ['x?y', 'xy y', '# #'],
    ['.', 'a\nb', '#\n#'],
    [/secret-\w+/i, 'SECRET-abc', '#'],
    ['a{2}', 'a aa', 'a #'],
    ['a{2,}', 'a aaaa', 'a #'],
    ['é+', 'caféé', 'caf#'],
    ['\\u0041', 'A', '#'],
    ['a*', 'b', 'b'],
    ['a*?b', 'aab', '#'],
  ])('finds what %s covers in %j', (pattern, text, expected) => {
    expect(mask(pattern, text)).toBe(expected)
  })

  it.each([
    ['(?=a)', 'is not supported'],
    ['(a)\\1', 'is not supported'],
    ['*a', 'is not supported'],
    ['a**', 'is not supported'],
    ['(a', 'is not supported'],
    ['a)', 'is not supported'],
    ['[a', 'is not supported'],
    ['a{5000}', 'is not supported'],
    ['(?:a{1000}){1000}', 'is not supported'],
    ['(?:[a-z][0-9]){1000}(?:[a-z][0-9]){1000}(?:[a-z][0-9]){1000}', 'is too large'],
    ['a'.repeat(501), 'the limit is 500'],
  ])('rejects %s', (pattern, why) => {
    expect(() => compilePattern(pattern)).toThrow(why)
  })

  it('rejects flags that it does not know', () => {
    expect(() => compilePattern(/a/m)).toThrow('has the flag m')
  })

  // With backtracking, each of these patterns would take longer than the age of the universe.
  it.each(['(?:a+)+b', '(?:a|a)+b', '(?:a*)*b', 'a*a*a*a*a*a*a*b', '(?:a|aa)+b'])(
    'takes linear time for %s',
    (pattern) => {
      expect(mask(pattern, 'a'.repeat(20_000))).toBe('a'.repeat(20_000))
    },
  )
})
