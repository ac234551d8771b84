import { createHash } from 'node:crypto'
import { ConfigResourceTypes, type Admin } from '@platformatic/kafka'
import { retry, type RetryOptions } from '../../clock/retry.ts'
import type { Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'

export interface TopicPlan {
  topic: string
  partitions: number
  /** -1: the default of the cluster. */
  replicas: number
  /** Topic configuration by Kafka's names. */
  configs: Readonly<Record<string, string>>
}

/** Returns false if the topic exists already. Safe in several processes at once. */
export async function createTopic(
  cluster: Cluster,
  admin: Admin,
  { topic, partitions, replicas, configs }: TopicPlan,
): Promise<boolean> {
  const options = {
    topics: [topic],
    partitions,
    replicas,
    configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
  }
  try {
    await cluster.call(() => admin.createTopics(options))
    return true
  } catch (error) {
    if (isRefusal(error, 'TOPIC_ALREADY_EXISTS')) return false
    throw error
  }
}

/** Retries for a topic that was just created: not all brokers know it at once. */
export async function countPartitions(
  cluster: Cluster,
  admin: Admin,
  topic: string,
): Promise<number> {
  const request = { topics: [topic], forceUpdate: true }
  return retry(pauses(cluster), async () => {
    const { topics } = await cluster.call(() => admin.metadata(request))
    const count = topics.get(topic)?.partitionsCount ?? 0
    if (count > 0) return count
    throw cluster.toRedriveError(new Error(`the topic ${topic} has no partitions`))
  })
}

/** The configuration of topics, defaults of the cluster included. */
export async function readConfigs(
  cluster: Cluster,
  admin: Admin,
  topics: readonly string[],
): Promise<Map<string, ReadonlyMap<string, string>>> {
  if (topics.length === 0) return new Map()
  const resourceType = ConfigResourceTypes.TOPIC
  const resources = topics.map((resourceName) => ({ resourceType, resourceName }))
  const described = await retry(pauses(cluster), () =>
    cluster.call(() => admin.describeConfigs({ resources })),
  )
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

function pauses({ clock, timeoutMs: limitMs }: Cluster): RetryOptions {
  return { clock, limitMs, firstMs: 100, maxMs: 100 }
}

/**
 * Makes any name usable as part of a topic name. Characters other than letters, digits and `-`
 * become `_` and their bytes in hex, dots and underscores too: Kafka treats `.` and `_` as equal.
 * A longer name is cut and ends in `_-` and its hash.
 */
export function escapeName(name: string, maxLength: number): string {
  const escaped = name.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    Buffer.from(character).toString('hex').toUpperCase().replaceAll(/../g, '_$&'),
  )
  if (escaped.length <= maxLength) return escaped
  const hash = createHash('sha256').update(name).digest('hex')
  return `${escaped.slice(0, maxLength - hash.length - 2)}_-${hash}`
}

/** Topic names have up to 249 characters, prefixes up to 60. */
const maxMailboxNameLength = 180

/** The topic of a mailbox, and its consumer group. */
export function mailboxTopic(prefix: string, name: string): string {
  return `${prefix}${escapeName(name, maxMailboxNameLength)}`
}
