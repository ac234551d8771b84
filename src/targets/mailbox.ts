import type { Clock } from '../clock/clock.ts'
import type { Mailbox } from '../mailbox.ts'
import { openMailbox } from '../connect/mailbox.ts'
import type { Handler } from '../redelivery/run.ts'
import { contentTypeOf, traceparentOf } from '../backends/http/post.ts'

/** The mailbox that letters of a queue are sent to. It comes from the configuration alone. */
export interface MailboxTarget {
  /** As `openMailbox` takes it: `redis://…#requests`. */
  url: string
}

/**
 * Runs letters by sending their payload, byte for byte, to a mailbox: resolved means that the broker has it. A repeat has the same id, so
 * that brokers that know ids keep one.
 */
export function mailboxHandler(
  { url }: MailboxTarget,
  clock: Clock,
): Handler & { close(): Promise<void> } {
  let opening: Promise<Mailbox> | undefined
  const opened = (): Promise<Mailbox> => {
    opening ??= openMailbox(url, { clock }).catch((error: unknown) => {
      // The broker may be there at the next run.
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
      // Who made the letter may have said anything. What no wire carries must not keep it from being sent.
      contentType: contentTypeOf(contentType),
      headers: {
        'redrive-id': letter.id,
        'redrive-queue': letter.queue,
        'redrive-attempt': String(attempt),
        ...traceparentOf(letter.traceparent),
      },
    })
  }
  const close = async (): Promise<void> => (await opening?.catch(() => undefined))?.close()
  return Object.assign(handle, { close })
}
