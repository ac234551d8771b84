import { crc32 } from 'node:zlib'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter, LetterSummary, OriginKey, Payload } from '../../letter/letter.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { sourceIdOf } from '../../letter/source-id.ts'
import {
  categoryCode,
  isActiveCode,
  policyCode,
  priorityCode,
  reasonCode,
  recoverabilityCode,
  retrying,
  severityCode,
  stateCode,
  wait,
} from './codes.ts'
import type { Body, Row } from './columns.ts'
import { encodeEntry } from './history-column.ts'
import { keyHash } from './key-hash.ts'
import { sourceKey } from './source-key.ts'
import { encodeOptionalTime, encodeTime } from './times.ts'

export type PayloadFacts = Omit<Payload, 'bytes'>

type OriginField = Exclude<OriginKey, 'id' | 'queue' | 'deadLetteredAt' | 'lane' | 'tenant'>

/** The fields in `Body.origin`. */
export type Origin = Pick<LetterSummary, OriginField> & { payload: PayloadFacts }

export interface EncodedLetter {
  queue: string
  row: Row
  body: Body
}

/** Encodes a letter. Throws INVALID_INPUT if it cannot be stored. */
export function encodeLetter(letter: DeadLetter): EncodedLetter {
  try {
    checkNumbers(letter)
    return { queue: letter.queue, row: encodeRow(letter), body: encodeBody(letter) }
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

/** The row of a letter without dependencies. In the order of `columns`. */
function encodeRow(letter: DeadLetter): Row {
  const state = stateCode(letter.state)
  const due = dueMsOf(letter)
  return [
    state,
    priorityCode(letter.priority),
    categoryCode(letter.category),
    severityCode(letter.severity),
    recoverabilityCode(letter.recoverability),
    policyCode(letter.policy.kind),
    letter.reason === undefined ? null : reasonCode(letter.reason),
    letter.archivedFrom === undefined ? null : stateCode(letter.archivedFrom),
    letter.version,
    letter.epoch,
    letter.retries,
    letter.maxRetries,
    letter.occurrences,
    letter.replays,
    letter.backoffMs,
    encodeTime(letter.updatedAt),
    encodeOptionalTime(letter.retryAt),
    encodeOptionalTime(letter.settledAt),
    encodeOptionalTime(letter.expiresAt),
    encodeOptionalTime(letter.budgetSince),
    encodeOptionalTime(letter.deferredSince),
    waitOf(state, due),
    due,
    letter.lease?.worker ?? null,
    encodeOptionalTime(letter.lease?.expiresAt),
    letter.fingerprint,
    letter.historyOmitted,
    0,
    encodePolicy(letter.policy),
    letter.tags.length > 0 ? JSON.stringify(letter.tags) : null,
    encodeObject(letter.headers),
    Object.keys(letter.metadata).length > 0 ? JSON.stringify(letter.metadata) : null,
    isFirstFailure(letter) ? null : JSON.stringify(letter.failure),
    encodeObject(letter.review),
    null,
    letter.history.map(encodeEntry).join('\n'),
    checkId(letter.id),
    encodeTime(letter.deadLetteredAt),
    letter.lane ?? null,
    letter.tenant ?? null,
    encodeSource(letter),
    letter.dedupeKey === undefined ? null : keyHash(letter.dedupeKey),
  ]
}

function checkId(id: string): string {
  if (isLetterId(id)) return id
  throw new TypeError(`id must be a UUID in lower case, got ${JSON.stringify(id)}`)
}

/** From when the letter can be claimed, or the time it is ordered by. Null: none. */
function dueMsOf(letter: DeadLetter): number | null {
  if (letter.state === 'retrying') return encodeTime(letter.lease?.expiresAt ?? letter.updatedAt)
  if (letter.retryAt !== undefined) return encodeTime(letter.retryAt)
  return letter.state === 'pending' ? encodeTime(letter.deadLetteredAt) : null
}

/** Why a letter waits, if neither its lane nor its dependencies hold it. */
export function waitOf(state: number, due: number | null): number | null {
  if (due === null) return null
  if (!isActiveCode(state)) return wait.resting
  return state === retrying ? wait.leased : wait.ready
}

/** Null: the code of the kind says everything. */
export function encodePolicy(policy: DeadLetter['policy']): string | null {
  return policy.kind === 'never' || policy.kind === 'immediate' ? null : JSON.stringify(policy)
}

export function encodeObject(value: object | undefined | null): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value)
}

function encodeSource(letter: DeadLetter): string | null {
  const id = sourceIdOf(letter)
  return id === undefined ? null : sourceKey(id)
}

function isFirstFailure({ failure, firstFailure }: DeadLetter): boolean {
  return failure === firstFailure || JSON.stringify(failure) === JSON.stringify(firstFailure)
}

function encodeBody(letter: DeadLetter): Body {
  const origin = JSON.stringify(originOf(letter))
  const { bytes } = letter.payload
  return { origin, originCrc: crc32(origin), bytes, bytesCrc: crc32(bytes) }
}

function originOf(letter: DeadLetter): Origin {
  return {
    source: letter.source,
    payload: factsOf(letter.payload),
    firstFailure: letter.firstFailure,
    attempts: letter.attempts,
    maxRetriesChosen: letter.maxRetriesChosen,
    failedAt: letter.failedAt,
    dedupeKey: letter.dedupeKey,
    dependsOn: letter.dependsOn,
    traceparent: letter.traceparent,
    app: letter.app,
    task: letter.task,
    github: letter.github,
  } as Origin
}

/** The payload without its bytes. */
export function factsOf(payload: Payload): PayloadFacts {
  const { bytes: _, ...facts } = payload
  return facts
}
