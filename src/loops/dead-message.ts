import { z } from 'zod'
import { toFailure } from '../letter/failure.ts'
import type { Failure, Payload } from '../letter/letter.ts'
import { lineage, originalIdOf, replaysOf } from '../letter/lineage.ts'
import { decodeText, kindOf } from '../letter/payload.ts'
import { toMs, toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Message } from '../mailbox.ts'
import { ascii } from '../backends/ascii.ts'
import type { DeadFacts } from './events.ts'

/**
 * A message that failed permanently, with all that is known about it. `decodePayload(body)` returns
 * the original value.
 */
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
  /** The name of the mailbox to which the sender wants the reply. */
  readonly replyTo?: string
  readonly traceId?: string

  readonly enqueuedAt: Timestamp
  readonly headers: Readonly<Record<string, string>>
  /** The complete last error: code, status, stack, causes. */
  readonly failure: Failure
  /**
   * Failures of single deliveries, oldest first, as far as the loop that dead-lettered the message
   * has seen them.
   */
  readonly history: readonly FailedAttempt[]
  /** When the message failed for the first time, before any replay. */
  readonly firstFailedAt: Timestamp
  /** How often the message was replayed to its source. */
  readonly replays: number
  /** The id of the message before its first replay. */
  readonly originalId: string
  /**
   * True if running the message again would not help: it cannot be decoded, or it may kill its
   * worker.
   */
  readonly hopeless?: boolean
  /** A remark for people, such as why the message was parked. */
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

/** A received message, or one that was seen by browsing a queue. */
export type SeenMessage = Pick<
  Message,
  'id' | 'body' | 'headers' | 'deliveries' | 'enqueuedAt' | 'replyTo'
> & { firstReceivedAt?: Timestamp }

/** Combines a message with its final failure. */
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
    ...readLineage(message, history[0]?.at ?? failure.at),
    ...(requestId === undefined ? {} : { requestId }),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(ending.hopeless ? { hopeless: true } : {}),
  })
}

/** Reads the lineage headers. They come from outside: invalid values count as absent. */
function readLineage(
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

/** The W3C traceparent. The header comes from outside: an invalid value counts as absent. */
export function traceparentIn(headers: Readonly<Record<string, string>>): string | undefined {
  const value = headers['traceparent'] ?? ''
  return /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value) ? value : undefined
}

export const envelopeType = 'application/vnd.redrive.dead-message+json'
/** One line of JSON, as a header or in front of the body, plus the body unchanged. */
export const slimEnvelopeType = 'application/vnd.redrive.dead-message'

/** The message as JSON, in which a textual body stays readable. */
export function toEnvelope({ body, ...rest }: DeadMessage): string {
  return JSON.stringify({ v: 1, ...rest, body: encodeBody(body) })
}

const maxSlimChars = 500

/**
 * The message with a short summary in front, for bodies near the size limit of a mailbox. The error
 * is shortened.
 */
export function toSlimEnvelope(dead: DeadMessage): Uint8Array {
  return Buffer.concat([Buffer.from(`${toSummaryJson(dead)}\n`), dead.body.bytes])
}

const summaryHeader = 'redrive-dead-message'
/** The maximum length of a header. */
const maxSummaryHeader = 8192

/**
 * The summary as a header, for bodies at the size limit of a mailbox. Undefined if it is too long
 * for a header.
 */
export function toSummaryHeader(dead: DeadMessage): Record<string, string> | undefined {
  const summaryJson = ascii(toSummaryJson(dead))
  return summaryJson.length > maxSummaryHeader ? undefined : { [summaryHeader]: summaryJson }
}

function toSummaryJson({ body, failure, ...rest }: DeadMessage): string {
  const { stack: _, ...short } = failure
  return JSON.stringify({
    v: 1,
    ...rest,
    lastError: rest.lastError.slice(0, maxSlimChars),
    failure: { ...short, message: short.message.slice(0, maxSlimChars), causes: [] },
    history: [],
    body: { contentType: body.contentType, encoding: 'utf8', data: '' },
  })
}

function encodeBody({ bytes, contentType }: Payload): z.infer<typeof envelopeBody> {
  if (kindOf(contentType) !== 'bytes')
    try {
      return { contentType, encoding: 'utf8', data: decodeText(bytes, 'text/plain') }
    } catch {
      // The body does not match its content type.
    }
  return { contentType, encoding: 'base64', data: Buffer.from(bytes).toString('base64') }
}

const string = z.string()
const count = z.int().nonnegative()
const timestamp = z.string().refine((at) => !Number.isNaN(toMs(at)), 'must be a timestamp')
const envelopeBody = z.object({
  contentType: string,
  encoding: z.enum(['utf8', 'base64']),
  data: string,
})
/**
 * Unlike the failure of a letter, this one may have unknown keys: a newer version may have written
 * it.
 */
const failure = z.object({
  name: string,
  message: string,
  code: string.exactOptional(),
  status: z.int().exactOptional(),
  retryAfterMs: z.number().nonnegative().exactOptional(),
  detail: string.exactOptional(),
  hint: string.exactOptional(),
  stack: string.exactOptional(),
  get causes() {
    return z.array(failure)
  },
  at: timestamp,
})
const envelope = z.object({
  v: z.literal(1),
  // Anybody may have sent the message, and whatever was written must be readable.
  messageId: string,
  body: envelopeBody,
  sourceMailbox: string.min(1),
  deliveryCount: count,
  lastError: string,
  lastErrorType: string,
  deadLetteredAt: timestamp,
  firstReceivedAt: timestamp,
  requestId: string.exactOptional(),
  replyTo: string.exactOptional(),
  traceId: string.exactOptional(),
  enqueuedAt: timestamp,
  headers: z.record(string, string),
  failure,
  history: z.array(z.object({ at: timestamp, error: string, errorType: string })),
  firstFailedAt: timestamp,
  replays: count,
  originalId: string,
  hopeless: z.boolean().exactOptional(),
  note: string.exactOptional(),
})

/**
 * Reads a message of a dead letter queue. A message without our envelope, such as one that a broker
 * has moved by itself, is taken as the dead message: its bytes are kept, and little else is known
 * about it. Never throws.
 */
export function readDeadMessage(message: SeenMessage, mailbox: string): DeadMessage {
  return parseEnvelope(message) ?? fromForeign(message, mailbox)
}

function parseEnvelope({ body, headers }: SeenMessage): DeadMessage | undefined {
  const isSlim = body.contentType === slimEnvelopeType
  if (!isSlim && body.contentType !== envelopeType) return undefined
  const summary = isSlim ? headers[summaryHeader] : undefined
  const lineEnd = isSlim ? body.bytes.indexOf(0x0a) : body.bytes.byteLength
  const end = summary === undefined ? lineEnd : -1
  try {
    const summaryJson = summary ?? decodeText(body.bytes.subarray(0, end), envelopeType)
    const { v: _, body: written, ...rest } = envelope.parse(JSON.parse(summaryJson))
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

function fromForeign(message: SeenMessage, sourceMailbox: string): DeadMessage {
  const error = new Error('the message came without information about its failure')
  const unknown = toFailure(error, message.enqueuedAt)
  delete unknown.stack
  return deadMessage(message, {
    sourceMailbox,
    failure: { ...unknown, name: 'unknown' },
    requestId: undefined,
    history: [],
  })
}

/** The event fields of a dead message: where it is, and how long it has been dead. */
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
