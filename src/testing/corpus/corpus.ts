import type { ErrorCategory, Recoverability, Severity } from '../../letter/letter.ts'
import type { Rule } from '../../policy/classify.ts'
import { understand } from '../../policy/judge.ts'
import errors from './errors.json' with { type: 'json' }
import { reviveError, type ErrorShape } from './revive.ts'

/** An error as some library throws it, and what it is to be taken for. */
export interface CorpusCase {
  title: string
  /** The library and its version. */
  from: string
  error: ErrorShape
  /** The queue that it is thrown in. */
  queue?: string
  expect: CorpusExpectation
}

/** What is given is compared; null means that there is to be none. */
export interface CorpusExpectation {
  category: ErrorCategory
  severity?: Severity
  recoverability?: Recoverability
  detail?: string | null
  retryAfterMs?: number | null
  /** The name of the template, or of the rule with advice, that matches. */
  template?: string | null
}

/** A case that was taken for something else. */
export interface CorpusMismatch {
  title: string
  field: keyof CorpusExpectation
  expected: unknown
  actual: unknown
}

/** Errors of common libraries, recorded from the real ones. */
export const corpus = errors as readonly CorpusCase[]

/** When all cases fail: dates in their headers are meant against it. */
const at = '2025-01-01T00:00:00.000Z'

/**
 * Judges each case, with these rules before the built-in ones, and lists what is not as expected:
 * [] is good.
 */
export function checkCorpus(
  cases: readonly CorpusCase[],
  rules: readonly Rule[] = [],
): CorpusMismatch[] {
  return cases.flatMap(({ title, error, queue = 'work', expect }) => {
    const { judged, template } = understand(reviveError(error), queue, at, rules)
    const { detail, retryAfterMs } = judged.failure
    const actual: Partial<Record<string, unknown>> = {
      ...judged,
      detail,
      retryAfterMs,
      template: template?.name,
    }
    return (Object.keys(expect) as (keyof CorpusExpectation)[])
      .filter((field) => (actual[field] ?? null) !== expect[field])
      .map((field) => ({ title, field, expected: expect[field], actual: actual[field] }))
  })
}
