import { FetchIsolationLevels, txnOffsetCommitV3, type Producer } from '@platformatic/kafka'
import { retry } from '../../clock/retry.ts'
import { RedriveError } from '../../errors.ts'
import { requestBroker, type Cluster } from './cluster.ts'
import { isRefusal } from './errors.ts'
import { toCommitTopics, type CommittedOffset, type Group, type Membership } from './group.ts'
import { readTransactionEnd, type TopicPartition } from './record.ts'
import { splitBySize, toMessage, type OutgoingRecord } from './sender.ts'

type Transaction = Awaited<ReturnType<Producer['beginTransaction']>>

const maxBytes = 1024 ** 2
const epochs = { currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: maxBytes }

/** Offsets of a group that are committed in a transaction. */
export interface TransactionOffsets {
  group: Group
  /** The membership of the group when the offsets were read. */
  membership: Membership
  offsets: readonly CommittedOffset[]
}

/** Answers to a producer that another producer with its id, or the broker, has replaced. */
const fencedErrors = ['PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH']
/**
 * INVALID_PRODUCER_ID_MAPPING: the broker has removed an idle id (transactional.id.expiration.ms).
 * A restart as the same producer tells whether another producer has taken the id since then.
 */
const endedErrors = [...fencedErrors, 'INVALID_TXN_STATE', 'INVALID_PRODUCER_ID_MAPPING']

/**
 * Sends records and commits offsets of a group in transactions, one at a time. A transactor with
 * the same id takes over: the open transaction of the former one is aborted, and its calls reject.
 */
export class Transactor {
  readonly #cluster: Cluster
  readonly #id: string
  readonly #transactionMs: number
  readonly #closing = new AbortController()
  #producer: Producer | undefined
  #identity = { producerId: -1n, producerEpoch: -1 }
  #last: Promise<void> = Promise.resolve()
  #lost: RedriveError | undefined

  /** The broker aborts a transaction that is open for longer than `transactionMs`. */
  constructor(cluster: Cluster, transactionalId: string, transactionMs = 60_000) {
    this.#cluster = cluster
    this.#id = transactionalId
    this.#transactionMs = transactionMs
  }

  /** Takes over the id. Otherwise the first `send` does. */
  open(): Promise<void> {
    return this.#enqueue(async () => void (await this.#connect()))
  }

  /**
   * Resolves when all of it is committed. Rejects when nothing of it is: it can be sent again
   * unless the code is LEASE_LOST. Waits until the outcome is known, even if brokers are
   * unreachable; an aborted signal ends the wait, and sending again can then send twice.
   */
  send(
    outgoing: readonly OutgoingRecord[],
    offsets?: TransactionOffsets,
    signal?: AbortSignal,
  ): Promise<void> {
    return this.#enqueue(() => this.#send(outgoing, offsets, signal))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#last
    await this.#dropProducer()
  }

