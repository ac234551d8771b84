import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories } from '../../src/letter/letter.ts'
import { judge } from '../../src/policy/judge.ts'

const at = '2025-01-01T00:00:00.000Z'

describe('judge', () => {
  it('turns what was thrown into data, with its category and its fingerprint', () => {
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

  it('asks the rules of the user first', () => {
    const rules = [{ name: 'all', when: {}, category: 'resource' as const }]
    expect(judge(new Error('timed out'), 'orders', at, rules).category).toBe('resource')
  })

  it('has an answer for anything that can be thrown', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (thrown) => {
        expect(categories).toContain(judge(thrown, 'orders', at).category)
      }),
    )
  })
})
