import { z } from 'zod'
import {
  actions,
  categories,
  priorities,
  reasons,
  recoverabilities,
  severities,
  states,
  type DeadLetter,
  type Failure,
  type Json,
  type Payload,
} from './letter.ts'
import { isTimestamp } from './time.ts'
import { isPlain } from './value-writer.ts'

/**
 * The letter as JSON: the same names and values, with the payload bytes in base64. Strict: an
 * unknown key is an error.
 */
const timestamp = z
  .string()
  .refine(isTimestamp, 'must be a timestamp such as 2026-01-01T00:00:00.000Z')
const count = z.int().nonnegative()
const string = z.string()
const named = z.string().min(1)
const ms = z.number().nonnegative()
const json = z.custom<Json>(isJson, 'must be JSON')
const jsonObject = z.custom<{ [key: string]: Json }>(isJsonObject, 'must be a JSON object')
/** Not a zod record, which silently drops a key named __proto__. */
const stringRecord = z.custom<Record<string, string>>(
  isStringRecord,
  'must be an object with string values',
)

const failure = z
  .strictObject({
    name: string,
    message: string,
    code: string.exactOptional(),
    status: z.int().exactOptional(),
    retryAfterMs: ms.exactOptional(),
    detail: string.exactOptional(),
    hint: string.exactOptional(),
    stack: string.exactOptional(),
    get causes() {
      return z.array(failure)
    },
    at: timestamp,
  })
  .meta({ id: 'Failure' })

const payload = z.strictObject({
  bytes: z.base64(),
  contentType: string,
  size: count,
  version: z.int().positive(),
  restOf: z.int().positive().exactOptional(),
  lossy: z.boolean().exactOptional(),
  redacted: z.literal(true).exactOptional(),
  subject: string.exactOptional(),
  erased: timestamp.exactOptional(),
  reference: string.exactOptional(),
  keyId: string.exactOptional(),
})

const source = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('operation'),
    type: string,
    method: string.exactOptional(),
    endpoint: string.exactOptional(),
    context: json.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('mailbox'),
    mailbox: string,
    messageId: string,
    replyTo: string.exactOptional(),
    requestId: string.exactOptional(),
    deliveries: count,
    enqueuedAt: timestamp.exactOptional(),
    firstReceivedAt: timestamp.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('workflow'),
    name: string,
    taskId: string,
    targets: z.array(string),
    adapter: string.exactOptional(),
    context: json.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('pipeline'),
    cluster: string,
    graph: string.exactOptional(),
    node: string,
    topic: string,
    partition: z.int(),
    offset: string,
    streamId: string,
    hops: count,
  }),
])

const jitter = z.union([z.literal('none'), z.literal('full'), z.number().nonnegative()])

const policy = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('never') }),
  z.strictObject({ kind: z.literal('immediate') }),
  z.strictObject({ kind: z.literal('fixed'), delayMs: ms, jitter: jitter.exactOptional() }),
  z.strictObject({
    kind: z.literal('linear'),
    stepMs: ms,
    maxMs: ms,
    jitter: jitter.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('exponential'),
    baseMs: ms,
    factor: z.number().nonnegative(),
    maxMs: ms,
    jitter: jitter.exactOptional(),
  }),
  z.strictObject({ kind: z.literal('custom'), name: string }),
])

const review = z.strictObject({
  neededSince: timestamp,
  decidedBy: string.exactOptional(),
  decidedAt: timestamp.exactOptional(),
  decision: z.enum(['requeue', 'resolve', 'discard']).exactOptional(),
  note: string.exactOptional(),
})

const historyEntry = z.strictObject({
  at: timestamp,
  actor: string,
  action: z.enum(actions),
  from: z.enum(states).nullable(),
  to: z.enum(states).nullable(),
  epoch: z.int().min(0).exactOptional(),
  failure: z
    .strictObject({ name: string, message: string, category: z.enum(categories) })
    .exactOptional(),
  note: string.exactOptional(),
})

