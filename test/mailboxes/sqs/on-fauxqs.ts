import type { FauxqsServer } from 'fauxqs'
import type { Mailbox } from '../../../src/mailbox.ts'
import { sqsMailbox, type SqsMailboxOptions } from '../../../src/mailboxes/sqs/sqs.ts'

/** Not checked by the server. */
export const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }

/** A mailbox in an SQS-compatible server in this process. */
export function onFauxqs(
  { port }: FauxqsServer,
  options: Omit<SqsMailboxOptions, 'url'> & { url?: string },
): Mailbox {
  const url = `sqs://127.0.0.1:${port}?region=us-east-1`
  return sqsMailbox({ url, connection: { credentials }, ...options })
}
