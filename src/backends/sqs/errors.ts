import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** Explanations of the errors of SQS, by the last part of their names. */
const refusals: Record<string, [code: ErrorCode, advice: string]> = {
  AccessDenied: ['MAILBOX_UNAVAILABLE', 'these credentials lack permissions that a mailbox needs'],
  BatchRequestTooLong: ['TOO_LARGE', 'the message is too large for this queue'],
  CredentialsProviderError: ['MAILBOX_UNAVAILABLE', 'the SDK found no credentials'],
  ExpiredToken: ['MAILBOX_UNAVAILABLE', 'the credentials have expired'],
  InvalidMessageContents: ['INVALID_INPUT', 'the body has characters that SQS does not allow'],
  NonExistentQueue: ['MAILBOX_UNAVAILABLE', 'the queue does not exist'],
  OverLimit: [
    'MAILBOX_UNAVAILABLE',
    'too many messages of this queue are in flight: settle some first',
  ],
  PurgeQueueInProgress: [
    'MAILBOX_UNAVAILABLE',
    'a queue can be purged once a minute: try again later',
  ],
  QueueDoesNotExist: ['MAILBOX_UNAVAILABLE', 'the queue does not exist'],
  QueueDeletedRecently: ['MAILBOX_UNAVAILABLE', 'the queue was deleted within the last minute'],
}

/** Errors for a receipt that is no longer valid. */
const stale = ['ReceiptHandleIsInvalid', 'MessageNotInflight', 'InvalidParameterValue']

/** Translates an error of the client. The only place that knows its errors. */
export function toRedriveError(error: unknown, queue: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  if (message === 'Region is missing')
    return new RedriveError(
      'INVALID_CONFIG',
      `sqs ${queue}: the region is unknown: add ?region=… to the URL, or set AWS_REGION`,
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

/** Whether somebody else created the queue meanwhile, with other attributes. */
export const isTakenQueue = (error: unknown): boolean =>
  error instanceof Error && /QueueNameExists|QueueAlreadyExists/.test(error.name)

export const isStale = (code: string | undefined): boolean => stale.includes(wordOf(code ?? ''))

/** Names come with and without the prefix `AWS.SimpleQueueService.`. */
function wordOf(name: string): string {
  return name
    .split('.')
    .at(-1)!
    .replace(/Exception$/, '')
}
