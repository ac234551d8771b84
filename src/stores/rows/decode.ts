import { crc32 } from 'node:zlib'
import type {
  DeadLetter,
  Failure,
  LetterSummary,
  Payload,
  RetryPolicy,
  Review,
} from '../../letter/letter.ts'
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
import { decodeTime } from './times.ts'

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
  const letter = decodeFields(loaded, faults) as DeadLetter
  const { bytes, bytesCrc, row } = loaded
  if (bytes === null) faults.push('the payload cannot be read')
  else if (crc32(bytes) !== bytesCrc) faults.push('the payload does not match its checksum')
  letter.payload = { ...letter.payload, bytes: bytes ?? new Uint8Array(0) }
  const history = decodeHistory(row[at.history] as string | null)
  if (!history) faults.push('the history cannot be read')
  letter.history = history ?? []
  return withFaults(letter, faults)
}

/** The letter as lists show it. */
export function decodeSummary(loaded: LoadedLetter): LetterSummary {
  const faults: string[] = []
  return withFaults(decodeFields(loaded, faults), faults)
}

/** The payload as it was captured. Undefined: it cannot be read. `bytes` are the captured ones. */
export function decodeOriginal(loaded: LoadedLetter): Payload | undefined {
  const { bytes, bytesCrc } = loaded
  if (!bytes || crc32(bytes) !== bytesCrc) return undefined
  return { bytes, ...parseOrigin(loaded, []).payload }
}

function withFaults<T extends LetterSummary>(letter: T, faults: string[]): T {
  if (faults.length > 0) letter.corrupt = faults.join('; ')
  return letter
}

function decodeFields(loaded: LoadedLetter, faults: string[]): LetterSummary {
  const { row, queue } = loaded
  if (loaded.problem !== undefined) faults.push(loaded.problem)
  const origin = parseOrigin(loaded, faults)
  const letter: LetterSummary = {
    id: row[at.id] as string,
    version: row[at.version] as number,
    epoch: row[at.epoch] as number,
    occurrences: row[at.occurrences] as number,
    queue,
    source: origin.source,
    payload: parseColumn<PayloadFacts>(row, at.edit, faults) ?? origin.payload,
    metadata: parseColumn(row, at.metadata, faults) ?? {},
    tags: parseColumn<string[]>(row, at.tags, faults) ?? [],
    failure: parseColumn<Failure>(row, at.failure, faults) ?? origin.firstFailure,
    firstFailure: origin.firstFailure,
    category: categories[row[at.category] as number] ?? 'unknown',
    severity: severities[row[at.severity] as number] ?? 'medium',
    recoverability: recoverabilities[row[at.recoverability] as number] ?? 'unknown',
    fingerprint: row[at.fingerprint] as string,
    priority: priorities[row[at.priority] as number] ?? 'medium',
    policy:
      parseColumn<RetryPolicy>(row, at.policy_json, faults) ??
      (policies[row[at.policy] as number] === 'immediate' ? immediate : never),
    attempts: origin.attempts,
    retries: row[at.retries] as number,
    maxRetries: row[at.max_retries] as number,
    replays: row[at.replays] as number,
    backoffMs: row[at.backoff_ms] as number,
    state: states[row[at.state] as number] ?? 'parked',
    failedAt: origin.failedAt,
    deadLetteredAt: decodeTime(row[at.captured_at] as number),
    updatedAt: decodeTime(row[at.updated_at] as number),
    historyOmitted: row[at.omitted] as number,
  }
  addOriginFields(letter, origin)
  addOptionalFields(letter, row, faults)
  return letter
}

const immediate: RetryPolicy = { kind: 'immediate' }
const never: RetryPolicy = { kind: 'never' }

function addOriginFields(letter: LetterSummary, origin: Origin): void {
  if (origin.dedupeKey !== undefined) letter.dedupeKey = origin.dedupeKey
  if (origin.dependsOn !== undefined) letter.dependsOn = origin.dependsOn
  if (origin.traceparent !== undefined) letter.traceparent = origin.traceparent
  if (origin.app !== undefined) letter.app = origin.app
  if (origin.task !== undefined) letter.task = origin.task
  if (origin.github !== undefined) letter.github = origin.github
  if (origin.maxRetriesChosen !== undefined) letter.maxRetriesChosen = origin.maxRetriesChosen
}

const optionalTimes = [
  ['retryAt', at.retry_at],
  ['settledAt', at.settled_at],
  ['expiresAt', at.expires_at],
  ['budgetSince', at.budget_since],
  ['deferredSince', at.deferred_since],
] as const

function addOptionalFields(letter: LetterSummary, row: Row, faults: string[]): void {
  const headers = parseColumn<Record<string, string>>(row, at.headers, faults)
  const review = parseColumn<Review>(row, at.review, faults)
  const lane = row[at.lane] as string | null
  const tenant = row[at.tenant] as string | null
  const worker = row[at.worker] as string | null
  const leasedUntil = row[at.leased_until] as number | null
  const reason = row[at.reason] as number | null
  const archivedFrom = row[at.archived_from] as number | null
  if (headers) letter.headers = headers
  if (review) letter.review = review
  if (lane !== null) letter.lane = lane
  if (tenant !== null) letter.tenant = tenant
  if (reason !== null) letter.reason = reasons[reason] ?? 'operator'
  if (archivedFrom !== null)
    letter.archivedFrom = states[archivedFrom] as NonNullable<DeadLetter['archivedFrom']>
  if (worker !== null && leasedUntil !== null)
    letter.lease = { worker, epoch: letter.epoch, expiresAt: decodeTime(leasedUntil) }
  for (const [name, index] of optionalTimes) {
    const ms = row[index] as number | null
    if (ms !== null) letter[name] = decodeTime(ms)
  }
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
