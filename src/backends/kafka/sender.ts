import type { MessageToProduce, Producer } from '@platformatic/kafka'
import { Batcher, type Outcome } from '../batcher.ts'
import type { Cluster } from './cluster.ts'
import { hashOf } from './partition.ts'
import { sizeOf, type Written } from './record.ts'
import { isRefusal } from './errors.ts'

/** What topics take at once unless they were told otherwise (max.message.bytes), less what a batch itself needs. */
const maxBatchBytes = 1_000_000
/** What goes to a broker at once, to several partitions. */
const maxLotBytes = 2 * maxBatchBytes

export interface Outgoing {
  topic: string
  written: Written
  /** Default: with a key, the partition of the key; without one, any. */
  partition?: number
}

/**
 * Sends records, and resolves when all copies in step have them. Sends gather while a batch is on its way: one alone goes at once. One
 * batch at a time, so that a repeated one never comes behind a later one.
 */
export class Sender {
  readonly #cluster: Cluster
  readonly #out: Batcher<Outgoing, void>
  #producer: Producer | undefined

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#out = new Batcher({ maxInFlight: 1, maxBatchCost: 4 * maxBatchBytes }, (all) =>
      this.#carry(all),
    )
  }

  /** Connects. */
  async open(topic: string): Promise<void> {
    try {
      await this.#cluster.call(() => this.#client().metadata({ topics: [topic] }))
    } catch (error) {
      this.#drop()
      throw error
    }
  }

  /** How many partitions a topic has, as far as the client knows; 0 when there is no such topic. */
  async partitionsOf(topic: string): Promise<number> {
    const { topics } = await this.#cluster.call(() => this.#client().metadata({ topics: [topic] }))
    return topics.get(topic)?.partitionsCount ?? 0
  }

  send(outgoing: Outgoing): Promise<void> {
    return this.#out.call(outgoing, sizeOf(outgoing.written))
  }

  async close(): Promise<void> {
    await this.#out.idle()
    await this.#producer?.close().catch(() => {})
  }

  /** Lets go of the connection. The next send makes another. */
  #drop(): void {
    this.#producer?.close().catch(() => {})
    this.#producer = undefined
  }

  #client(): Producer {
    this.#producer ??= this.#cluster.producer()
    return this.#producer
  }

  /** In lots that go at once. */
  async #carry(all: Outgoing[]): Promise<Outcome<void>[]> {
    const outcomes: Outcome<void>[] = []
    for (const lot of lotsOf(all)) outcomes.push(...(await this.#sendLot(lot)))
    return outcomes
  }

  async #sendLot(lot: readonly Outgoing[]): Promise<Outcome<void>[]> {
    try {
      const messages = lot.map(messageOf)
      await this.#cluster.call(() => this.#client().send({ messages, acks: -1 }))
      return lot.map(() => ({ value: undefined }))
    } catch (error) {
      if (lot.length > 1 && isTooLarge(error)) return this.#oneByOne(lot)
      // Nobody knows how far that came. What is sent next must not depend on it.
      this.#drop()
      return lot.map(() => ({ error }))
    }
  }

  /** The topic takes less than others do. */
  async #oneByOne(lot: readonly Outgoing[]): Promise<Outcome<void>[]> {
    const outcomes: Outcome<void>[] = []
    for (const outgoing of lot) outcomes.push(...(await this.#sendLot([outgoing])))
    return outcomes
  }
}

/** As much as goes at once. */
export function* lotsOf(all: readonly Outgoing[]): Generator<readonly Outgoing[]> {
  let lot = new Lot()
  let start = 0
  for (const [at, outgoing] of all.entries()) {
    if (lot.takes(outgoing)) continue
    yield all.slice(start, at)
    start = at
    lot = new Lot()
    lot.takes(outgoing)
  }
  if (start < all.length) yield all.slice(start)
}

/** Each partition has its own batch of it. What has no partition yet may come to lie in any. */
class Lot {
  readonly #sizes = new Map<string, number[]>()
  #largest = 0
  #loose = 0
  #bytes = 0

  takes({ topic, partition, written }: Outgoing): boolean {
    const size = sizeOf(written)
    const sizes = this.#sizesIn(topic)
    const own = partition === undefined ? 0 : (sizes[partition] ?? 0) + size
    const largest = Math.max(this.#largest, own)
    const loose = partition === undefined ? this.#loose + size : this.#loose
    const bytes = this.#bytes + size
    const isTooMuch = largest + loose > maxBatchBytes || bytes > maxLotBytes
    if (isTooMuch && this.#bytes > 0) return false
    if (partition !== undefined) sizes[partition] = own
    this.#largest = largest
    this.#loose = loose
    this.#bytes = bytes
    return true
  }

  #sizesIn(topic: string): number[] {
    let sizes = this.#sizes.get(topic)
    if (!sizes) this.#sizes.set(topic, (sizes = []))
    return sizes
  }
}

function isTooLarge(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return isRefusal(cause, 'MESSAGE_TOO_LARGE') || isRefusal(cause, 'RECORD_LIST_TOO_LARGE')
}

export function messageOf({ topic, written, partition }: Outgoing): MessageToProduce {
  const { value, headers, key } = written
  // The client sends nulls as they are, though its types do not say so.
  const message: MessageToProduce = {
    topic,
    value: value as Buffer,
    headers: headers as Map<Buffer, Buffer>,
  }
  if (key) message.key = key
  // The client takes this number modulo the count of partitions.
  if (partition !== undefined) message.partition = partition
  else if (key) message.partition = hashOf(key)
  return message
}
