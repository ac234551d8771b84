import type { ErrorCategory, Recoverability, Severity } from '../../letter/letter.ts'
import type { Rule } from '../../policy/classify.ts'
import { understand } from '../../policy/judge.ts'
import errors from './errors.json' with { type: 'json' }
import { reviveError, type ErrorShape } from './revive.ts'

/** An error as a library throws it, and its expected classification. */
export interface CorpusCase {
  title: string
  /** The library and its version. */
  from: string
  error: ErrorShape
  /** The queue in which the error is thrown. Default: "work". */
  queue?: string
  expect: CorpusExpectation
}

/** Only the given fields are compared. Null: the field must be absent. */
export interface CorpusExpectation {
  category: ErrorCategory
  severity?: Severity
  recoverability?: Recoverability
  detail?: string | null
  retryAfterMs?: number | null
  /** Name of the template, or of the rule with advice, that matches. */
  template?: string | null
}

/** A field of a case that differs from the expectation. */
export interface CorpusMismatch {
  title: string
  field: keyof CorpusExpectation
  expected: unknown
  actual: unknown
}

/** Errors of common libraries, recorded from the libraries themselves. */
export const corpus = errors as readonly CorpusCase[]

/** The time of all failures. Dates in the headers of cases are relative to it. */
const at = '2025-01-01T00:00:00.000Z'

/**
 * Classifies each case, with these rules before the built-in ones. Returns the mismatches, [] if
 * there are none.
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
