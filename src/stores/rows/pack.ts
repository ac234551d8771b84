import { crc32 } from 'node:zlib'
import { RedriveError } from '../../errors.ts'
import type {
  DeadLetter,
  Failure,
  HistoryEntry,
  LetterSummary,
  OriginKey,
  Payload,
  RetryPolicy,
  Review,
} from '../../letter/letter.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import { categoryCode, policyCode, priorityCode, stateCode } from './codes.ts'
import type { PackedExtras, PackedLetter } from './form.ts'
import { seal, valuesOf, type Row } from './row.ts'
import { sourceKey } from './source-key.ts'

type PayloadFacts = Omit<Payload, 'bytes'>

/** Fields that never change after capture, stored in `bodies.origin`. */
export type Origin = Pick<LetterSummary, Exclude<OriginKey, 'id' | 'queue' | 'deadLetteredAt'>> & {
  payload: PayloadFacts
  entry?: HistoryEntry
}

/** Fields that change but need no column, stored in `letters.rest`. */
export interface Rest {
  occurrences: number
  /** Absent while it equals the first failure. */
  failure?: Failure
  /** Present once the payload was edited. Its bytes are in `edits`. */
  payload?: PayloadFacts
  headers?: Record<string, string>
  metadata: DeadLetter['metadata']
  tags: string[]
  severity: DeadLetter['severity']
  recoverability: DeadLetter['recoverability']
  policy: RetryPolicy
  maxRetries: number
  budgetSince?: NonNullable<DeadLetter['budgetSince']>
  deferredSince?: NonNullable<DeadLetter['deferredSince']>
  replays: number
  review?: Review
  archivedFrom?: NonNullable<DeadLetter['archivedFrom']>
}

/** Encodes a letter. Throws INVALID_INPUT if it cannot be written as JSON. */
export function pack(letter: DeadLetter): PackedLetter {
  try {
    return packed(letter)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new RedriveError('INVALID_INPUT', `letter ${letter.id} cannot be stored: ${why}`, {
      cause: error,
    })
  }
}

const numbers = [
  'version',
  'epoch',
  'retries',
  'backoffMs',
  'historyOmitted',
  'occurrences',
  'maxRetries',
  'replays',
] as const

/** JSON has no NaN; a server might reject the null in its place halfway through a batch. */
function checkNumbers(letter: DeadLetter): void {
  for (const name of numbers)
    if (!Number.isFinite(letter[name]))
      throw new TypeError(`${name} must be a finite number, got ${letter[name]}`)
}

function packed(letter: DeadLetter): PackedLetter {
  checkNumbers(letter)
  const origin = JSON.stringify(originOf(letter))
  const bytes = tight(letter.payload.bytes)
  return [
    valuesOf(rowFrom(letter)),
    letter.queue,
    origin,
    crc32(origin),
    bytes,
    crc32(bytes),
    extrasOf(letter),
  ]
}

/**
 * The entry comes first, so that the JSON shows without parsing whether there is one: see
 * `hasLaterEntries`.
 */
function originOf(letter: DeadLetter): Origin {
  return {
    entry: letter.history[0],
    source: letter.source,
    payload: factsOf(letter.payload),
    firstFailure: letter.firstFailure,
    attempts: letter.attempts,
    maxRetriesChosen: letter.maxRetriesChosen,
    failedAt: letter.failedAt,
    dedupeKey: letter.dedupeKey,
    lane: letter.lane,
    dependsOn: letter.dependsOn,
    tenant: letter.tenant,
    traceparent: letter.traceparent,
    app: letter.app,
    task: letter.task,
    github: letter.github,
  } as Origin
}

function rowFrom(letter: DeadLetter): Row {
  const row: Row = {
    id: letter.id,
    state: stateCode(letter.state),
    priority: priorityCode(letter.priority),
    category: categoryCode(letter.category),
    policy: policyCode(letter.policy.kind),
    reason: letter.reason ?? null,
    fingerprint: letter.fingerprint,
    version: letter.version,
    epoch: letter.epoch,
    retries: letter.retries,
    backoffMs: letter.backoffMs,
    retryAt: letter.retryAt ?? null,
    settledAt: letter.settledAt ?? null,
    expiresAt: letter.expiresAt ?? null,
    deadLetteredAt: letter.deadLetteredAt,
    updatedAt: letter.updatedAt,
    worker: letter.lease?.worker ?? null,
    leasedUntil: letter.lease?.expiresAt ?? null,
    lane: letter.lane ?? null,
    tenant: letter.tenant ?? null,
    dependent: letter.dependsOn && letter.dependsOn.length > 0 ? 1 : 0,
    tagged: letter.tags.length > 0 ? 1 : 0,
    entries: letter.historyOmitted + letter.history.length,
    omitted: letter.historyOmitted,
    rest: JSON.stringify(restOf(letter)),
    crc: 0,
  }
  row.crc = seal(row)
  return row
}

function restOf(letter: DeadLetter): Rest {
  return {
    occurrences: letter.occurrences,
    failure: sameFailure(letter) ? undefined : letter.failure,
    headers: letter.headers,
    metadata: letter.metadata,
    tags: letter.tags,
    severity: letter.severity,
    recoverability: letter.recoverability,
    policy: letter.policy,
    maxRetries: letter.maxRetries,
    budgetSince: letter.budgetSince,
    deferredSince: letter.deferredSince,
    replays: letter.replays,
    review: letter.review,
    archivedFrom: letter.archivedFrom,
  } as Rest
}

function sameFailure({ failure, firstFailure }: DeadLetter): boolean {
  return failure === firstFailure || JSON.stringify(failure) === JSON.stringify(firstFailure)
}

function extrasOf(letter: DeadLetter): PackedExtras | null {
  const { dedupeKey, tags, dependsOn, history } = letter
  const sourceId = sourceIdOf(letter)
  const plain =
    dedupeKey === undefined && tags.length === 0 && history.length < 2 && sourceId === undefined
  if (plain && (dependsOn === undefined || dependsOn.length === 0)) return null
  return {
    ...(dedupeKey === undefined ? {} : { dedupeKey }),
    ...(tags.length > 0 ? { tags: [...new Set(tags)] } : {}),
    ...(dependsOn ? { dependsOn: [...new Set(dependsOn)] } : {}),
    ...(history.length > 1 ? { history: history.slice(1) } : {}),
    ...(sourceId === undefined ? {} : { source: sourceKey(sourceId) }),
  }
}

/** The payload without its bytes. */
export function factsOf(payload: Payload): PayloadFacts {
  const { bytes: _, ...facts } = payload
  return facts
}

/** Bytes that own their buffer: a view would send its whole buffer to the other thread. */
export function tight(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}
