import { z } from 'zod'
import { toFailure } from '../letter/failure.ts'
import type { Failure, Payload } from '../letter/letter.ts'
import { lineage, originalIdOf, replaysOf } from '../letter/lineage.ts'
import { decodeText, kindOf } from '../letter/payload.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Message } from '../mailbox.ts'
import { ascii } from '../backends/ascii.ts'
import type { DeadFacts } from './events.ts'

/** A message that failed for good, with everything that is known about it. `decodePayload(body)` gives what was sent. */
export interface DeadMessage {
  readonly messageId: string
  readonly body: Payload
  readonly sourceMailbox: string
  readonly deliveryCount: number
  readonly lastError: string
  readonly lastErrorType: string
  readonly deadLetteredAt: Timestamp
  readonly firstReceivedAt: Timestamp
  readonly requestId?: string
  /** Where its sender wants the reply, by name. */
  readonly replyTo?: string
  readonly traceId?: string

  readonly enqueuedAt: Timestamp
  readonly headers: Readonly<Record<string, string>>
  /** The last error whole: code, status, stack, causes. */
  readonly failure: Failure
  /** Failures of single deliveries, oldest first, as far as the loop that dead-lettered it has seen them. */
  readonly history: readonly FailedAttempt[]
  /** When it failed for the first time, before any replay. */
  readonly firstFailedAt: Timestamp
  /** How often it was sent to its source again. */
  readonly replays: number
  /** Its id before the first replay. */
  readonly originalId: string
  /** Running it again by itself would end badly: it cannot be read, or it may end its worker. */
  readonly hopeless?: boolean
  /** Why it was parked, for instance. */
  readonly note?: string
}

export interface FailedAttempt {
  at: Timestamp
  error: string
  errorType: string
}

export interface FinalFailure {
  sourceMailbox: string
  failure: Failure
  requestId: string | undefined
  history: readonly FailedAttempt[]
  hopeless?: boolean
}

/** A message as it is received, or as it is seen when a queue is browsed. */
export type SeenMessage = Pick<
  Message,
  'id' | 'body' | 'headers' | 'deliveries' | 'enqueuedAt' | 'replyTo'
> & { firstReceivedAt?: Timestamp }

/** A message and what it died of. */
export function deadMessage(message: SeenMessage, ending: FinalFailure): DeadMessage {
  const { failure, requestId, history } = ending
  const { id, body, headers, deliveries, replyTo, enqueuedAt } = message
  const { firstReceivedAt = enqueuedAt } = message
  const traceId = traceparentIn(headers)?.split('-')[1]
  return Object.freeze({
    messageId: id,
    body,
    sourceMailbox: ending.sourceMailbox,
    deliveryCount: deliveries,
    lastError: failure.message,
    lastErrorType: failure.name,
    deadLetteredAt: failure.at,
    firstReceivedAt,
    enqueuedAt,
    headers,
    failure,
    history,
    ...pastOf(message, history[0]?.at ?? failure.at),
    ...(requestId === undefined ? {} : { requestId }),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(ending.hopeless ? { hopeless: true } : {}),
  })
}

/** The headers come from outside: what makes no sense counts as absent. */
function pastOf(
  { id, headers }: SeenMessage,
  failedAt: Timestamp,
): Pick<DeadMessage, 'replays' | 'originalId' | 'firstFailedAt'> {
  const first = toMs(headers[lineage.firstFailedAt] ?? '')
  return {
    replays: replaysOf(headers),
    originalId: originalIdOf(headers, id),
    firstFailedAt: Number.isNaN(first) ? failedAt : toTimestamp(first),
  }
}

/** The W3C traceparent. The header comes from outside: what makes no sense counts as absent. */
export function traceparentIn(headers: Readonly<Record<string, string>>): string | undefined {
  const said = headers['traceparent'] ?? ''
  return /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(said) ? said : undefined
}

export const envelopeType = 'application/vnd.redrive.dead-message+json'
/** A line of JSON, as a header or before the body, and the body as it is. */
export const slimEnvelopeType = 'application/vnd.redrive.dead-message'

/** The message as JSON, in which a textual body stays legible. */
export function toEnvelope({ body, ...rest }: DeadMessage): string {
  return JSON.stringify({ v: 1, ...rest, body: writtenBody(body) })
}

const slimText = 500

/** The message with little around it, for bodies that are nearly as large as a mailbox takes. What it failed of is told in short. */
export function toSlimEnvelope(dead: DeadMessage): Uint8Array {
  return Buffer.concat([Buffer.from(`${shortly(dead)}\n`), dead.body.bytes])
}

const besideBody = 'redrive-dead-message'
/** A header has no more. */
const maxBeside = 8192

