import { z } from 'zod'
import { firstIssue } from '../../check/issues.ts'
import { checkQueueName } from '../../check/queue-name.ts'
import { RedriveError } from '../../errors.ts'
import { toFailure } from '../../letter/failure.ts'
import type { DeadLetter, Json, Payload, Review, Source } from '../../letter/letter.ts'
import { encodePayload } from '../../letter/payload.ts'
import { toTimestamp } from '../../letter/time.ts'
import { defaultPolicyFor, exponential } from '../../policy/backoff.ts'
import { fingerprint } from '../../policy/fingerprint.ts'
import { judgement } from '../../policy/judgement.ts'
import { readHistory } from './history.ts'
import { categoryOf, detailOf, itemSchema, letterId, waitsForReview, type Item } from './item.ts'
import { withoutUndefined } from '../../check/keys.ts'

export interface OperationFile {
  letters: DeadLetter[]
  /** Problems of items that could not be read, each with its index in the file. */
  problems: string[]
}

/**
 * Reads the letters of an operation file. An invalid item is a problem and does not stop the
 * others; a file that is not an array of items is rejected with `INVALID_INPUT`. The same item
 * always gives the same id.
 */
export function readOperationFile(text: string): OperationFile {
  const letters: DeadLetter[] = []
  const problems: string[] = []
  const seen = new Map<string, number>()
  for (const [index, raw] of parse(text).entries()) {
    try {
      const letter = toLetter(itemSchema.parse(raw), raw as Raw)
      const earlier = seen.get(letter.id)
      if (earlier === undefined) letters.push(letter)
      else problems.push(`item ${index}: has the same id as item ${earlier}, which is used`)
      seen.set(letter.id, earlier ?? index)
    } catch (error) {
      problems.push(`item ${index}: ${describeError(error, raw)}`)
    }
  }
  return { letters, problems }
}

function parse(text: string): unknown[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(text.replace(/^\ufeff/, ''))
  } catch (error) {
    const empty = text.trim() === ''
    const why = empty ? 'it is empty' : 'it is not JSON, or it is truncated'
    throw new RedriveError('INVALID_INPUT', `not an operation file: ${why}`, { cause: error })
  }
  if (Array.isArray(parsed)) return parsed
  throw new RedriveError('INVALID_INPUT', 'not an operation file: it must be an array of items')
}

function describeError(error: unknown, raw: unknown): string {
  if (error instanceof RedriveError) return error.message
  if (!(error instanceof z.ZodError)) return `cannot be read (${String(error).slice(0, 120)})`
  const { path, text } = firstIssue(error, itemSchema, raw)
  return `${path.join('.')} ${text}`.trim()
}

/** The item before validation. Values of any type are read from here, with all their keys. */
interface Raw {
  operation: { payload?: unknown; context?: Json }
  metadata?: ({ [key: string]: Json } & { redrive?: { metadata?: { [key: string]: Json } } }) | null
}

function toLetter(item: Item, raw: Raw): DeadLetter {
  const queue = checkQueueName(item.operation.type)
  const updatedAt = toTimestamp(item.updatedAt ?? item.enqueuedAt)
  const failedMs = item.error.timestamp ?? item.enqueuedAt
  const { message, stack, code } = item.error
  const failure = toFailure(
    { name: readErrorName(stack), message, stack, code },
    toTimestamp(failedMs),
  )
  const detail = detailOf(item.error.category ?? '')
  if (detail !== undefined) failure.detail = detail
  const judged = judgement(categoryOf(item.error.category))
  const policy = defaultPolicyFor(judged.category)
  const { history, historyOmitted } = readHistory(item)
  return {
    id: letterId(item),
    version: 1,
    epoch: 0,
    occurrences: 1,
    queue,
    source: sourceOf(item, raw),
    payload: payloadOf(item, raw),
    ...(item.task ? { task: item.task } : {}),
    ...(item.github ? { github: withoutUndefined(item.github) } : {}),
    metadata: metadataOf(item, raw, history[0]!.actor),
    tags: item.metadata?.tags ?? [],
    failure,
    firstFailure: failure,
    ...judged,
    fingerprint: fingerprint(queue, failure).value,
    priority: item.priority ?? 'medium',
    policy: policy.kind === 'never' ? exponential() : policy,
    attempts: 1,
    retries: item.retryCount ?? 0,
    maxRetries: item.maxRetries ?? 3,
    ...(item.maxRetries === undefined ? {} : { maxRetriesChosen: true }),
    replays: 0,
    backoffMs: item.backoffMs ?? 0,
    ...stateFieldsOf(item, updatedAt),
    failedAt: toTimestamp(Math.min(failedMs, item.enqueuedAt)),
    deadLetteredAt: toTimestamp(item.enqueuedAt),
    updatedAt,
    history,
    historyOmitted,
  }
}

