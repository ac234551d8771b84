import { Admin, offsetCommitV8, Producer } from '@platformatic/kafka'
import { systemClock } from '../../src/clock/clock.ts'
import { Cluster, requestBroker } from '../../src/backends/kafka/cluster.ts'
import { Fetcher } from '../../src/backends/kafka/fetcher.ts'
import type { StoredRecord } from '../../src/backends/kafka/record.ts'
import { createTopic, type TopicPlan } from '../../src/backends/kafka/topics.ts'
import { aStream, writeStream } from '../../src/pipeline/stream.ts'
import { kafkaPlace } from '../servers/broker-places.ts'

export interface PipelineBench {
  /** A prefix for topics and groups; everything with it is deleted at the end. */
  readonly name: string
  readonly cluster: Cluster
  readonly admin: Admin
  readonly producer: Producer
  topic(name: string, partitions?: number, configs?: TopicPlan['configs']): Promise<string>
  put(topic: string, records: readonly Put[]): Promise<void>
  /** All committed records of a topic, by partition and offset. */
  read(topic: string): Promise<StoredRecord[]>
  /** The committed offset of a group, by partition. */
  committed(groupId: string): Promise<number[]>
  /**
   * Writes the state of the records of each partition, as a process that died would have left it.
   */
  noteAt(groupId: string, topic: string, notes: readonly string[]): Promise<void>
  close(): Promise<void>
}

export interface Put {
  key?: string
  value: Buffer
  partition?: number
  headers?: Record<string, string>
}

/** A private place on the broker, seen by other clients. */
export function pipelineBench(url: string): PipelineBench {
  const place = kafkaPlace(url)
  const settings = { clientId: place.name, bootstrapBrokers: url.split(',') }
  const admin = new Admin(settings)
  // A broker that has just created a topic may reject a part of a request: a repeated record must
  // not be stored twice.
  const producer = new Producer({ ...settings, idempotent: true, acks: -1 })
  const cluster = new Cluster({ url, clock: systemClock, timeoutMs: 10_000, clientId: place.name })
  const groupId = `${place.name}.look`
  const fetcher = new Fetcher(cluster)
  const countOf = async (topic: string): Promise<number> => {
    for (;;)
      try {
        const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
        const count = topics.get(topic)?.partitionsCount ?? 0
        if (count > 0) return count
      } catch {
        // A broker does not show a new topic at once.
      }
  }
  /**
   * Committed records become visible a little later, and those of a dead process when the broker
   * aborts its transaction.
   */
  const settled = async (topic: string): Promise<void> => {
    const consumer = cluster.consumer({ groupId })
    const endOf = async (isolationLevel: 0 | 1): Promise<string> =>
      String((await consumer.listOffsets({ topics: [topic], isolationLevel })).get(topic))
    const endMs = performance.now() + 60_000
    try {
      while ((await endOf(0)) !== (await endOf(1)))
        if (performance.now() > endMs) throw new Error(`a transaction stays open in ${topic}`)
    } finally {
      await consumer.close(true)
    }
  }
  return {
    name: place.name,
    cluster,
    admin,
    producer,
    topic: async (name, partitions = 1, configs = {}) => {
      const topic = `${place.name}.${name}`
      await createTopic(cluster, admin, { topic, partitions, replicas: 1, configs })
      await countOf(topic)
      return topic
    },
    put: async (topic, records) => {
      const messages = records.map(({ key, value, partition, headers = {} }) => ({
        topic,
        value,
        ...(key === undefined ? {} : { key: Buffer.from(key) }),
        ...(partition === undefined ? {} : { partition }),
        headers: new Map(
          Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)]),
        ),
      }))
      await producer.send({ messages, acks: -1 })
    },
    read: async (topic) => {
      const partitions = await countOf(topic)
      await settled(topic)
      const places = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
      const found: StoredRecord[] = []
      for (const [at, { first, next }] of (await fetcher.bounds(places)).entries())
        for (let from = first; from < next;) {
          const { records, to } = await fetcher.read(places[at]!, from)
          found.push(...records)
          if (to <= from) break
          from = to
        }
      return found
    },
    committed: async (group) => {
      const [found] = await admin.listConsumerGroupOffsets({ groups: [group] })
      return (found?.topics[0]?.partitions ?? [])
        .toSorted((a, b) => a.partitionIndex - b.partitionIndex)
        .map(({ committedOffset }) => Number(committedOffset))
    },
    noteAt: async (group, topic, notes) => {
      const consumer = cluster.consumer({ groupId: group })
      const partitions = notes.map((committedMetadata, partitionIndex) => ({
        partitionIndex,
        committedOffset: 0n,
        committedLeaderEpoch: -1,
        committedMetadata,
      }))
      const topics = [{ name: topic, partitions }]
      const request = [group, -1, '', null, topics] as const
      const node = await consumer.findGroupCoordinator()
      await requestBroker(consumer, node, offsetCommitV8.api, ...request)
      await consumer.close(true)
    },
    close: async () => {
      await Promise.all([admin.close(), producer.close(), fetcher.close()])
      await place.clear()
    },
  }
}

/** A stream with a document of this text. */
export function streamOf(streamId: string, text = streamId): Buffer {
  const value = { id: `${streamId}-document`, body: Buffer.from(text), contentType: 'text/plain' }
  return writeStream(aStream({ streamId, content: { case: 'document', value } }))
}
