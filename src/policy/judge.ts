import { toFailure } from '../letter/failure.ts'
import type { Judged } from '../letter/moves.ts'
import type { Timestamp } from '../letter/time.ts'
import { classify, type Rule } from './classify.ts'
import { fingerprint } from './fingerprint.ts'

/**
 * What was thrown, understood: as data, classified and fingerprinted. Never throws, whatever was thrown; what
 * went wrong in rules of the user's is reported.
 */
export function judge(
  thrown: unknown,
  queue: string,
  at: Timestamp,
  rules: readonly Rule[] = [],
  report?: (problem: string) => void,
): Judged {
  const failure = toFailure(thrown, at)
  const { category, severity, recoverability, problems } = classify(failure, thrown, rules)
  for (const problem of problems ?? []) report?.(problem)
  const { value } = fingerprint(queue, failure)
  return { failure, category, severity, recoverability, fingerprint: value }
}
