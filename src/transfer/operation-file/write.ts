import { isDeepStrictEqual } from 'node:util'
import type { DeadLetter, Payload } from '../../letter/letter.ts'
import { decodePayload, encodePayload } from '../../letter/payload.ts'
import { toMs } from '../../letter/time.ts'
import { writeEntry } from './history.ts'
import { importer, type Status } from './item.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { readOperationFile } from './read.ts'

/**
 * Letters as the text of an operation file. Reading the file returns them, as far as the format
 * allows.
 */
export function writeOperationFile(letters: Iterable<DeadLetter>): string {
  return `${JSON.stringify(Array.from(letters, toOperationItem), null, 2)}\n`
}

/** Metadata keys with a meaning in an item, or that an import adds. */
const itemKeys = [
  'enqueuedBy',
  'tags',
  'notes',
  'reviewed',
  'reviewedAt',
  'reviewedBy',
  'redrive',
  'importedId',
  'importedCategory',
  'taskId',
]

/**
 * One letter as an item of an operation file, ready for JSON.stringify. Metadata is written where
 * an import reads it. If an import would read it differently, because the letter uses the same
 * keys, it is written separately and completely.
 */
export function toOperationItem(letter: DeadLetter): object {
  const item = itemOf(letter, false)
  const hasItemKey = itemKeys.some((key) => key in letter.metadata)
  return hasItemKey && !isReadBack(item, letter) ? itemOf(letter, true) : item
}

function isReadBack(item: object, letter: DeadLetter): boolean {
  const [again] = readOperationFile(JSON.stringify([item])).letters
  return again?.id === letter.id && isDeepStrictEqual(again.metadata, letter.metadata)
}

function itemOf(letter: DeadLetter, separate: boolean): object {
  const { message, code, stack, at } = letter.failure
  const { importedId, taskId, importedCategory, enqueuedBy, ...open } = separate
    ? {}
    : letter.metadata
  const id = importedId ?? letter.id
  const capturedBy = enqueuedBy ?? letter.history[0]?.actor ?? importer
  return withoutUndefined({
    id,
    taskId: taskId ?? letter.task?.id ?? id,
    enqueuedAt: toMs(letter.deadLetteredAt),
    updatedAt: toMs(letter.updatedAt),
    status: statusOf(letter),
    priority: letter.priority,
    retryCount: letter.retries,
    maxRetries: letter.maxRetries,
    retryAfter: toMs(letter.retryAt ?? letter.updatedAt),
    backoffMs: letter.backoffMs,
    error: withoutUndefined({
      category: importedCategory ?? letter.category,
      message,
      code,
      stack,
      timestamp: toMs(at),
    }),
    operation: operationOf(letter),
    task: letter.task,
    github: letter.github,
    metadata: withoutUndefined({
      ...open,
      enqueuedBy: capturedBy,
      ...(letter.tags.length > 0 ? { tags: letter.tags } : {}),
      ...reviewOf(letter),
      ...extraFields(letter, separate),
    }),
    history: letter.history.map((entry) => writeEntry(entry, letter, capturedBy)),
  })
}

function statusOf(letter: DeadLetter): Status {
  switch (letter.state) {
    case 'pending':
      return 'queued'
    case 'retrying':
      return 'retrying'
    case 'resolved':
      return 'success'
    case 'exhausted':
      return 'abandoned'
    case 'parked':
      return letter.reason === 'permanent' ? 'failed' : 'manual_review'
    case 'archived':
      return letter.archivedFrom === 'resolved' ? 'success' : 'abandoned'
  }
}

function reviewOf({ review }: DeadLetter): object {
  if (!review) return {}
  return withoutUndefined({
    notes: review.note,
    reviewed: review.decidedAt !== undefined,
    reviewedAt: toMs(review.decidedAt ?? review.neededSince),
    reviewedBy: review.decidedBy,
  })
}

/** Values that the format has no field for. */
function extraFields(letter: DeadLetter, separate: boolean): { redrive?: object } {
  const { payload, reason, metadata } = letter
  const special = statusOf(letter) === 'manual_review' && reason !== 'operator'
  const { contentType, bytes } = payload
  const base64 = Buffer.from(bytes).toString('base64')
  const redrive = withoutUndefined({
    reason: special ? reason : undefined,
    payload: plainValue(payload).exact ? undefined : { contentType, base64 },
    metadata: separate ? metadata : undefined,
  })
  return Object.keys(redrive).length > 0 ? { redrive } : {}
}

function operationOf({ queue: type, source, payload }: DeadLetter): object {
  const { value } = plainValue(payload)
  if (source.kind !== 'operation') return { type, payload: value, context: { source } }
  const { method, endpoint, context } = source
  return withoutUndefined({ type, method, endpoint, payload: value, context })
}

/** The payload as JSON, and whether encoding it again gives the same bytes. */
function plainValue(payload: Payload): { value?: unknown; exact: boolean } {
  try {
    const decoded = decodePayload(payload)
    if (decoded instanceof Uint8Array) return { exact: false }
    const json = JSON.stringify(decoded) as string | undefined
    const value: unknown = json === undefined ? undefined : JSON.parse(json)
    const again = encodePayload(value)
    const sameType = again.contentType === payload.contentType
    return { value, exact: sameType && Buffer.compare(again.bytes, payload.bytes) === 0 }
  } catch {
    return { exact: false }
  }
}
