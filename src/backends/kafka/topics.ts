import { ConfigResourceTypes, type Admin } from '@platformatic/kafka'
import { sleep } from '../../clock/clock.ts'
import type { Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'

export interface TopicPlan {
  topic: string
  partitions: number
  /** -1: as many as the cluster has it. */
  replicas: number
  /** What the topic is told, by Kafka's own names. */
  configs: Readonly<Record<string, string>>
}

/** True: it was not there, and is now. Safe from several processes at once. */
export async function createTopic(
  cluster: Cluster,
  admin: Admin,
  { topic, partitions, replicas, configs }: TopicPlan,
): Promise<boolean> {
  const told = Object.entries(configs).map(([name, value]) => ({ name, value }))
  const plan = { topics: [topic], partitions, replicas, configs: told }
  try {
    await cluster.call(() => admin.createTopics(plan))
    return true
  } catch (error) {
    // Somebody else made it first.
    if (isRefusal((error as Error).cause, 'TOPIC_ALREADY_EXISTS')) return false
    throw error
  }
}

/** How many partitions a topic has. One that was just created is not known to all brokers at once. */
export async function partitionsOf(cluster: Cluster, admin: Admin, topic: string): Promise<number> {
  return patiently(cluster, async () => {
    const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
    const count = topics.get(topic)?.partitionsCount ?? 0
    if (count > 0) return count
    throw new Error(`the topic ${topic} has no partitions`)
  })
}

/** What topics are told, by topic and by Kafka's own names, with the defaults of the cluster. */
export async function configsOf(
  cluster: Cluster,
  admin: Admin,
  topics: readonly string[],
): Promise<Map<string, ReadonlyMap<string, string>>> {
  if (topics.length === 0) return new Map()
  const resources = topics.map((resourceName) => ({
    resourceType: ConfigResourceTypes.TOPIC,
    resourceName,
  }))
  const described = await patiently(cluster, () => admin.describeConfigs({ resources }))
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

async function patiently<T>(cluster: Cluster, ask: () => Promise<T>): Promise<T> {
  const { clock, timeoutMs } = cluster
  const endMs = clock.mono() + timeoutMs
  for (;;)
    try {
      return await cluster.call(ask)
    } catch (error) {
      if (clock.mono() > endMs) throw error
      await sleep(clock, 100)
    }
}
