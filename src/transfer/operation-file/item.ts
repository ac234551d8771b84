import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  categories,
  priorities,
  reasons,
  type ErrorCategory,
  type State,
} from '../../letter/letter.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { latestMs } from '../../letter/time.ts'
import { details, type Detail } from '../../policy/details.ts'

/**
 * One item of an operation file, which is an array of items with timestamps in milliseconds. Fields
 * of a letter that the format lacks are stored under `metadata.redrive`; fields of an item that a
 * letter lacks are stored in its metadata.
 */
const statuses = ['queued', 'retrying', 'success', 'failed', 'abandoned', 'manual_review'] as const
export type Status = (typeof statuses)[number]

export const stateOf: Record<Status, State> = {
  queued: 'pending',
  retrying: 'retrying',
  success: 'resolved',
  failed: 'parked',
  abandoned: 'exhausted',
  manual_review: 'parked',
}

/** Whether an item with this status waits for a person. */
export function waitsForReview(status: Status): boolean {
  return stateOf[status] === 'parked'
}

const entryActions = ['enqueued', 'retry', 'success', 'failed', 'abandoned', 'reviewed'] as const
export type EntryAction = (typeof entryActions)[number]

/** An optional field. Null counts as absent. */
function optional<T extends z.core.$ZodType>(schema: T) {
  return z.nullish(schema).transform((value) => value ?? undefined)
}

const timestampMs = z.number().min(0).max(latestMs)
const count = z.int().min(0)
const object = z.record(z.string(), z.unknown())

const entrySchema = z.object({
  timestamp: timestampMs,
  action: z.enum(entryActions),
  status: z.enum(statuses),
  error: optional(z.object({ category: optional(z.string()), message: z.string() })),
  metadata: optional(object),
})
export type Entry = z.infer<typeof entrySchema>

const redriveSchema = z.object({
  reason: optional(z.enum(reasons)),
  payload: optional(z.object({ contentType: z.string(), base64: z.base64() })),
  metadata: optional(object),
})

const metadataSchema = z.object({
  enqueuedBy: optional(z.string()),
  tags: optional(z.array(z.string())),
  notes: optional(z.string()),
  reviewed: optional(z.boolean()),
  reviewedAt: optional(timestampMs),
  reviewedBy: optional(z.string()),
  redrive: optional(redriveSchema),
})

export const itemSchema = z.object({
  id: z.string().min(1).max(500),
  taskId: optional(z.string()),
  /** The time in an id has 48 bits. */
  enqueuedAt: z
    .number()
    .min(0)
    .max(2 ** 48 - 1),
  updatedAt: optional(timestampMs),
  status: z.enum(statuses),
  priority: optional(z.enum(priorities)),
  retryCount: optional(count),
  maxRetries: optional(count),
  retryAfter: optional(timestampMs),
  backoffMs: optional(z.number().min(0)),
  error: z.object({
    category: optional(z.string()),
    message: z.string(),
    code: optional(z.union([z.string(), z.number()])),
    stack: optional(z.string()),
    timestamp: optional(timestampMs),
  }),
  operation: z.object({
    type: z.string(),
    method: optional(z.string()),
    endpoint: optional(z.string()),
    context: optional(object),
  }),
  task: optional(z.object({ id: z.string(), description: z.string(), source: z.string() })),
  github: optional(
    z.object({
      owner: z.string(),
      repo: z.string(),
      entityNumber: optional(z.number()),
      entityType: optional(z.enum(['issue', 'pr', 'comment'])),
    }),
  ),
  metadata: optional(metadataSchema),
  history: optional(z.array(entrySchema)),
})
export type Item = z.infer<typeof itemSchema>

/**
 * A UUID stays. Any other id becomes a UUID of version 7 from the time of capture and the hash of
 * the id.
 */
export function letterId({ id, enqueuedAt }: Pick<Item, 'id' | 'enqueuedAt'>): string {
  if (isLetterId(id)) return id
  const time = Math.trunc(enqueuedAt).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(id).digest('hex')
  const variant = '89ab'[Number.parseInt(hash[3]!, 16) & 3]!
  const random = `7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
  return `${time.slice(0, 8)}-${time.slice(8)}-${random}`
}

/**
 * The detail of a category of the format, such as `llm_timeout` or `file_not_found`. Undefined for
 * other names.
 */
export function detailOf(category: string): Detail | undefined {
  const name = category.toLowerCase()
  return Object.hasOwn(details, name) ? (name as Detail) : undefined
}

/**
 * The category of a letter for a category of the format, which may be spelled `rate_limit` or
 * `RATE_LIMIT`. In the format `system_error` is an error without another category.
 */
export function categoryOf(name = 'unknown'): ErrorCategory {
  const spelled = name.toLowerCase().replaceAll('_', '-')
  const known = categories.find((category) => category === spelled)
  if (known) return known
  const detail = detailOf(name)
  return detail === undefined || detail === 'system_error' ? 'unknown' : details[detail].under[0]!
}

/** Default actor of imported history entries. */
export const importer = 'import'
