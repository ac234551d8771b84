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
 * The letter as JSON, as files and the wire have it: the same names and values, with the bytes of the payload in
 * base64. Strict: a key that a letter does not have is refused by name.
 */
const moment = z.string().refine(isTimestamp, 'must be a moment like 2026-01-01T00:00:00.000Z')
const count = z.int().nonnegative()
const text = z.string()
const named = z.string().min(1)
const ms = z.number().nonnegative()
const json = z.custom<Json>(isJson, 'must be JSON')
const jsonObject = z.custom<{ [key: string]: Json }>(isJsonObject, 'must be a JSON object')
/** Not a zod record, which would leave out a key named __proto__ without a word. */
const stringRecord = z.custom<Record<string, string>>(
  isStringRecord,
  'must be an object of strings',
)

const failure = z.strictObject({
  name: text,
  message: text,
  code: text.exactOptional(),
  status: z.int().exactOptional(),
  retryAfterMs: ms.exactOptional(),
  detail: text.exactOptional(),
  hint: text.exactOptional(),
  stack: text.exactOptional(),
  get causes() {
    return z.array(failure)
  },
  at: moment,
})

const payload = z.strictObject({
  bytes: z.base64(),
  contentType: text,
  size: count,
  version: z.int().positive(),
  restOf: z.int().positive().exactOptional(),
  lossy: z.boolean().exactOptional(),
  reference: text.exactOptional(),
  keyId: text.exactOptional(),
})

const source = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('operation'),
    type: text,
    method: text.exactOptional(),
    endpoint: text.exactOptional(),
    context: json.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('mailbox'),
    mailbox: text,
    messageId: text,
    replyTo: text.exactOptional(),
    requestId: text.exactOptional(),
    deliveries: count,
    enqueuedAt: moment.exactOptional(),
    firstReceivedAt: moment.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('workflow'),
    name: text,
    taskId: text,
    targets: z.array(text),
    adapter: text.exactOptional(),
    context: json.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('pipeline'),
    cluster: text,
    graph: text.exactOptional(),
    node: text,
    topic: text,
    partition: z.int(),
    offset: text,
    streamId: text,
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
  z.strictObject({ kind: z.literal('custom'), name: text }),
])

const review = z.strictObject({
  neededSince: moment,
  decidedBy: text.exactOptional(),
  decidedAt: moment.exactOptional(),
  decision: z.enum(['requeue', 'resolve', 'discard']).exactOptional(),
  note: text.exactOptional(),
})

const historyEntry = z.strictObject({
  at: moment,
  actor: text,
  action: z.enum(actions),
  from: z.enum(states).nullable(),
  to: z.enum(states).nullable(),
  epoch: z.int().min(0).exactOptional(),
  failure: z
    .strictObject({ name: text, message: text, category: z.enum(categories) })
    .exactOptional(),
  note: text.exactOptional(),
})

const letterSchema = z.strictObject({
  id: named,
  version: z.int().positive(),
  epoch: count,
  dedupeKey: text.exactOptional(),
  occurrences: count,
  lane: text.exactOptional(),
  dependsOn: z.array(named).exactOptional(),
  tenant: text.exactOptional(),

  queue: named,
  source,
  traceparent: text.exactOptional(),
  app: z
    .strictObject({
      name: text.exactOptional(),
      version: text.exactOptional(),
      host: text,
      pid: count,
    })
    .exactOptional(),

  payload,
  headers: stringRecord.exactOptional(),
  task: z.strictObject({ id: text, description: text, source: text }).exactOptional(),
  github: z
    .strictObject({
      owner: text,
      repo: text,
      entityNumber: z.number().exactOptional(),
      entityType: z.enum(['issue', 'pr', 'comment']).exactOptional(),
    })
    .exactOptional(),
  metadata: jsonObject,
  tags: z.array(text),

  failure,
  firstFailure: failure,
  category: z.enum(categories),
  severity: z.enum(severities),
  recoverability: z.enum(recoverabilities),
  fingerprint: text,

  priority: z.enum(priorities),
  policy,
  attempts: count,
  retries: count,
  maxRetries: count,
  maxRetriesChosen: z.literal(true).exactOptional(),
  budgetSince: moment.exactOptional(),
  deferredSince: moment.exactOptional(),
  replays: count,
  retryAt: moment.exactOptional(),
  backoffMs: ms,
  expiresAt: moment.exactOptional(),

  state: z.enum(states),
  reason: z.enum(reasons).exactOptional(),
  lease: z.strictObject({ worker: text, epoch: count, expiresAt: moment }).exactOptional(),
  review: review.exactOptional(),
  archivedFrom: z.enum(states).exclude(['archived', 'retrying']).exactOptional(),

  failedAt: moment,
  deadLetteredAt: moment,
  updatedAt: moment,
  settledAt: moment.exactOptional(),

  history: z.array(historyEntry),
  historyOmitted: count,
  corrupt: text.exactOptional(),
})

/** A letter as it stands in JSON. */
export type LetterJson = z.infer<typeof letterSchema>

/** The letter as JSON. `letterFromJson` gives it back. */
export function letterToJson(letter: DeadLetter): LetterJson {
  const { bytes } = letter.payload
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return { ...letter, payload: { ...letter.payload, bytes: base64 } }
}

/** Reads what `letterToJson` wrote, from anyone. The problem names the path to the first thing that is wrong. */
export function letterFromJson(
  value: unknown,
): { ok: true; letter: DeadLetter } | { ok: false; problem: string } {
  try {
    const parsed = letterSchema.safeParse(value)
    if (!parsed.success) return { ok: false, problem: problemOf(parsed.error) }
    const { payload, ...rest } = parsed.data
    const bytes = new Uint8Array(Buffer.from(payload.bytes, 'base64'))
    const elsewhere = payload.reference !== undefined || payload.keyId !== undefined
    if (!elsewhere && payload.size !== bytes.byteLength)
      return { ok: false, problem: `payload.size: must be ${bytes.byteLength}, as the bytes are` }
    return { ok: true, letter: { ...rest, payload: { ...payload, bytes } } }
  } catch {
    return { ok: false, problem: 'it is nested too deep, or cannot be read' }
  }
}

function problemOf(error: z.ZodError): string {
  const issue = error.issues[0]
  if (!issue) return 'it is no letter'
  const path = issue.path.map(String).join('.')
  return path === '' ? issue.message : `${path}: ${issue.message}`
}

const maxJsonDepth = 500

/** Whether a letter can hold this JSON: there is room for it, and for an object around it. */
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

/** Schema and type say the same, down to which keys are optional; where they part, this line does not compile. */
type Told = Omit<DeadLetter, 'payload'> & { payload: Omit<Payload, 'bytes'> & { bytes: string } }
type Flat<T> = T extends Json[] | Failure | Failure[]
  ? T
  : T extends object
    ? { [K in keyof T]: Flat<T[K]> }
    : T
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Single<T> = { [K in Exclude<keyof T, 'causes'>]: T[K] }
const agree: [
  Same<Flat<LetterJson>, Flat<Told>>,
  Same<Single<z.infer<typeof failure>>, Single<Failure>>,
] = [true, true]
void agree
