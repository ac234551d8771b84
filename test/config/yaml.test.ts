import { describe, expect, it } from 'vitest'
import { formatProblem } from '../../src/config/problems.ts'
import { readYaml } from '../../src/config/yaml.ts'

const read = (text: string) => readYaml(text, (line) => `line ${line}`)

describe('readYaml', () => {
  it('reads plain data and the line of each key', () => {
    const { value, origins, problems } = read('a: 1\nb:\n  c: [x, { d: true }]\n')
    expect({ value, problems }).toEqual({
      value: { a: 1, b: { c: ['x', { d: true }] } },
      problems: [],
    })
    expect(origins.get('["b","c"]')).toBe('line 3')
    expect(origins.get('["b","c",1,"d"]')).toBe('line 3')
  })

  it('follows YAML 1.2: yes, on, 1_000 and dates are strings', () => {
    const { value } = read('a: yes\nb: on\nc: 1_000\nd: 2024-01-01\ne: 0o14\nf: ~\ng: 12:30\n')
    expect(value).toEqual({
      a: 'yes',
      b: 'on',
      c: '1_000',
      d: '2024-01-01',
      e: 12,
      f: null,
      g: '12:30',
    })
  })

  it('expands no variables', () => {
    expect(read('a: ${HOME}').value).toEqual({ a: '${HOME}' })
  })

  it('keeps keys as written', () => {
    expect(read('007: a\n1e3: b\nnull: c').value).toEqual({ '007': 'a', '1e3': 'b', null: 'c' })
  })

  it('resolves aliases', () => {
    expect(read('a: &x { b: 1 }\nc: *x').value).toEqual({ a: { b: 1 }, c: { b: 1 } })
  })

  it.each<[string, string, string]>([
    ['a duplicate key', 'a: 1\na: 2', 'line 2: duplicate key'],
    ['a duplicate key in another spelling', '7: 1\n"7": 2', '7 (line 2): is not allowed as a key'],
    ['two documents', 'a: 1\n---\na: 2', 'line 2: a second document begins here'],
    ['a tag', 'a: !!js/function "x"', 'line 1: has a tag'],
    ['a custom tag', 'a: !secret x', 'line 1: has a tag'],
    ['a tab', 'a:\n\tb: 1', 'line 2: '],
    ['an open bracket', 'a: [1', 'line 1: is not valid YAML'],
    ['an alias without an anchor', 'a: *x', 'a (line 1): is an alias without an anchor'],
    ['a map as a key', '? { a: 1 }\n: b', 'has a key that is not a string'],
    [
      'a __proto__ key',
      'a:\n  __proto__: { x: 1 }',
      'a.__proto__ (line 2): is not allowed as a key',
    ],
  ])('rejects %s', (_, text, problem) => {
    expect(read(text).problems.map(formatProblem).join('\n')).toContain(problem)
  })

  it('reports a problem for aliases that multiply', () => {
    const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
    for (let level = 1; level < 12; level++) {
      const names = Array.from({ length: 9 }, () => `*a${level - 1}`).join(', ')
      bomb.push(`a${level}: &a${level} [${names}]`)
    }
    expect(read(bomb.join('\n')).problems.map(formatProblem)).toEqual([
      expect.stringContaining('is too large or too deep') as string,
    ])
  })

  it('reports a problem for a cyclic alias and for deep nesting', () => {
    expect(read('a: &x { b: *x }').problems).toHaveLength(1)
    expect(read(`a: ${'['.repeat(200)}${']'.repeat(200)}`).problems).toHaveLength(1)
  })

  it('never quotes the contents of the file', () => {
    for (const text of [
      'a: "hunter2',
      'a: [hunter2',
      'a: *hunter2',
      'hunter2: 1\nhunter2\n',
      '%hunter2',
    ])
      expect(read(text).problems.map(formatProblem).join('\n')).not.toContain('hunter2')
  })
})
