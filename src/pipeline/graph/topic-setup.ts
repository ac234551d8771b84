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

/** What an envelope has beside the record that lies in it. */
const roomForEnvelope = 256 * 1024

/** A topic of dead records, how long they must stay in it, and the largest of them. */
interface Keeping {
  topic: string
  retentionMs: number
  maxBytes: number
}

/**
 * Creates the input, DLQ and quarantine topics that are missing. What is there stays as it is; what is wrong with it for dead records is
 * told, with STORE_UNSAFE: they would be lost, refused, or could not be erased. Safe twice, and from several processes at once.
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
      const told = configs.get(keeping.topic)
      return told ? problemsOf(keeping, told) : []
    })
  } finally {
    await admin.close().catch(() => {})
  }
}

/** Which of them were there before, or were made by somebody else meanwhile. */
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

/** A dead record may be as large as its input topic takes, and has its envelope around it. */
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
      // What is quarantined waits for a person, however long that takes.
      { node, keeping: { topic: dlq.quarantineTopic, retentionMs: -1, maxBytes } },
    ]
  })
}

/** Keys are as many as dead records, so that compacting takes away only what was erased. */
function configsFor({ retentionMs, maxBytes }: Keeping): Record<string, string> {
  return {
    'cleanup.policy': 'compact,delete',
    'retention.ms': String(retentionMs),
    'retention.bytes': '-1',
    'max.message.bytes': String(maxBytes),
  }
}

function problemsOf(keeping: Keeping, told: ReadonlyMap<string, string>): RedriveError[] {
  const { topic, retentionMs, maxBytes } = keeping
  const policies = (told.get('cleanup.policy') ?? '').split(',')
  const numberOf = (name: string): number => Number(told.get(name) ?? -1)
  const texts: string[] = []
  if (policies.includes('delete')) {
    const kept = numberOf('retention.ms')
    if (kept >= 0 && (retentionMs < 0 || kept < retentionMs))
      texts.push(`loses dead records: retention.ms is ${kept}, asked for ${retentionMs}`)
    const bytes = numberOf('retention.bytes')
    if (bytes >= 0) texts.push(`loses dead records: retention.bytes is ${bytes}, not -1`)
  }
  if (!policies.includes('compact'))
    texts.push('keeps what is erased: cleanup.policy is delete, not compact,delete')
  const taken = numberOf('max.message.bytes')
  if (taken < maxBytes)
    texts.push(`refuses large dead records: max.message.bytes is ${taken}, less than ${maxBytes}`)
  return texts.map((text) => new RedriveError('STORE_UNSAFE', `the topic ${topic} ${text}`))
}
