import { crc32 } from 'node:zlib'
import type {
  DeadLetter,
  Failure,
  LetterSummary,
  Payload,
  RetryPolicy,
  Review,
} from '../../letter/letter.ts'
import { toTimestamp } from '../../letter/time.ts'
import {
  categories,
  policies,
  priorities,
  reasons,
  recoverabilities,
  severities,
  states,
} from './codes.ts'
import { at, type Row, type SqlValue } from './columns.ts'
import type { Origin, PayloadFacts } from './encode.ts'
import { decodeHistory } from './history-column.ts'

/** A row as it is read, with the parts of its body that were requested. */
export interface LoadedLetter {
  queue: string
  row: Row
  /** Null: it is missing or unreadable. */
  origin: string | null
  originCrc: number
  /** The current payload: the newest edit, or the captured one. Null: not requested or missing. */
  bytes: Uint8Array | null
  bytesCrc: number
  /** Why a part cannot be read. */
  problem?: string
}

/** The whole letter. A letter that is damaged has `corrupt`, and what could be read of it. */
export function decodeLetter(loaded: LoadedLetter): DeadLetter {
  const faults: string[] = []
  const { origin, fields } = decodeFields(loaded, faults)
  const { bytes, bytesCrc, row } = loaded
  if (bytes === null) faults.push('the payload cannot be read')
  else if (crc32(bytes) !== bytesCrc) faults.push('the payload does not match its checksum')
  const facts = parseColumn<PayloadFacts>(row, at.edit, faults) ?? origin.payload
  const history = decodeHistory(row[at.history] as string | null)
  if (!history) faults.push('the history cannot be read')
  return {
    ...fields,
    payload: { bytes: bytes ?? new Uint8Array(0), ...facts },
    history: history ?? [],
    ...corruptionOf(faults),
  }
}

/** The letter as lists show it. */
export function decodeSummary(loaded: LoadedLetter): LetterSummary {
  const faults: string[] = []
  const { origin, fields } = decodeFields(loaded, faults)
  const payload = parseColumn<PayloadFacts>(loaded.row, at.edit, faults) ?? origin.payload
  return { ...fields, payload, ...corruptionOf(faults) }
}

/** The payload as it was captured. Undefined: it cannot be read. `bytes` are the captured ones. */
export function decodeOriginal(loaded: LoadedLetter): Payload | undefined {
  const { bytes, bytesCrc } = loaded
  if (!bytes || crc32(bytes) !== bytesCrc) return undefined
  return { bytes, ...parseOrigin(loaded, []).payload }
}

function corruptionOf(faults: string[]): { corrupt?: string } {
  return faults.length > 0 ? { corrupt: faults.join('; ') } : {}
}

interface Decoded {
  origin: Origin
  fields: Omit<DeadLetter, 'payload' | 'history'>
}

function decodeFields(loaded: LoadedLetter, faults: string[]): Decoded {
  const { row, queue } = loaded
  if (loaded.problem !== undefined) faults.push(loaded.problem)
  const origin = parseOrigin(loaded, faults)
  const { payload: _, ...captured } = origin
  const number = (index: number): number => row[index] as number
  const policy = parseColumn<RetryPolicy>(row, at.policy_json, faults)
  const headers = parseColumn<Record<string, string>>(row, at.headers, faults)
  const review = parseColumn<Review>(row, at.review, faults)
  const fields: Decoded['fields'] = {
    ...captured,
    id: row[at.id] as string,
    version: number(at.version),
    epoch: number(at.epoch),
    occurrences: number(at.occurrences),
    queue,
    metadata: parseColumn(row, at.metadata, faults) ?? {},
    tags: parseColumn<string[]>(row, at.tags, faults) ?? [],
    failure: parseColumn<Failure>(row, at.failure, faults) ?? origin.firstFailure,
    category: categories[number(at.category)] ?? 'unknown',
    severity: severities[number(at.severity)] ?? 'medium',
    recoverability: recoverabilities[number(at.recoverability)] ?? 'unknown',
    fingerprint: row[at.fingerprint] as string,
    priority: priorities[number(at.priority)] ?? 'medium',
    policy: policy ?? (policies[number(at.policy)] === 'immediate' ? immediate : never),
    retries: number(at.retries),
    maxRetries: number(at.max_retries),
    replays: number(at.replays),
    backoffMs: number(at.backoff_ms),
    state: states[number(at.state)] ?? 'parked',
    deadLetteredAt: decodeTime(number(at.captured_at)),
    updatedAt: decodeTime(number(at.updated_at)),
    historyOmitted: number(at.omitted),
  }
  if (headers) fields.headers = headers
  if (review) fields.review = review
  addOptionalFields(fields, row)
  return { origin, fields }
}

