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
    ['[A-F0-9]{2,3}', 'A1B2-x', '#-x'],
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
    ['(?=a)', 'only `(?:` is supported'],
    ['(?<name>a)', 'only `(?:` is supported'],
    ['(a)\\1', 'is not supported'],
    ['*a', 'nothing to repeat'],
    ['a**', 'after a repetition'],
    ['(a', 'without `)`'],
    ['a)', 'without `(`'],
    ['[a', 'not supported'],
    ['a{5000}', 'the limit is 1000'],
    ['(?:a{1000}){1000}', 'too large'],
    ['a'.repeat(501), 'the limit is 500'],
  ])('rejects %s', (pattern, why) => {
    expect(() => compilePattern(pattern)).toThrow(why)
  })

  it('rejects flags that it does not know', () => {
    expect(() => compilePattern(/a/m)).toThrow('has the flag m')
  })

  it('covers what the engine of the language matches, for random patterns and strings', () => {
    let seed = 7
    const missed: string[] = []
    const random = (limit: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % limit
    }
    const atoms = ['a', 'b', '[ab]', 'c', '.', '(?:a|bc)', '(?:ab)']
    const repeats = ['', '', '', '*', '+', '?', '{2}', '{1,2}']
    for (let round = 0; round < 300; round++) {
      const source = Array.from(
        { length: 1 + random(4) },
        () => atoms[random(atoms.length)]! + repeats[random(repeats.length)]!,
      ).join(random(5) === 0 ? '|' : '')
      const text = Array.from({ length: 12 }, () => 'abcd'[random(4)]!).join('')
      const covered = new Set<number>()
      for (const { start, end } of compilePattern(source).find(text))
        for (let at = start; at < end; at++) covered.add(at)
      for (let start = 0; start < text.length; start++)
        for (let end = start + 1; end <= text.length; end++)
          if (new RegExp(`^(?:${source})$`).test(text.slice(start, end)))
            for (let at = start; at < end; at++) if (!covered.has(at)) missed.push(source)
    }
    expect(missed).toEqual([])
  })

  // With backtracking, each of these patterns would take longer than the age of the universe.
  it.each(['(?:a+)+b', '(?:a|a)+b', '(?:a*)*b', 'a*a*a*a*a*a*a*b', '(?:a|aa)+b'])(
    'takes linear time for %s',
    (pattern) => {
      expect(mask(pattern, 'a'.repeat(20_000))).toBe('a'.repeat(20_000))
    },
  )
})
