import type { Clock } from '../clock/clock.ts'
import type { Mailbox } from '../mailbox.ts'
import { openMailbox } from '../connect/mailbox.ts'
import type { Handler } from '../redelivery/run.ts'
import { contentTypeOf } from '../backends/http/post.ts'
import { traceHeadersOf } from './trace.ts'

/** The mailbox target of a queue. It comes from the configuration alone. */
export interface MailboxTarget {
  /** A URL for `openMailbox`: `redis://…#requests`. */
  url: string
}

/**
 * Runs letters by sending their payload unchanged to a mailbox: resolved means that the broker has
 * stored it. A repeated send has the same id, so that brokers with deduplication store one message.
 */
export function mailboxHandler(
  { url }: MailboxTarget,
  clock: Clock,
): Handler & { close(): Promise<void> } {
  let opening: Promise<Mailbox> | undefined
  const opened = (): Promise<Mailbox> => {
    opening ??= openMailbox(url, { clock }).catch((error: unknown) => {
      // The broker may be reachable at the next run.
      opening = undefined
      throw error
    })
    return opening
  }
  const handle: Handler = async ({ letter, attempt, idempotencyKey }) => {
    const mailbox = await opened()
    const { bytes, contentType } = letter.payload
    await mailbox.send(bytes, {
      id: idempotencyKey,
      // Headers of a letter may have any content. Those that the protocol forbids must not prevent
      // the send.
      contentType: contentTypeOf(contentType),
      headers: {
        'redrive-id': letter.id,
        'redrive-queue': letter.queue,
        'redrive-attempt': String(attempt),
        ...traceHeadersOf(letter),
      },
    })
  }
  const close = async (): Promise<void> => (await opening?.catch(() => undefined))?.close()
  return Object.assign(handle, { close })
}