const immediate: RetryPolicy = { kind: 'immediate' }
const never: RetryPolicy = { kind: 'never' }

function addOptionalFields(fields: Decoded['fields'], row: Row): void {
  const text = (index: number): string | undefined => (row[index] as string | null) ?? undefined
  const time = (index: number): string | undefined =>
    row[index] === null ? undefined : decodeTime(row[index] as number)
  const [lane, tenant, worker] = [text(at.lane), text(at.tenant), text(at.worker)]
  const reason = row[at.reason]
  const archivedFrom = row[at.archived_from]
  const expiresAt = time(at.leased_until)
  if (lane !== undefined) fields.lane = lane
  if (tenant !== undefined) fields.tenant = tenant
  if (reason !== null) fields.reason = reasons[reason as number] ?? 'operator'
  if (archivedFrom !== null)
    fields.archivedFrom = states[archivedFrom as number] as NonNullable<DeadLetter['archivedFrom']>
  if (worker !== undefined && expiresAt !== undefined)
    fields.lease = { worker, epoch: fields.epoch, expiresAt }
  const times = [
    ['retryAt', at.retry_at],
    ['settledAt', at.settled_at],
    ['expiresAt', at.expires_at],
    ['budgetSince', at.budget_since],
    ['deferredSince', at.deferred_since],
  ] as const
  for (const [name, index] of times) {
    const value = time(index)
    if (value !== undefined) fields[name] = value
  }
}

/** The timestamp that was encoded. `toTimestamp` has none before 1970. */
function decodeTime(ms: number): string {
  return ms < 0 ? new Date(ms).toISOString() : toTimestamp(ms)
}

function parseColumn<T>(row: Row, index: number, faults: string[]): T | undefined {
  const json = row[index] as string | null
  return json === null ? undefined : parseObject<T>(json, 'the row', faults)
}

function parseOrigin(loaded: LoadedLetter, faults: string[]): Origin {
  const { origin, originCrc, row } = loaded
  if (origin === null) faults.push('the body is missing')
  else if (crc32(origin) !== originCrc) faults.push('the origin does not match its checksum')
  const parsed = origin === null ? undefined : parseObject<Origin>(origin, 'the origin', faults)
  return parsed && faults.length === 0
    ? parsed
    : { ...missingOrigin(row[at.captured_at]!), ...parsed }
}

function parseObject<T>(json: string, part: string, faults: string[]): T | undefined {
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null) return value as T
  } catch {
    // Reported below, like any other JSON that is not an object.
  }
  faults.push(`${part} is not readable as JSON`)
  return undefined
}

/** Placeholder for an origin that cannot be read. */
function missingOrigin(capturedAt: SqlValue): Origin {
  const time = decodeTime(capturedAt as number)
  const message = 'the failure can no longer be read'
  return {
    source: { kind: 'operation', type: 'unreadable' },
    payload: { contentType: 'application/octet-stream', size: 0, version: 1 },
    firstFailure: { name: 'Unreadable', message, causes: [], at: time },
    attempts: 0,
    failedAt: time,
  }
}
