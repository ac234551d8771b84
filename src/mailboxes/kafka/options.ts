import type { BaseOptions } from '@platformatic/kafka'
import { checkKeys, keysOf } from '../../check/keys.ts'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { MailboxPowers, MailboxResolver } from '../../mailbox.ts'

export interface KafkaMailboxOptions {
  name: string
  /**
   * `kafka://user:password@host:9092,other:9092`, or `kafkas://` for TLS. `prefix`, `partitions`,
   * `replicas` and `retentionSeconds` can be set in the query of the URL.
   */
  url: string
  clock?: Clock
  resolver?: MailboxResolver
  /** More options for the client: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /** Prefix of the names of topics and groups. Default: `redrive.`. */
  prefix?: string
  /**
   * Number of partitions of a topic that is created: how many processes can receive at once.
   * Messages are ordered within a partition. Default: 1.
   */
  partitions?: number
  /** Replication factor of a topic that is created. Default: that of the cluster. */
  replicas?: number
  /**
   * Messages older than this are removed when they are received. Default: 0, which keeps them
   * forever. The topic itself is created without a retention.
   */
  retentionSeconds?: number
  /** Deletes processed messages. Default: true. Set false if other programs read the topic. */
  trims?: boolean
  /** A process without a heartbeat for so long loses its partitions. Default: 10 seconds. */
  sessionMs?: number
  /** Time limit of one call. Default: 5 seconds. */
  timeoutMs?: number
}

const optionKeys = keysOf<KafkaMailboxOptions>({
  name: true,
  url: true,
  clock: true,
  resolver: true,
  connection: true,
  prefix: true,
  partitions: true,
  replicas: true,
  retentionSeconds: true,
  trims: true,
  sessionMs: true,
  timeoutMs: true,
})

/** Below 1,048,588 bytes, the default of max.message.bytes. */
export const maxBytes = 1_000_000
const maxHeaderBytes = 16 * 1024

export function checkOptionKeys(options: KafkaMailboxOptions): void {
  checkKeys('kafka mailbox options', options, optionKeys, {
    code: 'INVALID_CONFIG',
    renamed: { retentionHours: 'retentionSeconds' },
  })
}

export function checkOptionValues(options: KafkaMailboxOptions): void {
  const { prefix = '', partitions = 1, replicas = 1 } = options
  const { timeoutMs = 1, sessionMs = 1 } = options
  if (!/^[A-Za-z0-9._-]{0,60}$/.test(prefix))
    throw invalid('prefix must consist of at most 60 letters, digits, dots, _ and -')
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > 10_000)
    throw invalid(`partitions must be an integer from 1 to 10000, not ${partitions}`)
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 100)
    throw invalid(`replicas must be an integer from 1 to 100, not ${replicas}`)
  if (!(timeoutMs > 0)) throw invalid(`timeoutMs must be above 0, not ${timeoutMs}`)
  if (!(sessionMs > 0)) throw invalid(`sessionMs must be above 0, not ${sessionMs}`)
}

export function createPowers(partitions: number): MailboxPowers {
  return {
    kind: 'kafka',
    durable: true,
    // Each process receives from its own partitions only.
    shared: false,
    visibility: true,
    extend: true,
    delay: true,
    remembers: true,
    exactDeliveries: true,
    ordered: partitions === 1,
    // Gaps of transactions and compaction are counted.
    exactCount: false,
    purge: true,
    browse: true,
    deduplicates: false,
    maxBodyBytes: maxBytes - maxHeaderBytes,
  }
}

function invalid(message: string): RedriveError {
  return new RedriveError('INVALID_INPUT', message)
}
