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
  /** The queue of the letter. Where it lay dead unless said. */
  queue?: string
  /** What else to say about it: a priority, tags, a lane. */
  context?: CaptureContext
  /** At so many times that it was sent back and died again, the letter says that this is enough. 3 unless said. */
  maxReplays?: number
}

/**
 * A dead letter of another system, ready to capture. It is parked: nothing is sent back unless a person says so. Captured again, after a
 * crash between the capture and the acknowledgement, it is the same letter, whatever became of it. When the message dies again, it is another
 * one, unless the first is still open.
 */
export function foreignCapture(
  foreign: ForeignLetter,
  { queue = legalName(foreign.source), context = {}, maxReplays = 3 }: ForeignOptions = {},
): Captured {
  const { source, reason, messageId, headers, enqueuedAt, failedAt, death } = foreign
  // Whoever writes headers may write there what they like.
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
        : { note: `sent back ${replays} times, and it died each time` }),
    },
    thrownBy(foreign),
    {
      queue,
      context: { ...context, metadata: { ...context.metadata, reason, origin } },
    },
  )
}

export interface ForeignLetterOptions extends Pick<ForeignOptions, 'queue' | 'maxReplays'> {
  /** What to say about a letter beside its error: a priority, tags, a lane. */
  context?: (foreign: ForeignLetter) => CaptureContext
}

/** For a tap: keeps what it reads as letters. */
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

/** What its consumer died of, or, where nobody tells, why the broker gave it up. */
function thrownBy({ error, reason, failedAt = '' }: ForeignLetter): Error {
  return thrownOf({ name: 'DeadLettered', message: reason, ...error, causes: [], at: failedAt })
}

/** Bytes that are not what they are said to be are a usual reason to die. They must not keep the letter from being sent back, edited or not. */
function payloadOf({ body, contentType }: ForeignLetter): Payload {
  const payload = { bytes: body, size: body.byteLength, version: 1 }
  for (const type of [contentType, 'text/plain; charset=utf-8'])
    try {
      decodePayload({ ...payload, contentType: type })
      return { ...payload, contentType: type }
    } catch {
      // Not that, then.
    }
  return { ...payload, contentType: 'application/octet-stream' }
}

const maxReadable = 180

/** Brokers take names that queues cannot have. The hash keeps such names apart. */
function legalName(source: string): string {
  if (isQueueName(source)) return source
  const readable = source
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, maxReadable)
    .toWellFormed()
  return `${readable}-${createHash('sha256').update(source).digest('hex').slice(0, 12)}`
}