  #enqueue(act: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(act)
    this.#last = turn.catch(() => {})
    return turn
  }

  async #send(
    outgoing: readonly OutgoingRecord[],
    offsets: TransactionOffsets | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (outgoing.length === 0 && !offsets?.offsets.length) return
    const producer = await this.#connect()
    const startMs = this.#cluster.clock.mono()
    const { producerId } = this.#identity
    let transaction: Transaction
    let sent: (TopicPartition & { offset: bigint }) | undefined
    try {
      transaction = await this.#cluster.call(() => producer.beginTransaction(this.#identity))
      for (const batch of splitBySize(outgoing)) {
        const request = { messages: batch.map(toMessage), acks: -1 }
        sent = (await this.#cluster.call(() => transaction.send(request))).offsets?.[0]
      }
      if (offsets?.offsets.length) await this.#addOffsets(producer, transaction, offsets)
    } catch (error) {
      await this.#restart(error, startMs)
      throw this.#lost ?? error
    }
    const refusal = await this.#retry(() => this.#commit(transaction), signal)
    if (!refusal) return
    await this.#restart(refusal, startMs)
    // Offsets alone can be committed again.
    if (sent && (await this.#retry(() => this.#isCommitted(sent, producerId), signal))) return
    throw this.#lost ?? refusal
  }

  /** Initializes a producer with our id, which aborts the open transaction of the id. */
  async #connect(): Promise<Producer> {
    if (this.#lost) throw this.#lost
    if (this.#closing.signal.aborted)
      throw new RedriveError('CLOSED', `the transactor ${this.#id} is closed`)
    if (this.#producer) return this.#producer
    const producer = this.#cluster.producer({
      transactionalId: this.#id,
      timeout: this.#transactionMs,
      retries: 20,
      // The broker completes the former transaction a few milliseconds after its answer.
      retryDelay: (_client, _operation, attempt, _retries, error) =>
        isRefusal(error, 'CONCURRENT_TRANSACTIONS') ? 3 * attempt : 200,
    })
    try {
      const transaction = await this.#cluster.call(() => producer.beginTransaction(this.#identity))
      await transaction.cancel()
    } catch (error) {
      producer.close(true).catch(() => {})
      this.#checkFenced(error)
      throw this.#lost ?? error
    }
    const { producerId = -1n, producerEpoch = -1 } = producer
    this.#identity = { producerId, producerEpoch }
    return (this.#producer = producer)
  }

  /** `Transaction.addOffset` adds one partition at a time and no metadata. */
  async #addOffsets(
    producer: Producer,
    transaction: Transaction,
    { group: { consumer }, membership, offsets }: TransactionOffsets,
  ): Promise<void> {
    const { producerId, producerEpoch } = this.#identity
    const { generationId, memberId } = membership
    const topics = toCommitTopics(offsets)
    await this.#cluster.call(async () => {
      await transaction.addConsumer(consumer)
      const ids = [this.#id, consumer.groupId, producerId, producerEpoch] as const
      const request = [...ids, generationId, memberId, null, topics] as const
      const coordinator = await consumer.findGroupCoordinator()
      await requestBroker(producer, coordinator, txnOffsetCommitV3.api, ...request)
    })
  }

  /**
   * Returns the refusal of the broker if the transaction ended without us, committed or not.
   * Rejects when the outcome is unknown: a commit can be repeated.
   */
  async #commit(transaction: Transaction): Promise<unknown> {
    try {
      await this.#cluster.call(() => transaction.commit())
      return undefined
    } catch (error) {
      if (isRefusal(error, ...endedErrors)) return error
      throw error
    }
  }

  /** Looks for the control batch that the broker writes at the end of a transaction. */
  async #isCommitted(
    { topic, partition, offset }: TopicPartition & { offset: bigint },
    producerId: bigint,
  ): Promise<boolean> {
    const consumer = this.#cluster.consumer({ groupId: this.#id, retries: 1 })
    try {
      consumer.topics.track(topic)
      const { topics } = await this.#cluster.call(() => consumer.metadata({ topics: [topic] }))
      const { id: topicId = '', partitions } = topics.get(topic) ?? {}
      const node = partitions?.[partition]?.leader ?? -1
      const isolationLevel = FetchIsolationLevels.READ_UNCOMMITTED
      for (let fetchOffset = offset; ;) {
        const wanted = [{ topicId, partitions: [{ partition, fetchOffset, ...epochs }] }]
        const request = { node, topics: wanted, isolationLevel, maxWaitTime: 0, maxBytes }
        const { responses } = await this.#cluster.call(() => consumer.fetch(request))
        const batches = responses[0]?.partitions[0]?.records ?? []
        for (const batch of batches) {
          const end = readTransactionEnd(batch)
          if (end && batch.producerId === producerId) return end === 'commit'
          fetchOffset = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
        }
        if (batches.length === 0) throw new Error('the transaction has not ended')
      }
    } finally {
      await consumer.close(true).catch(() => {})
    }
  }

  /** Repeats until there is an answer, the transactor is closed or the signal aborts. */
  async #retry<T>(act: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { clock } = this.#cluster
    const stop = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])])
    try {
      return await retry({ clock, signal: stop, firstMs: 100, maxMs: 2000 }, act)
    } catch (cause) {
      await this.#dropProducer()
      const message = `the transactor ${this.#id} was stopped before the broker answered: the transaction may be committed`
      throw new RedriveError('MAILBOX_UNAVAILABLE', message, { cause })
    }
  }

  /** Aborts what the broker may have open, by a new producer with the same identity. */
  async #restart(cause: unknown, startMs: number): Promise<void> {
    // A transaction that took too long is fenced too, by the broker. Its transactor continues.
    const isInTime = this.#cluster.clock.mono() - startMs < this.#transactionMs / 2
    if (isInTime) this.#checkFenced(cause)
    await this.#dropProducer()
    // After a failure, the next send tries again.
    await this.#connect().catch(() => {})
  }

  #checkFenced(cause: unknown): void {
    if (!isRefusal(cause, ...fencedErrors)) return
    const message = `another process sends transactions as ${JSON.stringify(this.#id)} now: this one can no longer send`
    this.#lost = new RedriveError('LEASE_LOST', message, { cause })
  }

  async #dropProducer(): Promise<void> {
    const producer = this.#producer
    this.#producer = undefined
    await producer?.close(true).catch(() => {})
  }
}
