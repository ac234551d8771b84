import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  categories,
  priorities,
  reasons,
  type ErrorCategory,
  type State,
} from '../../letter/letter.ts'
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

/** In these an item waits for a person. */
export function waitsForReview(status: Status): boolean {
  return stateOf[status] === 'parked'
}

const entryActions = ['enqueued', 'retry', 'success', 'failed', 'abandoned', 'reviewed'] as const
export type EntryAction = (typeof entryActions)[number]

/** Absent and null are one. */
function maybe<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? undefined)
}

const momentMs = z.number().min(0).max(latestMs)
const count = z.int().min(0)
const object = z.record(z.string(), z.unknown())

const entrySchema = z.object({
  timestamp: momentMs,
  action: z.enum(entryActions),
  status: z.enum(statuses),
  error: maybe(z.object({ category: maybe(z.string()), message: z.string() })),
  metadata: maybe(object),
})
export type Entry = z.infer<typeof entrySchema>

const redriveSchema = z.object({
  reason: maybe(z.enum(reasons)),
  payload: maybe(z.object({ contentType: z.string(), base64: z.base64() })),
  metadata: maybe(object),
})

const metadataSchema = z.object({
  enqueuedBy: maybe(z.string()),
  tags: maybe(z.array(z.string())),
  notes: maybe(z.string()),
  reviewed: maybe(z.boolean()),
  reviewedAt: maybe(momentMs),
  reviewedBy: maybe(z.string()),
  redrive: maybe(redriveSchema),
})

export const itemSchema = z.object({
  id: z.string().min(1).max(500),
  taskId: maybe(z.string()),
  /** As far as the 48 bits go that an id has for the time. */
  enqueuedAt: z
    .number()
    .min(0)
    .max(2 ** 48 - 1),
  updatedAt: maybe(momentMs),
  status: z.enum(statuses),
  priority: maybe(z.enum(priorities)),
  retryCount: maybe(count),
  maxRetries: maybe(count),
  retryAfter: maybe(momentMs),
  backoffMs: maybe(z.number().min(0)),
  error: z.object({
    category: maybe(z.string()),
    message: z.string(),
    code: maybe(z.union([z.string(), z.number()])),
    stack: maybe(z.string()),
    timestamp: maybe(momentMs),
  }),
  operation: z.object({
    type: z.string(),
    method: maybe(z.string()),
    endpoint: maybe(z.string()),
    context: maybe(object),
  }),
  task: maybe(z.object({ id: z.string(), description: z.string(), source: z.string() })),
  github: maybe(
    z.object({
      owner: z.string(),
      repo: z.string(),
      entityNumber: maybe(z.number()),
      entityType: maybe(z.enum(['issue', 'pr', 'comment'])),
    }),
  ),
  metadata: maybe(metadataSchema),
  history: maybe(z.array(entrySchema)),
})
export type Item = z.infer<typeof itemSchema>

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * A UUID stays. Any other id becomes a UUID of version 7 from the time of capture and the hash of
 * the id.
 */
export function letterId({ id, enqueuedAt }: Pick<Item, 'id' | 'enqueuedAt'>): string {
  if (uuid.test(id)) return id
  const time = Math.trunc(enqueuedAt).toString(16).padStart(12, '0')
  const hash = createHash('sha256').update(id).digest('hex')
  const variant = '89ab'[Number.parseInt(hash[3]!, 16) & 3]!
  const random = `7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
  return `${time.slice(0, 8)}-${time.slice(8)}-${random}`
}

/**
 * What the format calls `llm_timeout` or `file_not_found` is a detail of ours. Undefined for any
 * other name.
 */
export function detailOf(category: string): Detail | undefined {
  const name = category.toLowerCase()
  return Object.hasOwn(details, name) ? (name as Detail) : undefined
}

/**
 * Our category for a category of the format. Names of ours may be spelled `rate_limit` or
 * `RATE_LIMIT`. `system_error` is what the format calls an error that nothing else matched.
 */
export function categoryOf(name = 'unknown'): ErrorCategory {
  const spelled = name.toLowerCase().replaceAll('_', '-')
  const known = categories.find((category) => category === spelled)
  if (known) return known
  const detail = detailOf(name)
  return detail === undefined || detail === 'system_error' ? 'unknown' : details[detail].under[0]!
}

/** Who moved a letter when nobody said. */
export const importer = 'import'
