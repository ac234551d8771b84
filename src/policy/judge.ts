import { toFailure } from '../letter/failure.ts'
import type { Judged } from '../letter/moves.ts'
import type { Timestamp } from '../letter/time.ts'
import { classifyFailure, type Rule } from './classify.ts'
import { detailOf } from './details.ts'
import { fingerprint } from './fingerprint.ts'
import { layersOf } from './layers.ts'
import type { Advice } from './rule.ts'
import { workOf, type Work } from './work.ts'

/** What was thrown, judged, and what the rule that matched advises for the letter. */
export interface Understood {
  judged: Judged
  template?: Advice
}

/**
 * What was thrown, understood: as data, classified and fingerprinted. Never throws, whatever was thrown; what
 * went wrong in rules of the user's is reported. The kind of work is found by the queue and by what was thrown,
 * unless it is said.
 */
export function understand(
  thrown: unknown,
  queue: string,
  at: Timestamp,
  rules: readonly Rule[] = [],
  report?: (problem: string) => void,
  work: Work | undefined = workOf(queue, thrown),
): Understood {
  const failure = toFailure(thrown, at)
  const told = classifyFailure(failure, thrown, rules)
  for (const problem of told.problems ?? []) report?.(problem)
  const { category, severity, recoverability, template } = told
  const { value } = fingerprint(queue, failure)
  const detail = told.detail ?? detailOf(layersOf(failure), category, work)
  if (detail !== undefined) failure.detail = detail
  // What was thrown last may only wrap what the other side said.
  const asked = layersOf(failure).find((layer) => layer.retryAfterMs !== undefined)?.retryAfterMs
  if (asked !== undefined) failure.retryAfterMs = asked
  if (template?.hint !== undefined) failure.hint = template.hint
  const judged = { failure, category, severity, recoverability, fingerprint: value }
  return template ? { judged, template } : { judged }
}

/** The same, for those who need no advice. */
export function judge(...asked: Parameters<typeof understand>): Judged {
  return understand(...asked).judged
}
