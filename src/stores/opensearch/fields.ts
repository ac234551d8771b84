import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { isActive, type DeadLetter, type ErrorCategory, type Json } from '../../letter/letter.ts'
import { claimScore, dueAt, rankOf } from '../../letter/order.ts'
import { sortKey } from '../../letter/query.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import { toMs } from '../../letter/time.ts'

/** The search fields of letters; see `letterFields`. */
export interface Fields {
  letter_id: string
  /** The id of the work at its source, otherwise that of the letter. */
  task_id: string
  queue: string
  status: DeadLetter['state']
  lane_key?: string
  due_ms?: number
  claim_score?: number
  waits_for?: string[]
  version: number
  [field: string]: unknown
}

/** Converts a string to a term of the index: well-formed, and a hash if the string is too long. */
export function toTerm(value: string): string {
  if (value.length <= 8000) return value.toWellFormed()
  return `sha256:${hashOf(value)}`
}

/** Returns a short unique name for several strings. */
export function hashOf(...strings: string[]): string {
  const hash = createHash('sha256')
  for (const text of strings) hash.update(`${text.length} `).update(text, 'utf16le')
  return hash.digest('hex')
}

export function fieldsOf(letter: DeadLetter, waitsFor: readonly string[]): Fields {
  const { failure, firstFailure, source } = letter
  const due = dueAt(letter)
  // An invalid timestamp counts as overdue, so that the letter is claimed rather than forgotten.
  const dueMs = isActive(letter.state) && due !== undefined ? toMs(due) || 0 : undefined
  const sourceId = sourceIdOf(letter)
  const fields = {
    letter_id: letter.id,
    task_id: sourceId === undefined ? letter.id : toTerm(sourceId),
    repos: source.kind === 'workflow' ? source.targets.map(toTerm) : undefined,
    error: firstFailure.message.toWellFormed(),
    failed_at: letter.failedAt,
    retry_count: letter.retries,
    max_retries: letter.maxRetries,
    retry_policy: letter.policy.kind,
    next_retry_at: letter.retryAt,
    status: letter.state,
    error_category: workflowCategories[letter.category],
    category: letter.category,
    severity: letter.severity,
    source_kind: source.kind,
    source_id: sourceId === undefined ? undefined : toTerm(sourceId),
    metadata_terms: metadataTermsOf(letter.metadata),
    last_error: failure.message.toWellFormed(),
    total_attempts: letter.attempts + letter.retries,
    updated_at: letter.updatedAt,
    queue: toTerm(letter.queue),
    priority: letter.priority,
    reason: letter.reason,
    fingerprint: toTerm(letter.fingerprint),
    tags: letter.tags.length > 0 ? [...new Set(letter.tags)].map(toTerm) : undefined,
    lane: letter.lane === undefined ? undefined : toTerm(letter.lane),
    lane_key: letter.lane === undefined ? undefined : hashOf(letter.queue, letter.lane),
    tenant: letter.tenant === undefined ? undefined : toTerm(letter.tenant),
    error_name: failure.name.toWellFormed(),
    error_code: failure.code === undefined ? undefined : toTerm(failure.code),
    stack: failure.stack?.toWellFormed(),
    mentions: mentionsOf(letter),
    dead_lettered_at: letter.deadLetteredAt,
    settled_at: letter.settledAt,
    expires_at: letter.expiresAt,
    due_ms: dueMs,
    claim_score: dueMs === undefined ? undefined : claimScore(rankOf(letter.priority), dueMs),
    due_key: sortKey(letter, 'due'),
    settled_key: sortKey(letter, 'settled'),
    waits_for: waitsFor.length > 0 ? waitsFor : undefined,
    version: letter.version,
  }
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as unknown as Fields
}

/** The names of the workflow design for the categories, for its queries. */
const workflowCategories: Record<ErrorCategory, string> = {
  transient: 'transient',
  'rate-limit': 'transient',
  dependency: 'transient',
  network: 'network',
  timeout: 'network',
  resource: 'resource',
  permission: 'permission',
  validation: 'validation',
  permanent: 'permanent',
  unknown: 'permanent',
}

/** Converts a key and a value of metadata to one term. */
export function toMetadataTerm(key: string, value: Json): string {
  return toTerm(JSON.stringify([key, value]))
}

/** Terms for the scalar values of metadata. Arrays and objects cannot be searched. */
function metadataTermsOf(metadata: DeadLetter['metadata']): string[] | undefined {
  const terms = Object.entries(metadata)
    .filter(([, value]) => typeof value !== 'object' || value === null)
    .map(([key, value]) => toMetadataTerm(key, value))
  return terms.length > 0 ? terms : undefined
}

/** The strings that `text` of a filter searches, in lower case. */
function mentionsOf({ queue, failure: { name, message, code } }: DeadLetter): string[] {
  return [queue, name, message, code]
    .filter((text) => text !== undefined)
    .map((text) => text.toLowerCase().toWellFormed().slice(0, 10_000))
}

/**
 * The fields by which letters are found and claimed. A document has a checksum of these fields, so
 * that manual changes are detected.
 */
export const checksumFields = [
  'letter_id',
  'queue',
  'status',
  'priority',
  'lane_key',
  'due_ms',
  'claim_score',
  'category',
  'retry_policy',
  'reason',
  'fingerprint',
  'tags',
  'waits_for',
  'version',
]

/** Field names in documents of format 1. Values and checksums were the same. */
export const formerNames: Record<string, string> = {
  letter_id: 'task_id',
  category: 'error_category',
}

export function checksumOf(fields: Partial<Fields>): number {
  return crc32(
    JSON.stringify(checksumFields.map((name) => fields[name] ?? formerValue(fields, name) ?? null)),
  )
}

/** The value of a field in a document of format 1, which has no `letter_id`. */
function formerValue(fields: Partial<Fields>, name: string): unknown {
  const former = fields.letter_id === undefined ? formerNames[name] : undefined
  return former === undefined ? undefined : fields[former]
}
