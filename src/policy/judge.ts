import { toFailure } from '../letter/failure.ts'
import type { Judged } from '../letter/moves.ts'
import type { Timestamp } from '../letter/time.ts'
import { classifyFailure, type Rule } from './classify.ts'
import { detailOf } from './details.ts'
import type { FingerprintRule } from './fingerprint-rules.ts'
import { fingerprint } from './fingerprint.ts'
import { layersOf } from './layers.ts'
import type { Redaction } from './redaction/redaction.ts'
import type { Advice } from './rule.ts'
import { workOf, type Work } from './work.ts'

/** A classified failure, and the advice of the rule that matched. */
export interface Understood {
  judged: Judged
  template?: Advice
}

/**
 * Converts anything that was thrown into a classified failure with a fingerprint. Never throws;
 * errors of user rules go to `report`. The kind of work defaults to what queue and error indicate.
 * With a redaction at capture, the failure is redacted after its classification.
 */
export function understand(
  thrown: unknown,
  queue: string,
  at: Timestamp,
  rules: readonly Rule[] = [],
  report?: (problem: string) => void,
  work: Work | undefined = workOf(queue, thrown),
  fingerprintRules?: readonly FingerprintRule[],
  redaction?: Redaction,
): Understood {
  const original = toFailure(thrown, at)
  const classified = classifyFailure(original, thrown, rules)
  // Before the fingerprint: titles of groups come from what is stored.
  const failure = redaction?.atCapture ? redaction.failure(original) : original
  for (const problem of classified.problems ?? []) report?.(problem)
  const { category, severity, recoverability, template } = classified
  const { value } = fingerprint(queue, failure, fingerprintRules)
  const layers = layersOf(original)
  const detail = classified.detail ?? detailOf(layers, category, work)
  if (detail !== undefined) failure.detail = detail
  // The delay may be on a cause that the thrown error wraps.
  const asked = layers.find((layer) => layer.retryAfterMs !== undefined)?.retryAfterMs
  if (asked !== undefined) failure.retryAfterMs = asked
  if (template?.hint !== undefined) failure.hint = template.hint
  const judged = { failure, category, severity, recoverability, fingerprint: value }
  return template ? { judged, template } : { judged }
}

/** Like `understand`, without the advice. */
export function judge(...asked: Parameters<typeof understand>): Judged {
  return understand(...asked).judged
}
