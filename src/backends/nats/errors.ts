import { JetStreamApiError } from '@nats-io/jetstream'
import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** What JetStream refuses with, by its own numbers, where it means more than that it is away. */
const refusals: Record<number, [code: ErrorCode, advice: string]> = {
  10002: ['MAILBOX_FULL', 'the account may keep no more: free some or raise its limit'],
  10023: ['MAILBOX_FULL', 'the server has no room left: free some or raise its limits'],
  10047: ['MAILBOX_FULL', 'the server has no room left: free some or raise its limits'],
  10054: ['TOO_LARGE', 'the stream takes no message so large'],
  10076: ['MAILBOX_UNAVAILABLE', 'JetStream is not enabled for this account'],
  10077: ['MAILBOX_FULL', 'the stream takes no more (maxMessages): receive some, or raise it'],
}

/** What the client's errors mean for whoever reads them. */
const silent = 'JetStream does not answer: it is not enabled, starts up, or the stream is gone'
const advice: Record<string, string> = {
  AuthorizationError: 'the server does not accept these credentials',
  JetStreamNotEnabled: silent,
  NoRespondersError: silent,
  PermissionViolationError: 'these credentials may not do what a mailbox must',
  TimeoutError: 'there was no answer in time',
}

/** Turns whatever the client rejected with into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const { name, message } = error instanceof Error ? error : new Error(String(error))
  const [code, what] = refusalOf(error) ?? [
    'MAILBOX_UNAVAILABLE' as const,
    advice[name] ?? advice[nameOf(error)] ?? unreachable(error) ?? 'the server failed',
  ]
  return new RedriveError(code, `nats ${place}: ${what} (${message || name})`, { cause: error })
}

/** A request that nobody answers is told as a failed request, with the reason inside. */
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

/** Whether a pull failed because somebody has deleted what it asks, before it or while it waited. */
export function isDeleted(error: unknown): boolean {
  const cause = error instanceof RedriveError ? error.cause : error
  return isMissing(cause) || (cause instanceof Error && cause.message === '409 Consumer Deleted')
}

/** Somebody else made it first, or made it otherwise. */
export function isTaken(error: unknown): boolean {
  return error instanceof JetStreamApiError && (error.code === 10058 || error.code === 10148)
}
