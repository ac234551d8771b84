import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** What the refusals of SQS mean for whoever reads them, by the last part of their names. */
const refusals: Record<string, [code: ErrorCode, advice: string]> = {
  AccessDenied: ['MAILBOX_UNAVAILABLE', 'these credentials may not do what a mailbox must'],
  BatchRequestTooLong: ['TOO_LARGE', 'the message is too large for this queue'],
  CredentialsProviderError: ['MAILBOX_UNAVAILABLE', 'the SDK found no credentials'],
  ExpiredToken: ['MAILBOX_UNAVAILABLE', 'the credentials have expired'],
  InvalidMessageContents: ['INVALID_INPUT', 'the body has characters that SQS does not take'],
  NonExistentQueue: ['MAILBOX_UNAVAILABLE', 'there is no such queue'],
  OverLimit: ['MAILBOX_UNAVAILABLE', 'too many messages of this queue are out: settle some first'],
  PurgeQueueInProgress: ['MAILBOX_UNAVAILABLE', 'a queue is purged once a minute: try again then'],
  QueueDoesNotExist: ['MAILBOX_UNAVAILABLE', 'there is no such queue'],
  QueueDeletedRecently: ['MAILBOX_UNAVAILABLE', 'the queue was deleted within the last minute'],
}

/** A receipt that SQS no longer takes. */
const stale = ['ReceiptHandleIsInvalid', 'MessageNotInflight', 'InvalidParameterValue']

/** Turns whatever the client rejected with into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, queue: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  if (message === 'Region is missing')
    return new RedriveError(
      'INVALID_CONFIG',
      `sqs ${queue}: no region is known: put ?region=… behind the URL, or set AWS_REGION`,
      { cause: error },
    )
  const [code, advice] = refusals[wordOf(name)] ?? [
    'MAILBOX_UNAVAILABLE' as const,
    name === 'AbortError' || name === 'TimeoutError'
      ? 'there was no answer in time'
      : (unreachable(error) ?? 'the service failed'),
  ]
  return new RedriveError(code, `sqs ${queue}: ${advice} (${message || name})`, { cause: error })
}

export const isMissingQueue = (error: unknown): boolean =>
  error instanceof Error && /NonExistentQueue|QueueDoesNotExist/.test(error.name)

/** Somebody else created it meanwhile, with other attributes. */
export const isTakenQueue = (error: unknown): boolean =>
  error instanceof Error && /QueueNameExists|QueueAlreadyExists/.test(error.name)

export const isStale = (code: string | undefined): boolean => stale.includes(wordOf(code ?? ''))

/** Names come with and without `AWS.SimpleQueueService.` before them. */
function wordOf(name: string): string {
  return name
    .split('.')
    .at(-1)!
    .replace(/Exception$/, '')
}
