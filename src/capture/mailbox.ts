import { createHash } from 'node:crypto'
import type { Failure, Payload } from '../letter/letter.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import { never } from '../policy/backoff.ts'
import type { Captured } from './capture.ts'
import { checkContext, type CaptureContext } from './context.ts'
import { checkQueueName } from '../check/queue-name.ts'

/** The part of a dead message that its letter stores. */
export interface FailedMessage {
  messageId: string
  body: Payload
  sourceMailbox: string
  deliveryCount: number
  /** Timestamps are absent if the broker does not provide them. */
  enqueuedAt?: Timestamp
  firstReceivedAt?: Timestamp
  firstFailedAt?: Timestamp
  headers: Readonly<Record<string, string>>
  requestId?: string
  replyTo?: string
  /** How often the message was returned to its source. */
  replays: number
  originalId: string
  /** Distinguishes this failure from others of the same message without a replay in between. */
  death?: string
  /**
   * True: the message must not be retried automatically. It cannot be parsed, or it may crash its
   * worker.
   */
  hopeless?: boolean
  note?: string
}

export interface MessageCapture {
  /** The queue of the letter. Default: the name of the mailbox. */
  queue?: string
  /** Context of the capture: a priority, tags, a lane. */
  context?: CaptureContext
}

/**
 * The capture of a message and its error. After a crash between the capture and the
 * acknowledgement, the same message gives the same letter: by its id, in any state, and by its
 * dedupeKey if the broker lost the time of sending.
 */
export function messageCapture(
  message: FailedMessage,
  thrown: unknown,
  { queue = message.sourceMailbox, context = {} }: MessageCapture = {},
): Captured {
  checkContext(context)
  const { sourceMailbox: mailbox, messageId, deliveryCount: deliveries } = message
  const { enqueuedAt, firstReceivedAt, firstFailedAt } = message
  const { replyTo, requestId, headers, replays, originalId } = message
  const key = messageKey(message)
  const merged: CaptureContext = {
    id: letterId(messageKey(message, message.death), enqueuedAt ?? firstFailedAt),
    dedupeKey: key,
    attempts: deliveries,
    headers: { ...headers },
    by: `mailbox ${mailbox}`,
    ...(firstFailedAt === undefined ? {} : { failedAt: firstFailedAt }),
    ...(headers['traceparent'] === undefined ? {} : { traceparent: headers['traceparent'] }),
    ...(message.hopeless ? { policy: never() } : {}),
    ...context,
    metadata: {
      ...(replays > 0 ? { replays, originalId } : {}),
      ...(message.note === undefined ? {} : { note: message.note }),
      ...context.metadata,
    },
  }
  return {
    queue: checkQueueName(queue),
    source: {
      kind: 'mailbox',
      mailbox,
      messageId,
      ...(replyTo === undefined ? {} : { replyTo }),
      ...(requestId === undefined ? {} : { requestId }),
      deliveries,
      ...(enqueuedAt === undefined ? {} : { enqueuedAt }),
      ...(firstReceivedAt === undefined ? {} : { firstReceivedAt }),
    },
    payload: { ...message.body, version: 1 },
    thrown,
    context: merged,
    replays,
  }
}

/**
 * The key of a message: the same for every delivery, another one after a replay. The body is part
 * of the key because senders may reuse an id for another message.
 */
export function messageKey(
  message: Pick<FailedMessage, 'sourceMailbox' | 'messageId' | 'replays' | 'body'>,
  death?: string,
): string {
  const { sourceMailbox, messageId, replays, body } = message
  const parts = [sourceMailbox, messageId, replays]
  return createHash('sha256')
    .update(JSON.stringify(death === undefined ? parts : [...parts, death]))
    .update(body.bytes)
    .digest('hex')
    .slice(0, 40)
}

/**
 * An id in the form of a UUIDv7: the time of sending, so that ids sort by time, and 74 bits of the
 * key.
 */
export function letterId(key: string, sentAt: Timestamp = ''): string {
  const sentMs = toMs(sentAt)
  const time = (Number.isNaN(sentMs) ? 0 : sentMs).toString(16).padStart(12, '0').slice(-12)
  const variant = ((Number.parseInt(key.slice(3, 4), 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${key.slice(0, 3)}-${variant}${key.slice(4, 7)}-${key.slice(7, 19)}`
}

/** An error that `toFailure` converts back to this failure. */
export function thrownOf({ message, stack, causes, ...rest }: Failure): Error {
  const error = Object.assign(new Error(message), rest)
  if (causes.length > 0) Object.assign(error, { errors: causes.map(thrownOf) })
  if (stack === undefined) delete error.stack
  else error.stack = stack
  return error
}