/** For bodies as large as a mailbox takes: the same line of JSON as a header. Undefined: it is too long for one. */
export function besideBodyOf(dead: DeadMessage): Record<string, string> | undefined {
  const told = ascii(shortly(dead))
  return told.length > maxBeside ? undefined : { [besideBody]: told }
}

function shortly({ body, failure, ...rest }: DeadMessage): string {
  const { stack: _, ...short } = failure
  return JSON.stringify({
    v: 1,
    ...rest,
    lastError: rest.lastError.slice(0, slimText),
    failure: { ...short, message: short.message.slice(0, slimText), causes: [] },
    history: [],
    body: { contentType: body.contentType, encoding: 'utf8', data: '' },
  })
}

function writtenBody({ bytes, contentType }: Payload): z.infer<typeof envelopeBody> {
  if (kindOf(contentType) !== 'bytes')
    try {
      return { contentType, encoding: 'utf8', data: decodeText(bytes, 'text/plain') }
    } catch {
      // It is not the text that it says it is.
    }
  return { contentType, encoding: 'base64', data: Buffer.from(bytes).toString('base64') }
}

const text = z.string()
const count = z.int().nonnegative()
const moment = z.string().refine((at) => !Number.isNaN(toMs(at)), 'must be a moment')
const envelopeBody = z.object({
  contentType: text,
  encoding: z.enum(['utf8', 'base64']),
  data: text,
})
/** Unlike that of a letter it may say more than we know: a newer version may have written it. */
const failure = z.object({
  name: text,
  message: text,
  code: text.exactOptional(),
  status: z.int().exactOptional(),
  retryAfterMs: z.number().nonnegative().exactOptional(),
  detail: text.exactOptional(),
  hint: text.exactOptional(),
  stack: text.exactOptional(),
  get causes() {
    return z.array(failure)
  },
  at: moment,
})
const envelope = z.object({
  v: z.literal(1),
  // Anybody may have sent it, and what was written must be read.
  messageId: text,
  body: envelopeBody,
  sourceMailbox: text.min(1),
  deliveryCount: count,
  lastError: text,
  lastErrorType: text,
  deadLetteredAt: moment,
  firstReceivedAt: moment,
  requestId: text.exactOptional(),
  replyTo: text.exactOptional(),
  traceId: text.exactOptional(),
  enqueuedAt: moment,
  headers: z.record(text, text),
  failure,
  history: z.array(z.object({ at: moment, error: text, errorType: text })),
  firstFailedAt: moment,
  replays: count,
  originalId: text,
  hopeless: z.boolean().exactOptional(),
  note: text.exactOptional(),
})

/**
 * What a message of a dead letter queue is about. One that no loop of ours has written, as brokers move them by themselves, is
 * taken as the dead message: its bytes are kept, and little more is known about it. Never throws.
 */
export function readDeadMessage(message: SeenMessage, mailbox: string): DeadMessage {
  return enveloped(message) ?? foreign(message, mailbox)
}

function enveloped({ body, headers }: SeenMessage): DeadMessage | undefined {
  const isSlim = body.contentType === slimEnvelopeType
  if (!isSlim && body.contentType !== envelopeType) return undefined
  const beside = isSlim ? headers[besideBody] : undefined
  const lineEnd = isSlim ? body.bytes.indexOf(0x0a) : body.bytes.byteLength
  const end = beside === undefined ? lineEnd : -1
  try {
    const told = beside ?? decodeText(body.bytes.subarray(0, end), envelopeType)
    const { v: _, body: written, ...rest } = envelope.parse(JSON.parse(told))
    const bytes = isSlim
      ? body.bytes.slice(end + 1)
      : new Uint8Array(Buffer.from(written.data, written.encoding))
    const { contentType } = written
    return Object.freeze({
      ...rest,
      body: { bytes, contentType, size: bytes.byteLength, version: 1 },
    })
  } catch {
    return undefined
  }
}

function foreign(message: SeenMessage, sourceMailbox: string): DeadMessage {
  const error = new Error('it came without an account of what it failed of')
  const unknown = toFailure(error, message.enqueuedAt)
  delete unknown.stack
  return deadMessage(message, {
    sourceMailbox,
    failure: { ...unknown, name: 'unknown' },
    requestId: undefined,
    history: [],
  })
}

/** What events say about a dead message: where it is, and how long it has been dead. */
export function factsOf(
  dead: DeadMessage,
  mailbox: string,
  deliveries: number,
  nowMs: number,
): DeadFacts {
  const { messageId, sourceMailbox, requestId, deadLetteredAt } = dead
  return {
    mailbox,
    messageId,
    sourceMailbox,
    ...(requestId === undefined ? {} : { requestId }),
    deliveries,
    ageSeconds: Math.max(0, (nowMs - toMs(deadLetteredAt)) / 1000),
  }
}
