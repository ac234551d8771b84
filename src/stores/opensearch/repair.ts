import {
  categories,
  priorities,
  states,
  type DeadLetter,
  type LetterSummary,
} from '../../letter/letter.ts'

/** The search fields from which a damaged letter is reconstructed. Each may be invalid. */
type SearchFields = Record<string, unknown>

/** Search fields without a checksum from which a letter is reconstructed. */
export const repairFields = ['dead_lettered_at', 'updated_at', 'retry_count', 'max_retries']

/** Replaces missing and invalid values of a damaged letter. */
export function repairLetter(id: string, fields: object, damaged: unknown): LetterSummary {
  const reconstructed = letterFromFields(id, fields as SearchFields)
  if (typeof damaged !== 'object' || damaged === null) return reconstructed
  const letter: Record<string, unknown> = { ...damaged }
  for (const [field, value] of Object.entries(reconstructed))
    if (kindOf(letter[field]) !== kindOf(value)) letter[field] = value
  return { ...letter, id } as LetterSummary
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

/** Reconstructs a letter from its search fields, with defaults for the rest. */
function letterFromFields(id: string, fields: SearchFields): LetterSummary {
  const stringOf = (field: string, fallback: string): string =>
    typeof fields[field] === 'string' ? fields[field] : fallback
  const countOf = (field: string, fallback: number): number =>
    Number.isSafeInteger(fields[field]) ? (fields[field] as number) : fallback
  const oneOf = <T extends string>(field: string, values: readonly T[], fallback: T): T =>
    values.includes(fields[field] as T) ? (fields[field] as T) : fallback
  const at = stringOf('dead_lettered_at', '1970-01-01T00:00:00.000Z')
  const failure: DeadLetter['failure'] = {
    name: 'Unreadable',
    message: 'what failed can no longer be read',
    causes: [],
    at,
  }
  return {
    id,
    version: countOf('version', 1),
    epoch: 0,
    occurrences: 1,
    queue: stringOf('queue', 'unreadable'),
    source: { kind: 'operation', type: 'unreadable' },
    payload: { contentType: 'application/octet-stream', size: 0, version: 1 },
    metadata: {},
    tags: [],
    failure,
    firstFailure: failure,
    category: oneOf('category', categories, oneOf('error_category', categories, 'unknown')),
    severity: 'medium',
    recoverability: 'unknown',
    fingerprint: stringOf('fingerprint', 'unreadable'),
    priority: oneOf('priority', priorities, 'medium'),
    policy: { kind: 'never' },
    attempts: 0,
    retries: countOf('retry_count', 0),
    maxRetries: countOf('max_retries', 0),
    replays: 0,
    backoffMs: 0,
    state: oneOf('status', states, 'parked'),
    failedAt: at,
    deadLetteredAt: at,
    updatedAt: stringOf('updated_at', at),
    historyOmitted: 0,
  }
}
