import { z } from 'zod'
import { firstIssue, type ShapeOf } from '../check/issues.ts'
import { checkKeys } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import {
  priorities,
  type DeadLetter,
  type Json,
  type Payload,
  type Priority,
  type RetryPolicy,
} from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { fitsJson } from '../letter/schema.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import { policyForms } from '../options/schema.ts'
import { parsePolicy } from '../policy/backoff.ts'

/** What the caller may say about a failure beside the error itself. */
export interface CaptureContext {
  /** A UUID of the caller's choice: capturing it again gives back the letter that is kept already. */
  id?: string
  task?: DeadLetter['task']
  github?: DeadLetter['github']
  metadata?: { [key: string]: Json }
  tags?: string[]
  headers?: Record<string, string>
  priority?: Priority
  maxRetries?: number
  /** How to wait between retries, whatever the category of the failure says. */
  policy?: RetryPolicy
  /** While an open letter of the queue has this key, the same capture adds an occurrence to it. */
  dedupeKey?: string
  /** Letters of one lane run one after the other, in the order of capture. */
  lane?: string
  /** Ids of letters that must be resolved before this one runs. */
  dependsOn?: string[]
  tenant?: string
  traceparent?: string
  /** Runs before this capture. 1 unless said. */
  attempts?: number
  /** When it first failed. Now, unless said. */
  failedAt?: Timestamp
  expiresAt?: Timestamp
  /** What the payload is, when it is given as bytes or text. */
  contentType?: string
  /** Who captured it, for the history. */
  by?: string
  /**
   * A client of `pg` on which you have begun a transaction: the letter is kept, and workers hear of it, when that commits.
   * With a Postgres store only.
   */
  client?: unknown
}

const isoDate = /^(?:[+-]\d\d)?\d{4}(?:-\d\d(?:-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?)?)?$/i

/** The platform reads a date into almost anything that has a number in it: 5 is a day in May 2001. */
export function isTimestamp(value: unknown): boolean {
  if (value instanceof Date) return !Number.isNaN(value.getTime())
  return typeof value === 'string' && isoDate.test(value) && !Number.isNaN(toMs(value))
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

const uuid = (message: string) =>
  z.custom<string>((value) => typeof value === 'string' && uuidPattern.test(value), message)
const count = z.int().min(0).optional()
const string = z.string().nullish()
/** UTF-8 cannot encode a lone surrogate: the store would change the string, and no filter would match it. */
const storableString = z
  .string()
  .refine((value) => value.isWellFormed(), 'contains a lone surrogate (invalid Unicode)')
const name = storableString.min(1).optional()
const timestamp = z.custom<Timestamp>(isTimestamp, 'must be an ISO-8601 timestamp').optional()

/** Iterables such as Map and Headers are rejected: their entries are not properties and would be lost. */
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
  traceparent: string,
  attempts: count,
  failedAt: timestamp,
  expiresAt: timestamp,
  contentType: string,
  by: string,
  client: z.unknown().optional(),
} satisfies ShapeOf<CaptureContext>

const contextKeys = Object.keys(contextShape)
/** Unknown keys are checked before, with those of `also`. */
const contextSchema = z.object(contextShape)

/**
 * Rejects an invalid capture context with INVALID_INPUT, before anything is stored. `also` names further keys that the
 * caller's object may have.
 */
export function checkContext(
  context: CaptureContext,
  thing = 'capture context',
  also: readonly string[] = [],
): void {
  checkKeys(thing, context, [...contextKeys, ...also])
  const result = contextSchema.safeParse(context)
  if (!result.success) {
    const { path, isUnknownKey, text } = firstIssue(result.error, contextSchema, context)
    const parent = path.slice(0, -1).join('.')
    throw new RedriveError(
      'INVALID_INPUT',
      isUnknownKey
        ? `unknown key "${String(path.at(-1))}" in ${parent}: ${text}`
        : `${path.join('.')} ${text}`,
    )
  }
  const id = context.id?.toLowerCase()
  if (context.dependsOn?.some((other) => other.toLowerCase() === id))
    throw new RedriveError(
      'INVALID_INPUT',
      `dependsOn must not contain the id of the letter itself (${id}): it would never run`,
    )
}

/**
 * What is said around a failure, as JSON of its own: later changes by the caller do not reach it. What JSON cannot
 * hold is kept in the marked form of the payload's codec, and what is nested too deep for a letter as the text of its
 * JSON, so that nothing that is said can break a capture.
 */
export function jsonOf(value: unknown): Json {
  const json = parsedOf(value)
  return fitsJson(json) ? json : JSON.stringify(json)
}

function parsedOf(value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value)) as Json
  } catch {
    return JSON.parse(Buffer.from(encodePayload(value).bytes).toString()) as Json
  }
}

/** Metadata as a letter keeps it. What is no object, or too deep to be one, stands under `value`. */
export function metadataOf(said: unknown): { [key: string]: Json } {
  const value = jsonOf(said)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { value }
}

/** Refuses a payload that is larger than a letter may keep. */
export function checkSize({ size }: Payload, queue: string, maxPayloadBytes: number): void {
  if (size > maxPayloadBytes)
    throw new RedriveError(
      'TOO_LARGE',
      `payload of ${queue} has ${size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): keep a reference instead`,
    )
}
