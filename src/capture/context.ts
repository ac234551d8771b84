import { z } from 'zod'
import { firstIssue, type ShapeOf } from '../check/issues.ts'
import { checkKeys } from '../check/keys.ts'
import { isTime, timeForm } from '../check/read-time.ts'
import { RedriveError } from '../errors.ts'
import {
  priorities,
  type DeadLetter,
  type Json,
  type Payload,
  type Priority,
  type RetryPolicy,
} from '../letter/letter.ts'
import { isLetterId } from '../letter/letter-id.ts'
import { encodePayload } from '../letter/payload.ts'
import { fitsJson } from '../letter/schema.ts'
import { policyForms } from '../options/schema.ts'
import { parsePolicy } from '../policy/backoff.ts'

/** What the caller may give in addition to the error. */
export interface CaptureContext {
  /** A UUID of the caller's choice: capturing it again returns the stored letter. */
  id?: string
  task?: DeadLetter['task']
  github?: DeadLetter['github']
  metadata?: { [key: string]: Json }
  tags?: string[]
  headers?: Record<string, string>
  priority?: Priority
  maxRetries?: number
  /** Delay between retries. It overrides the category of the failure. */
  policy?: RetryPolicy
  /**
   * While an open letter of the queue has this key, a capture adds an occurrence to that letter.
   */
  dedupeKey?: string
  /** Letters of one lane run one at a time, in the order of capture. */
  lane?: string
  /** Ids of letters that must be resolved before this one runs. */
  dependsOn?: string[]
  tenant?: string
  /**
   * The person or other data subject that the payload is about. `eraseSubject` erases all its
   * letters. Default: the value at the path of the option `subject`.
   */
  subject?: string
  traceparent?: string
  /** Number of runs before this capture. Default: 1. */
  attempts?: number
  /** When the work first failed: an ISO-8601 time or a Date. Default: now. */
  failedAt?: string | Date
  expiresAt?: string | Date
  /** Content type of a payload that is bytes or a string. */
  contentType?: string
  /** Who captured the failure, for the history. */
  by?: string
  /**
   * A `pg` client with an open transaction: the letter is stored, and workers are notified, when it
   * commits. Postgres store only.
   */
  client?: unknown
}

/** Ids are stored in lower case. */
const uuid = (message: string) =>
  z.custom<string>((value) => typeof value === 'string' && isLetterId(value.toLowerCase()), message)
const count = z.int().min(0).optional()
const string = z.string().nullish()
/**
 * UTF-8 cannot encode a lone surrogate: the store would change the string, and no filter would
 * match it.
 */
const storableString = z
  .string()
  .refine((value) => value.isWellFormed(), 'contains a lone surrogate (invalid Unicode)')
const name = storableString.min(1).optional()
const time = z.custom<string | Date>(isTime, `must be ${timeForm}`).optional()

/**
 * Iterables such as Map and Headers are rejected: their entries are not properties and would be
 * lost.
 */
const headers = z.any().superRefine((value: unknown, issues) => {
  if (value === undefined || value === null) return
  if (typeof value !== 'object' || Symbol.iterator in value)
    issues.addIssue('must be an object with string values')
  else
    for (const [header, inner] of Object.entries(value))
      if (typeof inner !== 'string')
        issues.addIssue({
          code: 'custom',
          path: [header.slice(0, 80)],
          message: 'must be a string',
        })
})

const contextShape = {
  id: uuid('must be a UUID (use dedupeKey for other keys)').optional(),
  task: z.strictObject({ id: z.string(), description: z.string(), source: z.string() }).nullish(),
  github: z
    .strictObject({
      owner: z.string(),
      repo: z.string(),
      entityNumber: z.number().exactOptional(),
      entityType: z.enum(['issue', 'pr', 'comment']).exactOptional(),
    })
    .nullish(),
  metadata: z.any().optional(),
  tags: z.array(storableString).nullish(),
  headers: headers.optional(),
  priority: z.enum(priorities).optional(),
  maxRetries: count,
  policy: z
    .custom<RetryPolicy>((value) => parsePolicy(value) !== undefined, policyForms)
    .optional(),
  dedupeKey: name,
  lane: name,
  dependsOn: z.array(uuid('must be the id of a letter (a UUID)')).nullish(),
  tenant: name,
  subject: name,
  traceparent: string,
  attempts: count,
  failedAt: time,
  expiresAt: time,
  contentType: string,
  by: string,
  client: z.unknown().optional(),
} satisfies ShapeOf<CaptureContext>

const contextKeys = Object.keys(contextShape)
const fields = Object.entries(contextShape) as [keyof CaptureContext, z.ZodType][]
/** Unknown keys are checked before, with those of `also`. */
const contextSchema = z.object(contextShape)

/**
 * Rejects an invalid capture context with INVALID_INPUT, before anything is stored. `also` names
 * further keys that the caller's object may have.
 */
export function checkContext(
  context: CaptureContext,
  thing = 'capture context',
  also: readonly string[] = [],
): void {
  checkKeys(thing, context, also.length === 0 ? contextKeys : [...contextKeys, ...also])
  if (!isValidContext(context)) rejectContext(context)
  const id = context.id?.toLowerCase()
  if (context.dependsOn?.some((other) => other.toLowerCase() === id))
    throw new RedriveError(
      'INVALID_INPUT',
      `dependsOn must not contain the id of the letter itself (${id}): it would never run`,
    )
}

/** Checks only the given fields, which are few: much faster than the schema of all fields. */
function isValidContext(context: CaptureContext): boolean {
  return fields.every(
    ([key, schema]) => context[key] === undefined || schema.safeParse(context[key]).success,
  )
}

function rejectContext(context: CaptureContext): void {
  const { error } = contextSchema.safeParse(context)
  if (!error) return
  const { path, isUnknownKey, text } = firstIssue(error, contextSchema, context)
  const parent = path.slice(0, -1).join('.')
  throw new RedriveError(
    'INVALID_INPUT',
    isUnknownKey
      ? `unknown key "${String(path.at(-1))}" in ${parent}: ${text}`
      : `${path.join('.')} ${text}`,
  )
}

/**
 * A copy of a value as JSON, so that later changes by the caller do not reach it. Values that JSON
 * cannot represent are stored in the tagged form of the payload codec, and values nested too deep
 * as a JSON string: no value breaks a capture.
 */
export function jsonOf(value: unknown): Json {
  const json = copyJson(value)
  return fitsJson(json) ? json : JSON.stringify(json)
}

function copyJson(value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value)) as Json
  } catch {
    return JSON.parse(Buffer.from(encodePayload(value).bytes).toString()) as Json
  }
}

/**
 * Metadata as it is stored. A value that is not an object, or too deep to be one, is stored under
 * `value`.
 */
export function metadataOf(given: unknown): { [key: string]: Json } {
  const value = jsonOf(given)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { value }
}

/** Rejects a payload above the limit. */
export function checkSize({ size }: Payload, queue: string, maxPayloadBytes: number): void {
  if (size > maxPayloadBytes)
    throw new RedriveError(
      'TOO_LARGE',
      `the payload for queue ${queue} has ${size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): store a reference instead, or raise the limit`,
    )
}
