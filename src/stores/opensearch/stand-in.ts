import {
  categories,
  priorities,
  states,
  type DeadLetter,
  type LetterSummary,
} from '../../letter/letter.ts'

/** The fields of a document from which a damaged letter is reconstructed. Each may be invalid. */
type Clues = Record<string, unknown>

/** Further useful search fields besides the verified ones. */
export const clueFields = ['dead_lettered_at', 'updated_at', 'retry_count', 'max_retries']

/** A damaged letter with placeholders for missing and invalid values. */
export function repairLetter(id: string, clues: object, damaged: unknown): LetterSummary {
  const whole = standIn(id, clues as Clues)
  if (typeof damaged !== 'object' || damaged === null) return whole
  const letter: Record<string, unknown> = { ...damaged }
  for (const [field, value] of Object.entries(whole))
    if (kindOf(letter[field]) !== kindOf(value)) letter[field] = value
  return { ...letter, id } as LetterSummary
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

/** Reconstructs a letter from its search fields, with defaults for the rest. */
function standIn(id: string, found: Clues): LetterSummary {
  const text = (field: string, otherwise: string): string =>
    typeof found[field] === 'string' ? found[field] : otherwise
  const count = (field: string, otherwise: number): number =>
    Number.isSafeInteger(found[field]) ? (found[field] as number) : otherwise
  const one = <T extends string>(field: string, among: readonly T[], otherwise: T): T =>
    among.includes(found[field] as T) ? (found[field] as T) : otherwise
  const at = text('dead_lettered_at', '1970-01-01T00:00:00.000Z')
  const failure: DeadLetter['failure'] = {
    name: 'Unreadable',
    message: 'what failed can no longer be read',
    causes: [],
    at,
  }
  return {
    id,
    version: count('version', 1),
    epoch: 0,
    occurrences: 1,
    queue: text('queue', 'unreadable'),
    source: { kind: 'operation', type: 'unreadable' },
    payload: { contentType: 'application/octet-stream', size: 0, version: 1 },
    metadata: {},
    tags: [],
    failure,
    firstFailure: failure,
    category: one('category', categories, one('error_category', categories, 'unknown')),
    severity: 'medium',
    recoverability: 'unknown',
    fingerprint: text('fingerprint', 'unreadable'),
    priority: one('priority', priorities, 'medium'),
    policy: { kind: 'never' },
    attempts: 0,
    retries: count('retry_count', 0),
    maxRetries: count('max_retries', 0),
    replays: 0,
    backoffMs: 0,
    state: one('status', states, 'parked'),
    failedAt: at,
    deadLetteredAt: at,
    updatedAt: text('updated_at', at),
    historyOmitted: 0,
  }
}