/**
 * The name of the error, from the first line of its stack, because the format has no field for it.
 * Node puts the code in brackets after the name.
 */
function readErrorName(stack = ''): string {
  return /^([A-Za-z_$][\w$]{0,99})(?=:| \[\w+\]|\n|$)/.exec(stack)?.[1] ?? 'Error'
}

function stateFieldsOf(item: Item, at: string): Pick<DeadLetter, 'state'> & Partial<DeadLetter> {
  const review = reviewOf(item, at)
  const reviewed = review ? { review } : {}
  switch (item.status) {
    case 'queued': {
      const retryAt = item.retryAfter === undefined ? at : toTimestamp(item.retryAfter)
      return { state: 'pending', retryAt, ...reviewed }
    }
    // The run happened in another system: here the letter is due at once.
    case 'retrying':
      return { state: 'pending', retryAt: at, ...reviewed }
    case 'success':
      return { state: 'resolved', settledAt: at, ...reviewed }
    case 'abandoned':
      return { state: 'exhausted', reason: 'retries-exhausted', settledAt: at, ...reviewed }
    case 'failed':
      return { state: 'parked', reason: 'permanent', settledAt: at, ...reviewed }
    case 'manual_review': {
      const reason = item.metadata?.redrive?.reason ?? 'operator'
      return { state: 'parked', reason, settledAt: at, ...reviewed }
    }
  }
}

/**
 * On an item that waits for its review, `reviewedAt` is the time when it began to wait, not that of
 * a decision.
 */
function reviewOf(item: Item, updatedAt: string): Review | undefined {
  const { reviewed, reviewedAt, reviewedBy, notes } = item.metadata ?? {}
  const isWaiting = waitsForReview(item.status)
  if (!isWaiting && !reviewed) return undefined
  const at = reviewedAt === undefined ? updatedAt : toTimestamp(reviewedAt)
  return {
    neededSince: at,
    ...(isWaiting ? {} : { decidedBy: reviewedBy ?? 'unknown', decidedAt: at }),
    ...(notes === undefined ? {} : { note: notes }),
  }
}

function sourceOf({ operation }: Item, raw: Raw): Source {
  const { type, method, endpoint } = operation
  const context = operation.context && raw.operation.context
  return withoutUndefined({ kind: 'operation' as const, type, method, endpoint, context })
}

function payloadOf(item: Item, raw: Raw): Payload {
  const stored = item.metadata?.redrive?.payload
  if (stored) return encodePayload(Buffer.from(stored.base64, 'base64'), stored.contentType)
  return encodePayload(raw.operation.payload)
}

const ownKeys = ['enqueuedBy', 'tags', 'notes', 'reviewed', 'reviewedAt', 'reviewedBy', 'redrive']

/** Values of the item that a letter has no field for. */
function metadataOf(item: Item, raw: Raw, capturedBy: string): DeadLetter['metadata'] {
  const { redrive, enqueuedBy, reviewed, reviewedBy, notes } = item.metadata ?? {}
  if (redrive?.metadata) return raw.metadata!.redrive!.metadata!
  const isWaiting = waitsForReview(item.status)
  const { id, taskId, error } = item
  const extra = withoutUndefined({
    enqueuedBy: enqueuedBy === capturedBy ? undefined : enqueuedBy,
    notes: isWaiting || reviewed ? undefined : notes,
    reviewedBy: isWaiting ? reviewedBy : undefined,
    importedId: id === letterId(item) ? undefined : id,
    taskId: taskId === (item.task?.id ?? id) ? undefined : taskId,
    importedCategory: categoryOf(error.category) === error.category ? undefined : error.category,
  })
  const open = Object.entries(raw.metadata ?? {}).filter(([key]) => !ownKeys.includes(key))
  return Object.fromEntries([...open, ...Object.entries(extra)])
}
