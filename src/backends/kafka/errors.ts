import { findErrorBy } from '@platformatic/kafka'
import { RedriveError, type ErrorCode } from '../../errors.ts'
import { unreachable } from '../unreachable.ts'

/** Error names of the Kafka protocol, with our code and the explanation for users. */
const knownErrors: Record<string, [code: ErrorCode, explanation: string]> = {
  MESSAGE_TOO_LARGE: ['TOO_LARGE', 'the message exceeds max.message.bytes of the topic'],
  RECORD_LIST_TOO_LARGE: ['TOO_LARGE', 'the message exceeds segment.bytes of the topic'],
  TOPIC_AUTHORIZATION_FAILED: ['MAILBOX_UNAVAILABLE', 'these credentials may not use the topic'],
  GROUP_AUTHORIZATION_FAILED: ['MAILBOX_UNAVAILABLE', 'these credentials may not use the group'],
  CLUSTER_AUTHORIZATION_FAILED: [
    'MAILBOX_UNAVAILABLE',
    'these credentials may not create topics or may not write with idempotence',
  ],
  SASL_AUTHENTICATION_FAILED: ['MAILBOX_UNAVAILABLE', 'the server rejects these credentials'],
  UNKNOWN_TOPIC_OR_PARTITION: ['MAILBOX_UNAVAILABLE', 'the topic does not exist'],
  POLICY_VIOLATION: ['MAILBOX_UNAVAILABLE', 'the policy of the cluster forbids it'],
  NOT_ENOUGH_REPLICAS: ['MAILBOX_UNAVAILABLE', 'too few replicas in sync (min.insync.replicas)'],
}

/** Converts an error of the client. No other file knows the errors of the client. */
export function toRedriveError(error: unknown, hosts: string): RedriveError {
  if (error instanceof RedriveError) return error
  const cause = error instanceof Error ? error : new Error(String(error))
  const name = Object.keys(knownErrors).find((id) => isRefusal(cause, id))
  const [code, explanation] = knownErrors[name ?? ''] ?? [
    'MAILBOX_UNAVAILABLE',
    unreachable(cause) ?? 'the cluster failed',
  ]
  const detail = name ?? lastMessage(cause)
  return new RedriveError(code, `kafka ${hosts}: ${explanation} (${detail})`, { cause })
}

/** Whether a broker answered with one of these errors of the Kafka protocol, at any depth. */
export function isRefusal(error: unknown, ...ids: string[]): boolean {
  if (error instanceof RedriveError) return isRefusal(error.cause, ...ids)
  return error instanceof Error && ids.some((id) => findErrorBy(error, 'apiId', id) !== null)
}

/** The client wraps the errors of all attempts into one error. The last attempt tells most. */
function lastMessage(error: Error): string {
  const { errors } = error as { errors?: unknown }
  const last = Array.isArray(errors) ? (errors as unknown[]).at(-1) : undefined
  return last instanceof Error ? lastMessage(last) : error.message.slice(0, 300)
}
