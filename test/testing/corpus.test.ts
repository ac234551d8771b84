import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInThisContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Rule } from '../../src/policy/rule.ts'
import { checkCorpus, corpus, reviveError, type CorpusCase } from '../../src/testing/index.ts'

describe('corpus', () => {
  it('is classified as expected in every case', () => {
    expect(checkCorpus(corpus)).toEqual([])
  })

  it('is large, names the origin of each case, and has unique titles', () => {
    expect(corpus.length).toBeGreaterThan(380)
    expect(new Set(corpus.map(({ title }) => title)).size).toBe(corpus.length)
    expect(corpus.filter(({ from }) => from === '')).toEqual([])
  })

  it('is plain JSON', () => {
    const path = join(import.meta.dirname, '../../src/testing/corpus/errors.json')
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(corpus)
  })
})

describe('checkCorpus', () => {
  const declined: CorpusCase = {
    title: 'a declined card',
    from: 'a shop',
    error: { class: ['CardDeclined'], message: 'no funds' },
    expect: { category: 'permanent', detail: null, template: 'card' },
  }

  it('returns each difference as data', () => {
    expect(checkCorpus([declined])).toEqual([
      { title: 'a declined card', field: 'category', expected: 'permanent', actual: 'unknown' },
      { title: 'a declined card', field: 'template', expected: 'card', actual: undefined },
    ])
  })

  it('uses the given rules', () => {
    const when = { errorName: 'CardDeclined' }
    const rules = [{ name: 'card', when, category: 'permanent' as const, hint: 'Call them.' }]
    expect(checkCorpus([declined], rules)).toEqual([])
  })

  it('accepts the example in docs/concepts/policies.md', () => {
    const path = join(import.meta.dirname, '../../docs/concepts/policies.md')
    const text = readFileSync(path, 'utf8')
    const written = (found: RegExp): unknown =>
      runInThisContext(`(${found.exec(text)?.[1] ?? 'undefined'})`)
    const rules = written(/ rules: (\[.+\]),\n/) as Rule[]
    const mine = written(/ mine: CorpusCase\[\] = (\[\n[^]+?\n\])\n/) as CorpusCase[]
    expect(checkCorpus(mine)).not.toEqual([])
    expect(checkCorpus([...corpus, ...mine], rules)).toEqual([])
  })

  it('classifies in the queue of the case', () => {
    const slow: CorpusCase = {
      title: 'slow',
      from: 'a tool',
      error: { message: 'timed out' },
      queue: 'tool',
      expect: { category: 'timeout', detail: 'tool_timeout' },
    }
    expect(checkCorpus([slow, { ...slow, queue: 'orders' }])).toHaveLength(1)
  })
})

describe('reviveError', () => {
  it('creates an error with its classes, name, properties, cause and members', () => {
    const error = reviveError({
      class: ['RateLimitError', 'APIError', 'TypeError'],
      name: 'Limited',
      message: 'slow down',
      props: {
        status: 429,
        headers: { $headers: { 'Retry-After': '7' } },
        error: { $error: { class: ['FetchError'], message: 'inside' } },
      },
      cause: { message: 'below' },
      errors: [{ value: 'one' }, { message: 'two' }],
    }) as TypeError & { status: number; headers: Headers; error: Error; errors: unknown[] }
    expect(error).toBeInstanceOf(TypeError)
    expect(error.constructor.name).toBe('RateLimitError')
    expect(Object.getPrototypeOf(error.constructor).name).toBe('APIError')
    expect([error.name, error.message, error.status]).toEqual(['Limited', 'slow down', 429])
    expect(error.headers.get('retry-after')).toBe('7')
    expect([error.error.name, error.error.message]).toEqual(['FetchError', 'inside'])
    expect((error.cause as Error).message).toBe('below')
    expect(error.errors[0]).toBe('one')
    expect(error.errors[1]).toBeInstanceOf(Error)
  })

  it('defaults the name to the class, and the class to Error', () => {
    expect(reviveError({ message: 'x' })).toMatchObject({ name: 'Error', message: 'x' })
    expect(reviveError({ class: ['Own'], message: 'x' })).toMatchObject({ name: 'Own' })
    expect(reviveError({ class: ['Own'], name: 'Error', message: 'x' })).toMatchObject({
      name: 'Error',
    })
  })

  it('creates a DOMException, an error of another realm, and values that are not errors', () => {
    const aborted = reviveError({ class: ['DOMException'], name: 'AbortError', message: 'x' })
    expect(aborted).toBeInstanceOf(DOMException)
    expect(aborted).toMatchObject({ name: 'AbortError' })
    const foreign = reviveError({ class: ['RangeError'], message: 'far', realm: 'other' })
    expect(foreign).not.toBeInstanceOf(Error)
    expect(foreign).toMatchObject({ name: 'RangeError', message: 'far' })
    expect(reviveError({ value: null })).toBeNull()
    expect(reviveError({ value: { a: [1] } })).toEqual({ a: [1] })
  })
})
