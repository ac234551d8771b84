import type { ErrorCategory, Recoverability, Severity } from '../letter/letter.ts'

/** What a failure means for the letter. */
export interface Judgement {
  category: ErrorCategory
  severity: Severity
  recoverability: Recoverability
}

/**
 * What holds for a category unless a rule knows better. Severity says how bad it is for this letter, not how
 * urgent: an outage must not make every letter of a queue critical.
 */
const usual: Record<ErrorCategory, [Severity, Recoverability]> = {
  transient: ['low', 'retryable'],
  'rate-limit': ['low', 'retryable'],
  network: ['medium', 'retryable'],
  timeout: ['medium', 'retryable'],
  dependency: ['medium', 'retryable'],
  resource: ['high', 'retryable'],
  permission: ['high', 'permanent'],
  validation: ['medium', 'permanent'],
  permanent: ['medium', 'permanent'],
  unknown: ['medium', 'unknown'],
}

export function judgement(
  category: ErrorCategory,
  severity: Severity = usual[category][0],
  recoverability: Recoverability = usual[category][1],
): Judgement {
  return { category, severity, recoverability }
}
