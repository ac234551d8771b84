import { describe, expect, it } from 'vitest'
import { classifyFailure, type Rule } from '../../src/policy/classify.ts'
import { toFailure } from '../../src/letter/failure.ts'
import { details } from '../../src/policy/details.ts'
import { templates, templatesOf } from '../../src/policy/templates.ts'
import { checkCorpus, corpus } from '../../src/testing/index.ts'

const at = '2025-01-01T00:00:00.000Z'

describe('templates', () => {
  it.each(templates)('$name has a hint for a person', ({ name, hint }) => {
    expect(name).toMatch(/^[a-z]+(-[a-z]+)+$/)
    expect(hint).toMatch(/^[A-Z].{20,200}\.$/)
  })

  it('have unique names', () => {
    expect(new Set(templates.map(({ name }) => name)).size).toBe(templates.length)
  })

  it.each(templates.filter(({ detail }) => detail !== undefined))(
    '$name has a detail that fits its category',
    ({ detail, category }) => {
      expect(details[detail as keyof typeof details].under).toContain(category)
    },
  )

  it.each(templates)('$name matches an error of the corpus', (template) => {
    const probes = corpus.map((each) => ({
      ...each,
      expect: { category: each.expect.category, template: null },
    }))
    const matched = checkCorpus(probes, [template]).filter(({ field }) => field === 'template')
    expect(matched.length).toBeGreaterThan(0)
  })

  it('agree with the classifier, unless they are more specific', () => {
    const changed = checkCorpus(corpus, templates)
      .filter(({ field }) => field === 'category')
      .map(({ title, actual }) => [title, actual])
    expect(changed).toEqual([['pg: pool has no free client', 'resource']])
  })
})

describe('templatesOf', () => {
  it('replaces names by templates, and keeps rules, in order', () => {
    const own: Rule = { name: 'own', when: { code: 'E1' }, category: 'permanent', hint: 'Look.' }
    expect(templatesOf(['disk-full', own, 'dns-failure']).map(({ name }) => name)).toEqual([
      'disk-full',
      'own',
      'dns-failure',
    ])
    expect(templatesOf([own])[0]).toBe(own)
  })

  it('rejects an unknown name and lists the known ones', () => {
    expect(() => templatesOf(['database-dedlock'])).toThrow(
      /unknown template "database-dedlock", did you mean database-deadlock or/,
    )
    expect(() => templatesOf(['nonsense'])).toThrow(/known: github-secondary-rate-limit, /)
    expect(() => templatesOf(['nonsense'])).toThrow(TypeError)
  })

  it('returns rules with their advice', () => {
    const thrown = Object.assign(new Error('x'), { code: 'ENOSPC' })
    expect(
      classifyFailure(toFailure(thrown, at), thrown, templatesOf(['disk-full'])),
    ).toMatchObject({
      category: 'resource',
      severity: 'critical',
      rule: 'user:disk-full',
      template: { name: 'disk-full', backoff: { kind: 'linear' } },
    })
  })
})
