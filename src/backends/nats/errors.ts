import { JetStreamApiError } from '@nats-io/jetstream'
import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** Error codes of JetStream that mean more than an unreachable server. */
const refusals: Record<number, [code: ErrorCode, advice: string]> = {
  10002: ['MAILBOX_FULL', 'the account has no storage left: delete messages or raise its limit'],
  10023: ['MAILBOX_FULL', 'the server has no storage left: delete messages or raise its limits'],
  10047: ['MAILBOX_FULL', 'the server has no storage left: delete messages or raise its limits'],
  10054: ['TOO_LARGE', 'the message exceeds the maximum size of the stream'],
  10076: ['MAILBOX_UNAVAILABLE', 'JetStream is not enabled for this account'],
  10077: [
    'MAILBOX_FULL',
    'the stream is full (maxMessages): receive some messages, or raise the limit',
  ],
}

/** Explanations of the errors of the client. */
const silent =
  'JetStream does not answer: it is not enabled, is starting, or the stream was deleted'
const advice: Record<string, string> = {
  AuthorizationError: 'the server does not accept these credentials',
  JetStreamNotEnabled: silent,
  NoRespondersError: silent,
  PermissionViolationError: 'these credentials lack permissions that a mailbox needs',
  TimeoutError: 'there was no answer in time',
}

/** Translates an error of the client. The only place that knows its errors. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  const [code, what] = refusalOf(error) ?? [
    'MAILBOX_UNAVAILABLE' as const,
    advice[name] ?? advice[nameOf(error)] ?? unreachable(error) ?? 'the server failed',
  ]
  return new RedriveError(code, `nats ${place}: ${what} (${message || name})`, { cause: error })
}

/** A request without an answer is reported as a failed request, with the reason as its cause. */
function nameOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error ? cause.name : ''
}

function refusalOf(error: unknown): [ErrorCode, string] | undefined {
  return error instanceof JetStreamApiError ? refusals[error.code] : undefined
}

export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && (error.code === 10059 || error.code === 10014)
}

/** Whether a pull failed because its stream or consumer was deleted. */
export function isDeleted(error: unknown): boolean {
  const cause = error instanceof RedriveError ? error.cause : error
  return isMissing(cause) || (cause instanceof Error && cause.message === '409 Consumer Deleted')
}

/** Whether the name is already in use, possibly with other settings. */
export function isTaken(error: unknown): boolean {
  return error instanceof JetStreamApiError && (error.code === 10058 || error.code === 10148)
}
