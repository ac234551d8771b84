import type { Cluster } from '../../src/backends/kafka/cluster.ts'
import { keyOfDead, seal, type DeadRecord } from '../../src/pipeline/dead/envelope.ts'
import {
  nodeSettings,
  type NodeInput,
  type NodeSettings,
} from '../../src/pipeline/graph/settings.ts'
import { replaysTopicOf } from '../../src/pipeline/graph/topics.ts'
import { pipelineBench, streamOf, type PipelineBench, type Put } from './pipeline-bench.ts'

export interface Dead extends Partial<Omit<DeadRecord, 'record'>> {
  id: string
  /** The value of the original record. */
  key?: string
  offset: number
  partition?: number
  headers?: Record<string, string>
}

/** When the dead records were first sent. */
export const sentMs = Date.UTC(2026, 0, 1)

/** A node with its topics, and dead records in them. */
export interface DeadBench extends PipelineBench {
  readonly settings: NodeSettings
  /** Writes dead records to the DLQ topic, all to one partition. */
  dies(dead: readonly Dead[], partition?: number): Promise<void>
  erase(offset: number, partition?: number): Promise<void>
}

export async function deadBench(url: string, more: Partial<NodeInput> = {}): Promise<DeadBench> {
  const bench = pipelineBench(url)
  const settings = nodeSettings({
    node: 'node-1',
    ...more,
    cluster: bench.name,
    inputTopic: await bench.topic('input', 2),
    dlq: {
      topic: await bench.topic('dead', 2),
      quarantineTopic: await bench.topic('quarantine', 2),
      ...more.dlq,
    },
    partitions: 2,
  })
  const keyAt = (offset: number, partition: number): string =>
    keyOfDead({ topic: settings.inputTopic, partition, offset, timestampMs: sentMs }).toString()
  return {
    ...bench,
    settings,
    dies: (all, partition = 0) =>
      bench.put(
        settings.dlq.topic,
        all.map((dead) => putOf(dead, settings, partition)),
      ),
    erase: async (offset, partition = 0) => {
      const key = Buffer.from(keyAt(offset, partition))
      const nothing = null as unknown as Buffer
      const message = { topic: settings.dlq.topic, key, value: nothing, partition }
      await bench.producer.send({ messages: [message], acks: -1 })
    },
    close: async () => {
      await removeTopic(bench.cluster, replaysTopicOf(settings))
      await bench.close()
    },
  }
}

/** Undefined if it does not exist. */
export async function removeTopic(cluster: Cluster, topic: string): Promise<void> {
  const admin = cluster.admin()
  if ((await admin.listTopics()).includes(topic)) await admin.deleteTopics({ topics: [topic] })
  await admin.close()
}

export function putOf(dead: Dead, settings: NodeSettings, partition: number): Put {
  const { id, key, offset, headers = {}, ...more } = dead
  const record = {
    topic: settings.inputTopic,
    partition: dead.partition ?? 0,
    offset,
    timestampMs: sentMs,
    key: key === undefined ? undefined : Buffer.from(key),
    value: streamOf(id),
    headers: Object.entries(headers).map(
      ([name, text]) => [Buffer.from(name), Buffer.from(text)] as const,
    ),
  }
  const value = seal({
    isStream: true,
    cluster: settings.cluster,
    graph: settings.graph,
    node: settings.node,
    errorType: 'TIMEOUT',
    message: 'it took too long',
    failedMs: Date.UTC(2026, 0, 2),
    firstFailedMs: Date.UTC(2026, 0, 1, 12),
    retries: 3,
    reprocessed: 0,
    quarantined: false,
    replayable: true,
    ...more,
    record,
  })
  return { key: keyOfDead(record).toString(), value, partition, headers }
}
