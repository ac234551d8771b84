import type { ErrorCategory, Recoverability, Severity } from '../letter/letter.ts'

/** Classification of a failure. */
export interface Judgement {
  category: ErrorCategory
  severity: Severity
  recoverability: Recoverability
}

/**
 * Defaults of each category. Severity is about this letter, not about urgency: an outage must not
 * make every letter of a queue critical.
 */
const defaults: Record<ErrorCategory, [Severity, Recoverability]> = {
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
  severity: Severity = defaults[category][0],
  recoverability: Recoverability = defaults[category][1],
): Judgement {
  return { category, severity, recoverability }
}
