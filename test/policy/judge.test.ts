import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories } from '../../src/letter/letter.ts'
import { judge, understand } from '../../src/policy/judge.ts'
import { templatesOf } from '../../src/policy/templates.ts'
import { hostileErrors } from '../letter/hostile.ts'

const at = '2025-01-01T00:00:00.000Z'

const looked = `name message code status type apiId error cause errors request response headers config url
  $metadata $retryable errorLabels signal retry-after x-ratelimit-remaining x-ratelimit-reset x-should-retry`

/** Random JSON in the places that are looked at. */
const anErrorLike = fc.letrec((tie) => ({
  error: fc.dictionary(
    fc.constantFrom(...looked.split(/\s+/)),
    fc.oneof({ depthSize: 'small' }, fc.jsonValue(), tie('error')),
  ),
})).error

describe('judge', () => {
  it('converts an error into data with category and fingerprint', () => {
    const thrown = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80'), {
      code: 'ECONNREFUSED',
    })
    const judged = judge(thrown, 'orders', at)
    expect(judged).toMatchObject({
      failure: { name: 'Error', code: 'ECONNREFUSED', at },
      category: 'network',
      severity: 'medium',
      recoverability: 'retryable',
    })
    expect(judged.fingerprint).toMatch(/^v1-[0-9a-f]{16}$/)
  })

  it('finds retry-after in a wrapped error', () => {
    const limited = Object.assign(new Error('Too Many Requests'), { status: 429, retryAfter: 3600 })
    const retryAfterOf = (thrown: unknown): number | undefined =>
      judge(thrown, 'orders', at).failure.retryAfterMs
    expect(retryAfterOf(new Error('sync failed', { cause: limited }))).toBe(3_600_000)
    expect(retryAfterOf(new AggregateError([new Error('a'), limited], 'all failed'))).toBe(
      3_600_000,
    )
    const own = Object.assign(new Error('busy', { cause: limited }), { retryAfter: 1 })
    expect(retryAfterOf(own)).toBe(1000)
    expect(retryAfterOf(new Error('sync failed'))).toBeUndefined()
  })

  it('uses user rules first', () => {
    const rules = [{ name: 'all', when: {}, category: 'resource' as const }]
    expect(judge(new Error('timed out'), 'orders', at, rules).category).toBe('resource')
  })

  it('stores the detail with the failure, by queue or error', () => {
    const slow = new Error('timed out')
    const detailIn = (queue: string): string | undefined => judge(slow, queue, at).failure.detail
    expect(detailIn('github')).toBe('github_timeout')
    expect(detailIn('llm_call')).toBe('llm_timeout')
    expect(judge(slow, 'orders', at).failure).not.toHaveProperty('detail')
    class OpenAIError extends Error {}
    expect(judge(new OpenAIError('timed out'), 'orders', at).failure.detail).toBe('llm_timeout')
  })

  it('prefers the given kind of work to the queue', () => {
    const { failure } = judge(new Error('timed out'), 'github', at, [], undefined, 'tool')
    expect(failure.detail).toBe('tool_timeout')
  })

  it('gives one cause one fingerprint, with or without a detail', () => {
    const slow = (): Error => Object.assign(new Error('timed out'), { stack: '' })
    const withWork = judge(slow(), 'orders', at, [], undefined, 'tool')
    expect(withWork.fingerprint).toBe(judge(slow(), 'orders', at).fingerprint)
  })

  it.each(hostileErrors)('has an answer for $name', ({ make }) => {
    expect(categories).toContain(judge(make(), 'tool', at).category)
  })

  it('works for errors that are plain JSON', () => {
    fc.assert(
      fc.property(fc.string(), anErrorLike, (queue, thrown) => {
        const { category, failure } = judge(thrown, queue, at)
        expect(categories).toContain(category)
        expect(['string', 'undefined']).toContain(typeof failure.detail)
      }),
    )
  })

  it('works for anything that can be thrown', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
        expect(categories).toContain(judge(thrown, 'orders', at).category)
      }),
    )
  })
})

describe('understand', () => {
  it('returns the advice of the matching rule, and stores its hint with the failure', () => {
    const rules = templatesOf(['database-deadlock'])
    const { judged, template } = understand(new Error('Deadlock detected'), 'orders', at, rules)
    expect(template).toMatchObject({ name: 'database-deadlock', backoff: { kind: 'exponential' } })
    expect(judged.category).toBe('transient')
    expect(judged.failure.hint).toBe(template?.hint)
    expect(Object.keys(judged).sort()).toEqual(
      ['failure', 'category', 'severity', 'recoverability', 'fingerprint'].sort(),
    )
  })

  it('returns no advice without a matching rule', () => {
    const plain = { name: 'plain', when: {}, category: 'resource' as const }
    expect(understand(new Error('x'), 'orders', at)).not.toHaveProperty('template')
    expect(understand(new Error('x'), 'orders', at, [plain])).not.toHaveProperty('template')
  })

  it('prefers the detail of a rule', () => {
    const rules = [
      { name: 'card', when: {}, category: 'permanent' as const, detail: 'card_declined' },
    ]
    expect(understand(new Error('x'), 'tool', at, rules).judged.failure.detail).toBe(
      'card_declined',
    )
  })
})
