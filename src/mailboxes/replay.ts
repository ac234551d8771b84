import { createHash } from 'node:crypto'
import type { Payload } from '../letter/letter.ts'
import { lineage } from '../letter/lineage.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Mailbox, SendOptions } from '../mailbox.ts'
import { toPortable, toPortableType } from '../backends/bounds.ts'

/** The part of a dead message that its replay carries. */
export interface ReplayableMessage {
  readonly messageId: string
  /** The id before the first replay. */
  readonly originalId: string
  readonly sourceMailbox: string
  readonly firstFailedAt: Timestamp
  /** The number of earlier replays. */
  readonly replays: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Payload
  /** The name of the mailbox for the reply. */
  readonly replyTo?: string
}

/**
 * Sends a dead message to a mailbox, with its headers, its reply address and its lineage: the
 * number of replays, the first failure and the first id. `transform` returns the body to send
 * instead of the one that failed. Returns the id of the new message. Sending twice results in one
 * message, where the broker deduplicates.
 */
export async function sendReplay(
  mailbox: Mailbox,
  message: ReplayableMessage,
  transform?: () => unknown,
): Promise<string> {
  const { replyTo, body } = message
  const send: SendOptions = {
    id: replayId(message),
    headers: carriedHeaders({
      ...message.headers,
      [lineage.replays]: String(message.replays + 1),
      [lineage.firstFailedAt]: message.firstFailedAt,
      [lineage.originalId]: message.originalId,
    }),
    ...(replyTo === undefined ? {} : { replyTo }),
  }
  if (transform) return mailbox.send(await transform(), send)
  return mailbox.send(body.bytes, { ...send, contentType: toPortableType(body.contentType) })
}

/** Headers and ids come from outside, and may contain line breaks. */
function carriedHeaders(headers: Record<string, string>): Record<string, string> {
  const all = Object.entries(headers).map(([name, text]) => [name, toPortable(text)] as const)
  return Object.fromEntries(all)
}

/**
 * A new id: the broker may still know the old one, and would drop the replay as a duplicate. It
 * depends on the body, since senders may reuse an id for another body.
 */
function replayId(message: ReplayableMessage): string {
  const { sourceMailbox, originalId, messageId, replays, body } = message
  const life = JSON.stringify([sourceMailbox, originalId, messageId, replays + 1])
  return createHash('sha256').update(life).update(body.bytes).digest('hex').slice(0, 40)
}