export const letterSchema = z.strictObject({
  id: named,
  version: z.int().positive(),
  epoch: count,
  dedupeKey: string.exactOptional(),
  occurrences: count,
  lane: string.exactOptional(),
  dependsOn: z.array(named).exactOptional(),
  tenant: string.exactOptional(),

  queue: named,
  source,
  traceparent: string.exactOptional(),
  app: z
    .strictObject({
      name: string.exactOptional(),
      version: string.exactOptional(),
      host: string,
      pid: count,
    })
    .exactOptional(),

  payload,
  headers: stringRecord.exactOptional(),
  task: z.strictObject({ id: string, description: string, source: string }).exactOptional(),
  github: z
    .strictObject({
      owner: string,
      repo: string,
      entityNumber: z.number().exactOptional(),
      entityType: z.enum(['issue', 'pr', 'comment']).exactOptional(),
    })
    .exactOptional(),
  metadata: jsonObject,
  tags: z.array(string),

  failure,
  firstFailure: failure,
  category: z.enum(categories),
  severity: z.enum(severities),
  recoverability: z.enum(recoverabilities),
  fingerprint: string,

  priority: z.enum(priorities),
  policy,
  attempts: count,
  retries: count,
  maxRetries: count,
  maxRetriesChosen: z.literal(true).exactOptional(),
  budgetSince: timestamp.exactOptional(),
  deferredSince: timestamp.exactOptional(),
  replays: count,
  retryAt: timestamp.exactOptional(),
  backoffMs: ms,
  expiresAt: timestamp.exactOptional(),

  state: z.enum(states),
  reason: z.enum(reasons).exactOptional(),
  lease: z.strictObject({ worker: string, epoch: count, expiresAt: timestamp }).exactOptional(),
  review: review.exactOptional(),
  archivedFrom: z.enum(states).exclude(['archived', 'retrying']).exactOptional(),

  failedAt: timestamp,
  deadLetteredAt: timestamp,
  updatedAt: timestamp,
  settledAt: timestamp.exactOptional(),

  history: z.array(historyEntry),
  historyOmitted: count,
  corrupt: string.exactOptional(),
})

/** A letter as JSON. */
export type LetterJson = z.infer<typeof letterSchema>

/** A payload as JSON. */
export type PayloadJson = z.infer<typeof payload>

/** Converts a letter to JSON. `letterFromJson` is the inverse. */
export function letterToJson(letter: DeadLetter): LetterJson {
  return { ...letter, payload: payloadToJson(letter.payload) }
}

export function payloadToJson(given: Payload): PayloadJson {
  const { buffer, byteOffset, byteLength } = given.bytes
  return { ...given, bytes: Buffer.from(buffer, byteOffset, byteLength).toString('base64') }
}

/**
 * Reads the JSON of a letter from an untrusted source. The problem names the path of the first
 * error.
 */
export function letterFromJson(
  value: unknown,
): { ok: true; letter: DeadLetter } | { ok: false; problem: string } {
  try {
    const parsed = letterSchema.safeParse(value)
    if (!parsed.success) return { ok: false, problem: problemOf(parsed.error) }
    const read = decodePayloadJson(parsed.data.payload)
    if (!read.ok) return { ok: false, problem: `payload.${read.problem}` }
    return { ok: true, letter: { ...parsed.data, payload: read.payload } }
  } catch {
    return { ok: false, problem: 'the value is nested too deep or cannot be read' }
  }
}

/** Reads the JSON of a payload from an untrusted source, as `letterFromJson` does. */
export function payloadFromJson(value: unknown): PayloadResult {
  const parsed = payload.safeParse(value)
  return parsed.success
    ? decodePayloadJson(parsed.data)
    : { ok: false, problem: problemOf(parsed.error) }
}

type PayloadResult = { ok: true; payload: Payload } | { ok: false; problem: string }

function decodePayloadJson({ bytes: base64, ...rest }: PayloadJson): PayloadResult {
  const bytes = new Uint8Array(Buffer.from(base64, 'base64'))
  const elsewhere = rest.reference !== undefined || rest.keyId !== undefined
  if (elsewhere || rest.size === bytes.byteLength) return { ok: true, payload: { ...rest, bytes } }
  return {
    ok: false,
    problem: `size: must be ${bytes.byteLength}, the number of bytes, got ${rest.size}`,
  }
}

function problemOf(error: z.ZodError): string {
  const issue = error.issues[0]
  if (!issue) return 'the value is not a letter'
  const path = issue.path.map(String).join('.')
  return path === '' ? issue.message : `${path}: ${issue.message}`
}

const maxJsonDepth = 500

/** Whether a letter can store this JSON, also inside one more object. */
export function fitsJson(value: Json): boolean {
  return isJson(value, 1)
}

function isJson(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth > maxJsonDepth) return false
  if (!isPlain(Object.getPrototypeOf(value))) return false
  return Object.values(value).every((item) => isJson(item, depth + 1))
}

function isJsonObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value)
}

function isStringRecord(value: unknown): boolean {
  return (
    isJsonObject(value) && Object.values(value as object).every((item) => typeof item === 'string')
  )
}

/**
 * Schema and type must agree, including which keys are optional; otherwise this does not compile.
 */
type JsonOfLetter = Omit<DeadLetter, 'payload'> & {
  payload: Omit<Payload, 'bytes'> & { bytes: string }
}
type Flat<T> = T extends Json[] | Failure | Failure[]
  ? T
  : T extends object
    ? { [K in keyof T]: Flat<T[K]> }
    : T
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Single<T> = { [K in Exclude<keyof T, 'causes'>]: T[K] }
const agree: [
  Same<Flat<LetterJson>, Flat<JsonOfLetter>>,
  Same<Single<z.infer<typeof failure>>, Single<Failure>>,
] = [true, true]
void agree
