import { murmur2, type MessageToProduce, type Producer } from '@platformatic/kafka'
import { Batcher, type Outcome } from '../batcher.ts'
import type { Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'
import { recordSize, type NewRecord } from './record.ts'

/** The default of max.message.bytes, which limits a batch, minus the header of the batch. */
const maxBatchBytes = 1_000_000

export interface OutgoingRecord {
  topic: string
  record: NewRecord
  /** Default: the partition of the key; without a key, any partition. */
  partition?: number
}

/**
 * Sends records. A send resolves when all in-sync replicas have the record. One request is in
 * flight at a time, so that a retried request cannot overtake a later one.
 */
export class Sender {
  readonly #cluster: Cluster
  readonly #batcher: Batcher<OutgoingRecord, void>
  #producer: Producer | undefined

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    const limits = { maxInFlight: 1, maxBatchCost: 4 * maxBatchBytes }
    this.#batcher = new Batcher(limits, async (all) => {
      const outcomes: Outcome<void>[] = []
      for (const batch of splitBySize(all)) outcomes.push(...(await this.#sendBatch(batch)))
      return outcomes
    })
  }

  /** 0 if the topic does not exist. */
  async countPartitions(topic: string): Promise<number> {
    const { topics } = await this.#cluster.call(() => this.#client().metadata({ topics: [topic] }))
    return topics.get(topic)?.partitionsCount ?? 0
  }

  send(outgoing: OutgoingRecord): Promise<void> {
    return this.#batcher.call(outgoing, recordSize(outgoing.record))
  }

  async close(): Promise<void> {
    await this.#batcher.idle()
    await this.#producer?.close().catch(() => {})
  }

  #client(): Producer {
    return (this.#producer ??= this.#cluster.producer())
  }

  #dropProducer(): void {
    this.#producer?.close().catch(() => {})
    this.#producer = undefined
  }

  async #sendBatch(batch: readonly OutgoingRecord[]): Promise<Outcome<void>[]> {
    try {
      const messages = batch.map(toMessage)
      await this.#cluster.call(() => this.#client().send({ messages, acks: -1 }))
      return batch.map(() => ({ value: undefined }))
    } catch (error) {
      const isTooLarge = isRefusal(error, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE')
      if (isTooLarge && batch.length > 1) return this.#sendHalves(batch)
      // The outcome is unknown. The sequence numbers of later sends must not depend on it.
      this.#dropProducer()
      return batch.map(() => ({ error }))
    }
  }

  /** Finds the records that are too large for their topic. */
  async #sendHalves(batch: readonly OutgoingRecord[]): Promise<Outcome<void>[]> {
    const half = Math.ceil(batch.length / 2)
    const first = await this.#sendBatch(batch.slice(0, half))
    return [...first, ...(await this.#sendBatch(batch.slice(half)))]
  }
}

/** Splits records into requests. A larger record is alone in its request. */
export function* splitBySize(all: readonly OutgoingRecord[]): Generator<readonly OutgoingRecord[]> {
  let start = 0
  let bytes = 0
  for (const [at, { record }] of all.entries()) {
    const size = recordSize(record)
    if (at > start && bytes + size > maxBatchBytes) {
      yield all.slice(start, at)
      start = at
      bytes = 0
    }
    bytes += size
  }
  if (start < all.length) yield all.slice(start)
}

export function toMessage({ topic, record, partition }: OutgoingRecord): MessageToProduce {
  const { value, headers, key } = record
  // The client sends null values, although its types do not allow them.
  const message = { topic, value: value as Buffer, headers: headers as Map<Buffer, Buffer> }
  // The client takes the partition modulo the number of partitions.
  if (key) return { ...message, key, partition: partition ?? hashKey(key) }
  return partition === undefined ? message : { ...message, partition }
}

/** The partition of a key as the Java producer computes it. */
export function partitionForKey(key: Buffer, partitions: number): number {
  return hashKey(key) % partitions
}

/** Clears the sign as Java does. The default partitioner of the client does not. */
function hashKey(key: Buffer): number {
  return murmur2(key) & 0x7fffffff
}
