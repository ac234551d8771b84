import type { Admin } from '@platformatic/kafka'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from '../../backends/kafka/cluster.ts'
import {
  readConfigs,
  createTopic,
  countPartitions,
  type TopicPlan,
} from '../../backends/kafka/topics.ts'
import type { NodeSettings } from './settings.ts'

/** The size of an envelope besides its record. */
const roomForEnvelope = 256 * 1024

/** A topic of dead records, their retention, and the size of the largest. */
interface Keeping {
  topic: string
  retentionMs: number
  maxBytes: number
}

/**
 * Creates missing input, DLQ and quarantine topics. Existing topics are not changed; settings by
 * which dead records would be lost, rejected or could not be erased are reported with STORE_UNSAFE.
 * May be called twice, and from several processes at once.
 */
export async function createTopics(
  cluster: Cluster,
  nodes: readonly NodeSettings[],
): Promise<RedriveError[]> {
  const admin = cluster.admin()
  try {
    const there = new Set(await cluster.call(() => admin.listTopics()))
    const inputs = nodes.map(({ inputTopic: topic, partitions, replicas }) => ({
      topic,
      partitions,
      replicas,
      configs: {},
    }))
    await createMissing(cluster, admin, there, inputs)
    const keepings = await keepingsOf(cluster, admin, nodes)
    const plans = keepings.map(({ keeping, node: { partitions, replicas } }) => ({
      topic: keeping.topic,
      partitions,
      replicas,
      configs: configsFor(keeping),
    }))
    const found = await createMissing(cluster, admin, there, plans)
    const configs = await readConfigs(cluster, admin, found)
    return keepings.flatMap(({ keeping }) => {
      const config = configs.get(keeping.topic)
      return config ? problemsOf(keeping, config) : []
    })
  } finally {
    await admin.close().catch(() => {})
  }
}

/** The topics that already existed, or were created by another process meanwhile. */
async function createMissing(
  cluster: Cluster,
  admin: Admin,
  there: ReadonlySet<string>,
  plans: readonly TopicPlan[],
): Promise<string[]> {
  const found: string[] = []
  for (const plan of plans)
    if (there.has(plan.topic) || !(await createTopic(cluster, admin, plan))) found.push(plan.topic)
  for (const { topic } of plans) if (!there.has(topic)) await countPartitions(cluster, admin, topic)
  return found
}

/** A dead record may be as large as its input topic allows, plus its envelope. */
async function keepingsOf(
  cluster: Cluster,
  admin: Admin,
  nodes: readonly NodeSettings[],
): Promise<{ node: NodeSettings; keeping: Keeping }[]> {
  const withDlq = nodes.filter(({ dlq }) => dlq.enabled)
  const inputs = withDlq.map(({ inputTopic }) => inputTopic)
  const configs = await readConfigs(cluster, admin, inputs)
  return withDlq.flatMap((node) => {
    const { inputTopic, dlq, dlqRetentionMs } = node
    const maxBytes = Number(configs.get(inputTopic)?.get('max.message.bytes')) + roomForEnvelope
    return [
      { node, keeping: { topic: dlq.topic, retentionMs: dlqRetentionMs, maxBytes } },
      // Quarantined records wait for a person, without a time limit.
      { node, keeping: { topic: dlq.quarantineTopic, retentionMs: -1, maxBytes } },
    ]
  })
}

/** Every dead record has its own key, so compaction removes only erased ones. */
function configsFor({ retentionMs, maxBytes }: Keeping): Record<string, string> {
  return {
    'cleanup.policy': 'compact,delete',
    'retention.ms': String(retentionMs),
    'retention.bytes': '-1',
    'max.message.bytes': String(maxBytes),
  }
}

function problemsOf(keeping: Keeping, config: ReadonlyMap<string, string>): RedriveError[] {
  const { topic, retentionMs, maxBytes } = keeping
  const policies = (config.get('cleanup.policy') ?? '').split(',')
  const numberOf = (name: string): number => Number(config.get(name) ?? -1)
  const problems: string[] = []
  if (policies.includes('delete')) {
    const kept = numberOf('retention.ms')
    if (kept >= 0 && (retentionMs < 0 || kept < retentionMs))
      problems.push(`loses dead records: retention.ms is ${kept}, required is ${retentionMs}`)
    const bytes = numberOf('retention.bytes')
    if (bytes >= 0) problems.push(`loses dead records: retention.bytes is ${bytes}, not -1`)
  }
  if (!policies.includes('compact'))
    problems.push('keeps erased records: cleanup.policy is delete, not compact,delete')
  const taken = numberOf('max.message.bytes')
  if (taken < maxBytes)
    problems.push(
      `rejects large dead records: max.message.bytes is ${taken}, less than ${maxBytes}`,
    )
  return problems.map((text) => new RedriveError('STORE_UNSAFE', `the topic ${topic} ${text}`))
}
