import { createHash } from 'node:crypto'
import type { Failure, Payload } from '../letter/letter.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import { never } from '../policy/backoff.ts'
import type { Captured } from './capture.ts'
import { checkContext, type CaptureContext } from './context.ts'
import { checkQueueName } from '../check/queue-name.ts'

/** As much of a message that failed for good as its letter says about it. */
export interface FailedMessage {
  messageId: string
  body: Payload
  sourceMailbox: string
  deliveryCount: number
  /** Moments are absent where the broker does not tell. */
  enqueuedAt?: Timestamp
  firstReceivedAt?: Timestamp
  firstFailedAt?: Timestamp
  headers: Readonly<Record<string, string>>
  requestId?: string
  replyTo?: string
  /** How often it was sent to its source again. */
  replays: number
  originalId: string
  /** Tells this death from others of the same message in the same life. */
  death?: string
  /** Running it again by itself would end badly: it cannot be read, or it may end its worker. */
  hopeless?: boolean
  note?: string
}

export interface MessageCapture {
  /** The queue of the letter. The name of the mailbox unless said. */
  queue?: string
  /** What else to say about it: a priority, tags, a lane. */
  context?: CaptureContext
}

/**
 * A message and the error it ended with, ready for the door. Captured again, after a crash between the capture and the
 * acknowledgement, it is the same letter: by its id, whatever became of it, and by its dedupeKey, where the broker forgot
 * when the message was sent.
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
  const said: CaptureContext = {
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
    context: said,
    replays,
  }
}

/**
 * One message, one key: the same for every delivery of it, another one once it was replayed. The body is part of it, since
 * senders may use an id again for something else.
 */
export function messageKey(
  message: Pick<FailedMessage, 'sourceMailbox' | 'messageId' | 'replays' | 'body'>,
  death?: string,
): string {
  const { sourceMailbox, messageId, replays, body } = message
  const life = [sourceMailbox, messageId, replays]
  return createHash('sha256')
    .update(JSON.stringify(death === undefined ? life : [...life, death]))
    .update(body.bytes)
    .digest('hex')
    .slice(0, 40)
}

/** A UUIDv7 by its form: the moment of sending, so that it sorts among others, and 74 bits of the key. */
export function letterId(key: string, sentAt: Timestamp = ''): string {
  const sentMs = toMs(sentAt)
  const time = (Number.isNaN(sentMs) ? 0 : sentMs).toString(16).padStart(12, '0').slice(-12)
  const variant = ((Number.parseInt(key.slice(3, 4), 16) & 0x3) | 0x8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${key.slice(0, 3)}-${variant}${key.slice(4, 7)}-${key.slice(7, 19)}`
}

/** An error that `toFailure` reads as the failure that came as data. */
export function thrownOf({ message, stack, causes, ...rest }: Failure): Error {
  const error = Object.assign(new Error(message), rest)
  if (causes.length > 0) Object.assign(error, { errors: causes.map(thrownOf) })
  if (stack === undefined) delete error.stack
  else error.stack = stack
  return error
}
