import { createHash } from 'node:crypto'
import { checkKeys } from '../check/keys.ts'
import { originalIdOf, replaysOf } from '../letter/lineage.ts'
import type { Payload } from '../letter/letter.ts'
import { decodePayload } from '../letter/payload.ts'
import type { ForeignLetter, Keep } from './tap.ts'
import type { Captured, Capturer } from '../capture/capture.ts'
import { type CaptureContext } from '../capture/context.ts'
import { isQueueName } from '../check/queue-name.ts'
import { messageCapture, thrownOf } from '../capture/mailbox.ts'

export interface ForeignOptions {
  /** The queue of the letter. Default: the source of the message. */
  queue?: string
  /** Further fields of the letter: priority, tags, lane. */
  context?: CaptureContext
  /**
   * After this many returns to the source, the letter gets a note that further returns will not
   * help. Default: 3.
   */
  maxReplays?: number
}

/**
 * Converts a dead letter of another system into a capture. The letter is parked: it returns to its
 * source only if a person decides so. Captured again, after a crash between capture and
 * acknowledgement, it is the same letter, whatever its state. If the message dies again, it becomes
 * a new letter, unless the first one is still open.
 */
export function foreignCapture(
  foreign: ForeignLetter,
  { queue = legalName(foreign.source), context = {}, maxReplays = 3 }: ForeignOptions = {},
): Captured {
  const { source, reason, messageId, headers, enqueuedAt, failedAt, death } = foreign
  // The count comes from headers, which may contain anything.
  const isCount = Number.isSafeInteger(foreign.deliveries) && foreign.deliveries >= 0
  const deliveries = isCount ? foreign.deliveries : 1
  const body = payloadOf(foreign)
  const replays = replaysOf(headers)
  const origin = { ...foreign.origin, contentType: foreign.contentType }
  return messageCapture(
    {
      messageId,
      body,
      sourceMailbox: source,
      deliveryCount: deliveries,
      headers,
      replays,
      originalId: originalIdOf(headers, messageId),
      hopeless: true,
      ...(death === undefined ? {} : { death }),
      ...(enqueuedAt === undefined ? {} : { enqueuedAt }),
      ...(failedAt === undefined ? {} : { firstFailedAt: failedAt }),
      ...(replays < maxReplays
        ? {}
        : { note: `returned to its source ${replays} times, and it died each time` }),
    },
    thrownBy(foreign),
    {
      queue,
      context: { ...context, metadata: { ...context.metadata, reason, origin } },
    },
  )
}

export interface ForeignLetterOptions extends Pick<ForeignOptions, 'queue' | 'maxReplays'> {
  /** Further fields of a letter: priority, tags, lane. */
  context?: (foreign: ForeignLetter) => CaptureContext
}

/** Returns the `keep` function of a tap: it stores foreign letters as letters of this queue. */
export function keepForeign(
  capturer: Pick<Capturer, 'capture'>,
  given: ForeignLetterOptions = {},
): Keep {
  checkKeys('foreignLetters options', given, ['queue', 'context', 'maxReplays'], {
    code: 'INVALID_CONFIG',
  })
  const { context, ...options } = given
  return async (foreign) => {
    const said = context ? { context: context(foreign) } : {}
    await capturer.capture(foreignCapture(foreign, { ...options, ...said }))
  }
}

/** The error of the consumer or, if nobody recorded it, the reason that the broker gave. */
function thrownBy({ error, reason, failedAt = '' }: ForeignLetter): Error {
  return thrownOf({ name: 'DeadLettered', message: reason, ...error, causes: [], at: failedAt })
}

/**
 * Falls back to plain text, then to bytes, if the body does not match its content type: a usual
 * reason to die, which must not prevent returning the letter, edited or not.
 */
function payloadOf({ body, contentType }: ForeignLetter): Payload {
  const payload = { bytes: body, size: body.byteLength, version: 1 }
  for (const type of [contentType, 'text/plain; charset=utf-8'])
    try {
      decodePayload({ ...payload, contentType: type })
      return { ...payload, contentType: type }
    } catch {
      // The body is not of this type.
    }
  return { ...payload, contentType: 'application/octet-stream' }
}

const maxReadable = 180

/** Brokers allow names that queues cannot have. The hash makes shortened names unique. */
function legalName(source: string): string {
  if (isQueueName(source)) return source
  const readable = source
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, maxReadable)
    .toWellFormed()
  return `${readable}-${createHash('sha256').update(source).digest('hex').slice(0, 12)}`
}
