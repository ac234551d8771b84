import { createHash } from 'node:crypto'
import type { Payload } from '../letter/letter.ts'
import { lineage } from '../letter/lineage.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Mailbox, SendOptions } from '../mailbox.ts'
import { carried, carriedType } from '../backends/bounds.ts'

/** As much of a dead message as its replay carries. */
export interface ReplayableMessage {
  readonly messageId: string
  /** Its id before the first replay. */
  readonly originalId: string
  readonly sourceMailbox: string
  readonly firstFailedAt: Timestamp
  /** How often it was replayed before. */
  readonly replays: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Payload
  /** Where the reply should go, by the name of a mailbox. */
  readonly replyTo?: string
}

/**
 * Sends a dead message to a mailbox again, with its headers, its reply address and its lineage: how often it was replayed, when it
 * first failed, and its first id. `transform` gives the body to send in place of the one that failed. Answers with the id of the new
 * message. Sent twice it is one message, where the broker deduplicates.
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
  return mailbox.send(body.bytes, { ...send, contentType: carriedType(body.contentType) })
}

/** Headers and ids come from outside, and may contain line breaks. */
function carriedHeaders(headers: Record<string, string>): Record<string, string> {
  const all = Object.entries(headers).map(([name, text]) => [name, carried(text)] as const)
  return Object.fromEntries(all)
}

/**
 * Never the id that the message had: the broker may still know that one, and would drop the replay as a repeat. The body is part of it,
 * since senders may use an id again for something else.
 */
function replayId(message: ReplayableMessage): string {
  const { sourceMailbox, originalId, messageId, replays, body } = message
  const life = JSON.stringify([sourceMailbox, originalId, messageId, replays + 1])
  return createHash('sha256').update(life).update(body.bytes).digest('hex').slice(0, 40)
}
