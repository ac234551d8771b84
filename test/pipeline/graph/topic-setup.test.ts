import {
  ConfigResourceTypes,
  IncrementalAlterConfigOperationTypes,
  type Admin,
} from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { readConfigs, createTopic, countPartitions } from '../../../src/backends/kafka/topics.ts'
import { seal } from '../../../src/pipeline/dead/envelope.ts'
import {
  nodeSettings,
  type NodeInput,
  type NodeSettings,
} from '../../../src/pipeline/graph/settings.ts'
import { createTopics } from '../../../src/pipeline/graph/topic-setup.ts'
import { kafkaPlace } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('createTopics', { timeout: 60_000 }, () => {
  let place: Place
  let cluster: Cluster
  let admin: Admin

  beforeEach(() => {
    place = kafkaPlace(url)
    cluster = new Cluster({ url, clock: systemClock, timeoutMs: 10_000, clientId: 'redrive-test' })
    admin = cluster.admin()
  })

  afterEach(async () => {
    await admin.close()
    await place.clear()
  })

  const aNode = (more: Partial<NodeInput> = {}): NodeSettings =>
    nodeSettings({
      cluster: 'test',
      node: 'parser',
      inputTopic: `${place.name}.in`,
      partitions: 2,
      ...more,
      dlq: {
        topic: `${place.name}.dead`,
        quarantineTopic: `${place.name}.quarantine`,
        ...more.dlq,
      },
    })

  const configsOf = async (topic: string): Promise<Record<string, string | undefined>> => {
    const configs = (await readConfigs(cluster, admin, [topic])).get(topic)
    const names = ['cleanup.policy', 'retention.ms', 'retention.bytes', 'max.message.bytes']
    return Object.fromEntries(names.map((name) => [name, configs?.get(name)]))
  }

  const made = (topic: string, configs: Record<string, string> = {}): Promise<boolean> =>
    createTopic(cluster, admin, { topic, partitions: 1, replicas: -1, configs })

  const ours = async (): Promise<string[]> =>
    (await admin.listTopics()).filter((topic) => topic.startsWith(place.name)).sort()

  const problemsOf = async (nodes: NodeSettings[]): Promise<string[]> =>
    (await createTopics(cluster, nodes)).map(({ code, message }) => {
      expect(code).toBe('STORE_UNSAFE')
      return message.replaceAll(`${place.name}.`, '')
    })

  it('creates missing topics with settings that keep and accept dead records', async () => {
    const node = aNode({ dlqRetentionMs: 86_400_000 })
    expect(await createTopics(cluster, [node])).toEqual([])
    expect(await ours()).toEqual([node.dlq.topic, node.inputTopic, node.dlq.quarantineTopic])
    for (const topic of await ours()) expect(await countPartitions(cluster, admin, topic)).toBe(2)
    const input = await configsOf(node.inputTopic)
    const maxBytes = String(Number(input['max.message.bytes']) + 256 * 1024)
    expect(input['cleanup.policy']).toBe('delete')
    expect(await configsOf(node.dlq.topic)).toEqual({
      'cleanup.policy': 'compact,delete',
      'retention.ms': '86400000',
      'retention.bytes': '-1',
      'max.message.bytes': maxBytes,
    })
    expect(await configsOf(node.dlq.quarantineTopic)).toEqual({
      'cleanup.policy': 'compact,delete',
      'retention.ms': '-1',
      'retention.bytes': '-1',
      'max.message.bytes': maxBytes,
    })
  })

  it('has room for the envelope of the largest record', async () => {
    const node = aNode()
    await createTopics(cluster, [node])
    const sender = new Sender(cluster)
    const maxBytes = Number((await configsOf(node.inputTopic))['max.message.bytes'])
    const value = Buffer.alloc(maxBytes - 200, 7)
    const record = { partition: 0, offset: 0, timestampMs: 1, key: undefined, headers: [], value }
    const envelope = seal({
      record: { ...record, topic: node.inputTopic },
      isStream: false,
      cluster: node.cluster,
      graph: node.graph,
      node: node.node,
      errorType: 'ERROR',
      message: '\u20ac'.repeat(20_000),
      stack: '\u20ac'.repeat(50_000),
      failedMs: 1,
      firstFailedMs: 1,
      retries: 3,
      reprocessed: 0,
      quarantined: false,
      replayable: true,
    })
    const headers = new Map<Buffer, Buffer>()
    try {
      await sender.send({ topic: node.inputTopic, record: { value, headers } })
      const key = Buffer.from('key')
      const dead = { topic: node.dlq.topic, record: { value: envelope, headers, key } }
      await expect(sender.send(dead)).resolves.toBeUndefined()
    } finally {
      await sender.close()
    }
  })

  it('has room for the records of a large input topic', async () => {
    const node = aNode()
    await made(node.inputTopic, { 'max.message.bytes': '5000000' })
    expect(await createTopics(cluster, [node])).toEqual([])
    expect(await configsOf(node.dlq.topic)).toMatchObject({ 'max.message.bytes': '5262144' })
    expect(await countPartitions(cluster, admin, node.inputTopic)).toBe(1)
  })

  it('changes and reports nothing the second time', async () => {
    const node = aNode()
    await createTopics(cluster, [node])
    const before = await configsOf(node.dlq.topic)
    expect(await createTopics(cluster, [aNode({ partitions: 5 })])).toEqual([])
    expect(await configsOf(node.dlq.topic)).toEqual(before)
    expect(await countPartitions(cluster, admin, node.dlq.topic)).toBe(2)
  })

  it('can be called concurrently', async () => {
    const node = aNode()
    const others = Array.from(
      { length: 4 },
      () => new Cluster({ url, clock: systemClock, timeoutMs: 10_000, clientId: 'redrive-test' }),
    )
    const reported = await Promise.all(others.map((cluster) => createTopics(cluster, [node])))
    expect(reported.flat()).toEqual([])
    expect(await ours()).toHaveLength(3)
  })

  it('reports a DLQ topic that loses, rejects or cannot erase records, and does not change it', async () => {
    const node = aNode({ dlqRetentionMs: 86_400_000 })
    const configs = {
      'retention.ms': '3600000',
      'retention.bytes': '1000000',
      'max.message.bytes': '100000',
    }
    await made(node.dlq.topic, configs)
    expect(await problemsOf([node])).toEqual([
      'the topic dead loses dead records: retention.ms is 3600000, required is 86400000',
      'the topic dead loses dead records: retention.bytes is 1000000, not -1',
      'the topic dead keeps erased records: cleanup.policy is delete, not compact,delete',
      expect.stringMatching(
        /^the topic dead rejects large dead records: max.message.bytes is 100000, less than \d+$/,
      ),
    ])
    expect(await configsOf(node.dlq.topic)).toMatchObject({
      'cleanup.policy': 'delete',
      ...configs,
    })
  })

  it('reports a quarantine topic that loses records', async () => {
    const node = aNode()
    await made(node.dlq.quarantineTopic, {
      'cleanup.policy': 'compact,delete',
      'retention.ms': String(365 * 86_400_000),
      'max.message.bytes': '9000000',
    })
    expect(await problemsOf([node])).toEqual([
      'the topic quarantine loses dead records: retention.ms is 31536000000, required is -1',
    ])
  })

  it('accepts a DLQ topic that is only compacted, or has a longer retention', async () => {
    const one = aNode()
    await made(one.dlq.topic, {
      'cleanup.policy': 'compact',
      'retention.ms': '1000',
      'max.message.bytes': '9000000',
    })
    await made(one.dlq.quarantineTopic, {
      'cleanup.policy': 'compact,delete',
      'retention.ms': '-1',
      'max.message.bytes': '9000000',
    })
    expect(await problemsOf([one])).toEqual([])
  })

  it('reports an input topic with larger records than its DLQ topic allows', async () => {
    const node = aNode()
    await createTopics(cluster, [node])
    await admin.incrementalAlterConfigs({
      resources: [
        {
          resourceType: ConfigResourceTypes.TOPIC,
          resourceName: node.inputTopic,
          configs: [
            {
              name: 'max.message.bytes',
              configOperation: IncrementalAlterConfigOperationTypes.SET,
              value: '8000000',
            },
          ],
        },
      ],
    })
    expect(await problemsOf([node])).toEqual([
      expect.stringContaining('the topic dead rejects large dead records'),
      expect.stringContaining('the topic quarantine rejects large dead records'),
    ])
  })

  it('creates no DLQ topic for a node without one', async () => {
    const node = aNode({ dlq: { enabled: false } })
    await createTopics(cluster, [node])
    expect(await ours()).toEqual([node.inputTopic])
  })

  it('creates the topics of many nodes', async () => {
    const nodes = ['a', 'b', 'c'].map((id) =>
      aNode({
        node: id,
        inputTopic: `${place.name}.${id}.in`,
        dlq: { topic: `${place.name}.${id}.dead`, quarantineTopic: `${place.name}.${id}.kept` },
      }),
    )
    expect(await createTopics(cluster, nodes)).toEqual([])
    expect(await ours()).toHaveLength(9)
  })

  it('rejects if the cluster is unreachable', async () => {
    const nowhere = new Cluster({
      url: 'kafka://127.0.0.1:1',
      clock: systemClock,
      timeoutMs: 1000,
      clientId: 'redrive-test',
    })
    await expect(createTopics(nowhere, [aNode()])).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
    })
  })
})
