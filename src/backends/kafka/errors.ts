import { findErrorBy } from '@platformatic/kafka'
import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** What Kafka refuses with, by its own names, and what that means for whoever reads it. */
const refusals: Record<string, [code: ErrorCode, advice: string]> = {
  MESSAGE_TOO_LARGE: ['TOO_LARGE', 'the topic takes no message so large (max.message.bytes)'],
  RECORD_LIST_TOO_LARGE: ['TOO_LARGE', 'the topic takes no message so large (segment.bytes)'],
  TOPIC_AUTHORIZATION_FAILED: ['MAILBOX_UNAVAILABLE', 'these credentials may not use the topic'],
  GROUP_AUTHORIZATION_FAILED: ['MAILBOX_UNAVAILABLE', 'these credentials may not use the group'],
  CLUSTER_AUTHORIZATION_FAILED: [
    'MAILBOX_UNAVAILABLE',
    'these credentials may not create topics, or not write with idempotence',
  ],
  SASL_AUTHENTICATION_FAILED: [
    'MAILBOX_UNAVAILABLE',
    'the server does not accept these credentials',
  ],
  UNKNOWN_TOPIC_OR_PARTITION: ['MAILBOX_UNAVAILABLE', 'the topic is not there'],
  POLICY_VIOLATION: ['MAILBOX_UNAVAILABLE', 'the policy of the cluster forbids it'],
  NOT_ENOUGH_REPLICAS: ['MAILBOX_UNAVAILABLE', 'too few copies are in step (min.insync.replicas)'],
}

/** Turns whatever the client rejected with into an error of ours. The one place that knows its errors. */
export function toRedriveError(error: unknown, place: string): RedriveError {
  if (error instanceof RedriveError) return error
  const cause = error instanceof Error ? error : new Error(String(error))
  const refusal = Object.keys(refusals).find((id) => isRefusal(cause, id))
  const [code, what] = refusals[refusal ?? ''] ?? [
    'MAILBOX_UNAVAILABLE',
    unreachable(cause) ?? 'the cluster failed',
  ]
  const detail = refusal ?? firstLine(cause)
  return new RedriveError(code, `kafka ${place}: ${what} (${detail})`, { cause })
}

/** Whether the broker said this, by Kafka's own name for it, somewhere in what the client made of it. */
export function isRefusal(error: unknown, id: string): boolean {
  return error instanceof Error && findErrorBy(error, 'apiId', id) !== null
}

/** The client tells of many failures as one; the last of them says most. */
function firstLine(error: Error): string {
  const { errors } = error as { errors?: unknown }
  const last = Array.isArray(errors) ? (errors as unknown[]).at(-1) : undefined
  return last instanceof Error ? firstLine(last) : error.message.slice(0, 300)
}
