import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { categories, type Failure } from '../../src/letter/letter.ts'
import { detailOf, details, type DetailRow } from '../../src/policy/details.ts'
import type { Work } from '../../src/policy/work.ts'
import { corpus } from '../../src/testing/index.ts'

const at = '2025-01-01T00:00:00.000Z'
const works: (Work | undefined)[] = ['llm', 'github', 'tool', 'verification', undefined]

function failureOf(over: Partial<Failure> = {}): Failure {
  return { name: 'Error', message: '', causes: [], at, ...over }
}

const known = (text: string): string[] => text.trim().split(/[\s,]+/)
const table = Object.values(details) as DetailRow[]
const codes = table.flatMap((row) => known(row.codes ?? ''))
const names = table.flatMap((row) => known(row.names ?? ''))
const phrases = table.flatMap((row) => (row.phrases ?? '').split(',').map((each) => each.trim()))

/** Failures that look like those of the table, in any mixture. */
const aFailure: fc.Arbitrary<Failure> = fc
  .record({
    name: fc.oneof(fc.constantFrom(...names), fc.string()),
    message: fc.oneof(fc.constantFrom(...phrases), fc.string()),
    code: fc.option(fc.oneof(fc.constantFrom(...codes), fc.string()), { nil: undefined }),
    status: fc.option(fc.integer({ min: 100, max: 599 }), { nil: undefined }),
  })
  .map(({ name, message, code, status }) =>
    failureOf({
      name,
      message,
      ...(code === undefined ? {} : { code }),
      ...(status === undefined ? {} : { status }),
    }),
  )

describe('details', () => {
  it('are the known ones', () => {
    const names = `llm_rate_limit llm_timeout llm_quota_exceeded llm_invalid_request llm_server_error
      github_rate_limit github_timeout github_not_found github_forbidden github_server_error github_validation
      tool_timeout tool_not_found tool_execution tool_permission verification_failed type_error lint_error
      test_failure build_failed file_not_found file_permission file_system network_error dns_error
      connection_error config_invalid config_missing skill_not_found skill_validation skill_timeout
      system_error dependency_error`
    expect(Object.keys(details).sort()).toEqual(known(names).sort())
  })

  it('are all covered by the corpus', () => {
    const met = new Set(corpus.map(({ expect: { detail } }) => detail))
    expect(Object.keys(details).filter((detail) => !met.has(detail))).toEqual([])
  })
})

describe('detailOf', () => {
  it('never contradicts the category or the kind of work', () => {
    fc.assert(
      fc.property(
        fc.array(aFailure, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...categories),
        fc.constantFrom(...works),
        (layers, category, work) => {
          const detail = detailOf(layers, category, work)
          if (detail === undefined) return
          const row: DetailRow = details[detail]
          expect(row.under).toContain(category)
          if (row.of) expect(row.of).toBe(work)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('returns undefined without a match', () => {
    expect(detailOf([failureOf()], 'unknown')).toBeUndefined()
    expect(detailOf([failureOf()], 'timeout')).toBeUndefined()
    expect(detailOf([], 'dependency')).toBeUndefined()
    const empty = failureOf({ name: '', code: '' })
    for (const category of categories)
      if (category !== 'network') expect(detailOf([empty], category)).toBeUndefined()
  })

  it('prefers the code, then the name, the status, and words last', () => {
    const under = (over: Partial<Failure>): string | undefined =>
      detailOf([failureOf(over)], 'permanent', 'github')
    expect(under({ code: 'ENOENT', name: 'BuildError', status: 404 })).toBe('file_not_found')
    expect(under({ name: 'BuildError', status: 404, message: 'eslint' })).toBe('build_failed')
    expect(under({ status: 404, message: 'eslint' })).toBe('github_not_found')
    expect(under({ message: 'eslint found problems' })).toBe('lint_error')
  })

  it('distinguishes missing files, programs and sockets', () => {
    const missing = { code: 'ENOENT', message: "ENOENT: no such file or directory, open 'a'" }
    expect(detailOf([failureOf(missing)], 'permanent')).toBe('file_not_found')
    const program = { code: 'ENOENT', message: 'spawn prettier ENOENT' }
    expect(detailOf([failureOf(program)], 'permanent')).toBe('tool_not_found')
    const port = { code: 'EACCES', message: 'listen EACCES: permission denied 0.0.0.0:80' }
    expect(detailOf([failureOf(port)], 'permission')).toBeUndefined()
  })

  it('distinguishes the same failure of two kinds of work', () => {
    const slow = [failureOf({ message: 'timed out' })]
    expect(works.map((work) => detailOf(slow, 'timeout', work))).toEqual([
      'llm_timeout',
      'github_timeout',
      'tool_timeout',
      undefined,
      undefined,
    ])
  })

  it('reads only the beginning of a message', () => {
    const long = failureOf({ message: `${'x '.repeat(600)} eslint` })
    expect(detailOf([long], 'unknown')).toBeUndefined()
  })
})
