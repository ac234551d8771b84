import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { keysOf } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { MailboxResolver } from '../../mailbox.ts'

export interface NatsMailboxOptions {
  name: string
  /**
   * `nats://user:password@host:4222`, `nats://token@host:4222` or `tls://…`; several hosts,
   * separated by commas, for a cluster. The options from `prefix` on may also be URL parameters.
   */
  url?: string
  /**
   * A connection of the application, which stays open when the mailbox closes. Either `url` or
   * `client` is required.
   */
  client?: NatsConnection
  clock?: Clock
  resolver?: MailboxResolver
  /** Further options of the connection to `url`: certificates, an authenticator. */
  connection?: NodeConnectionOptions
  /** Prefix of the names of streams and subjects: one word. Default: `redrive`. */
  prefix?: string
  /**
   * Number of servers of the cluster that store each message. Used only when the stream is created.
   * Default: 1.
   */
  replicas?: number
  /**
   * Maximum number of visible and hidden messages; more are rejected with MAILBOX_FULL. Used only
   * when the stream is created. Default: no limit.
   */
  maxMessages?: number
  /**
   * How long sending the same id again adds nothing. Used only when the stream is created. Default:
   * 120.
   */
  dedupeSeconds?: number
  /**
   * Messages older than this are removed when they are received. The stream is created without a
   * maximum age. Default: 0, they are stored forever.
   */
  retentionSeconds?: number
}

export const optionKeys = keysOf<NatsMailboxOptions>({
  name: true,
  url: true,
  client: true,
  clock: true,
  resolver: true,
  connection: true,
  prefix: true,
  replicas: true,
  maxMessages: true,
  dedupeSeconds: true,
  retentionSeconds: true,
})

export function checkOptions(options: NatsMailboxOptions): void {
  const { prefix = 'redrive', replicas = 1, maxMessages = 1, dedupeSeconds = 120 } = options
  if (!/^\w{1,32}$/.test(prefix))
    throw invalid('prefix must be a word of letters, digits and _ with at most 32 characters')
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 5)
    throw invalid(`replicas must be a whole number from 1 to 5, not ${replicas}`)
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalid(`maxMessages must be a whole number of at least 1, not ${maxMessages}`)
  if (!(dedupeSeconds >= 0.1 && dedupeSeconds <= 86_400))
    throw invalid(`dedupeSeconds must be from 0.1 to 86400, not ${dedupeSeconds}`)
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
