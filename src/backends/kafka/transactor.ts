import { FetchIsolationLevels, type Producer, type txnOffsetCommitV4 } from '@platformatic/kafka'
import { sleep } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { endIn } from './aborted.ts'
import { askBroker, type Cluster } from './cluster.ts'
import { committed, type Group, type Member, type Place, type Position } from './group.ts'
import { lotsOf, messageOf, type Outgoing } from './sender.ts'
import { isRefusal } from './errors.ts'

type Transaction = Awaited<ReturnType<Producer['beginTransaction']>>
type TxnOffsetCommitRequest = Parameters<typeof txnOffsetCommitV4.createRequest>

/** A transaction that takes longer is given up by the broker, so that those who read behind it need not wait for ever. */
const usualMs = 60_000
/** The broker finishes the last transaction for a moment after it has answered. */
const momentMs = 3
const retries = 20
const retryMs = 200
const maxBytes = 1024 ** 2
const firstPauseMs = 100
const longestPauseMs = 2000

/** Whose offsets, and how far. */
export interface Offsets {
  group: Group
  /** Who we were in the group when this was true. */
  member: Member
  positions: readonly Position[]
}

/** Where a record of a transaction lies. */
interface Landed extends Place {
  offset: bigint
  producerId: bigint
}

/**
 * Said to whoever sent nothing for so long that the broker forgot it (transactional.id.expiration.ms), and to whoever was taken over after
 * that. Who starts over as the same sender hears which: the former gets a new name, the latter is refused.
 */
const forgotten = 'INVALID_PRODUCER_ID_MAPPING'
const anyEpoch = { currentLeaderEpoch: -1, lastFetchedEpoch: -1 }

/**
 * Sends records and commits the offsets of a group, all or nothing. One transaction at a time. Whoever comes later with the same id takes
 * it over: what the former has open comes to nothing, and each later call of the former is refused.
 */
export class Transactor {
  readonly #cluster: Cluster
  readonly #id: string
  readonly #transactionMs: number
  readonly #closing = new AbortController()
  #producer: Producer | undefined
  /** Who we are to the broker. Whoever took the id over is somebody else. */
  #self = { producerId: -1n, producerEpoch: -1 }
  #last: Promise<void> = Promise.resolve()
  #lost: RedriveError | undefined

  /** A transaction that is open for longer than `transactionMs` is given up by the broker. */
  constructor(cluster: Cluster, transactionalId: string, transactionMs = usualMs) {
    this.#cluster = cluster
    this.#id = transactionalId
    this.#transactionMs = transactionMs
  }

  /** Takes the id over: from now on, nothing of those who had it before comes through. Else the first call of `carry` does it. */
  open(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#ready()
    })
  }

  /**
   * Resolved: all of it is committed. Rejected: nothing of it is, and it can be done again, unless the code is LEASE_LOST. It takes as long
   * as it takes to know, also when brokers are away; whoever gives up waiting, by the signal or otherwise, and sends it again may send it
   * twice.
   */
  carry(outgoing: readonly Outgoing[], offsets?: Offsets, signal?: AbortSignal): Promise<void> {
    return this.#inTurn(() => this.#carry(outgoing, offsets, signal))
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#last
    await this.#drop()
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(act)
    this.#last = turn.catch(() => {})
    return turn
  }

  async #carry(
    outgoing: readonly Outgoing[],
    offsets: Offsets | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (outgoing.length === 0 && !offsets?.positions.length) return
    const producer = await this.#ready()
    const begunMs = this.#cluster.clock.mono()
    let transaction: Transaction
    let landed: Landed | undefined
    try {
      transaction = await this.#cluster.call(() => producer.beginTransaction(this.#self))
      for (const lot of lotsOf(outgoing)) landed = await this.#send(transaction, lot)
      if (offsets?.positions.length) await this.#commitOffsets(producer, transaction, offsets)
    } catch (error) {
      await this.#startOver(error, begunMs)
      throw this.#lost ?? error
    }
    const refusal = await this.#persist(() => this.#tryCommit(transaction), signal)
    if (!refusal) return
    await this.#startOver(refusal, begunMs)
    // Offsets alone may be committed again.
    if (landed && (await this.#persist(() => this.#isCommitted(landed), signal))) return
    throw this.#lost ?? refusal
  }

  /** A producer that is the only one with our id. What it had open before comes to nothing. */
  async #ready(): Promise<Producer> {
    if (this.#lost) throw this.#lost
    if (this.#closing.signal.aborted)
      throw new RedriveError('CLOSED', 'this sender of transactions is closed')
    if (this.#producer) return this.#producer
    const producer = this.#cluster.producer({
      transactionalId: this.#id,
      timeout: this.#transactionMs,
      retries,
      retryDelay: (_client, _operation, attempt, _retries, error) =>
        isRefusal(error, 'CONCURRENT_TRANSACTIONS') ? momentMs * attempt : retryMs,
    })
    try {
      const begun = await this.#cluster.call(() => producer.beginTransaction(this.#self))
      await begun.cancel()
    } catch (error) {
      producer.close(true).catch(() => {})
      if (isFenced(error)) this.#lost = lostTo(this.#id, error)
      throw this.#lost ?? error
    }
    const { producerId = -1n, producerEpoch = -1 } = producer
    this.#self = { producerId, producerEpoch }
    this.#producer = producer
    return producer
  }

  async #send(transaction: Transaction, lot: readonly Outgoing[]): Promise<Landed | undefined> {
    const messages = lot.map(messageOf)
    const { offsets } = await this.#cluster.call(() => transaction.send({ messages, acks: -1 }))
    const [first] = offsets ?? []
    return first && { ...first, producerId: this.#self.producerId }
  }

  /** With notes, and for all partitions at once, which the client cannot. */
  async #commitOffsets(
    producer: Producer,
    transaction: Transaction,
    { group: { consumer }, member: { generationId, memberId }, positions }: Offsets,
  ): Promise<void> {
    const { groupId } = consumer
    const { producerId, producerEpoch } = this.#self
    const asked: TxnOffsetCommitRequest = [
      this.#id,
      groupId,
      producerId,
      producerEpoch,
      generationId,
      memberId,
      null,
      committed(positions),
    ]
    await this.#cluster.call(async () => {
      await transaction.addConsumer(consumer)
      const node = await consumer.findGroupCoordinator()
      await askBroker(producer, node, 'TxnOffsetCommit', asked)
    })
  }

  /**
   * An answer that was lost is asked for again: to say twice that the same transaction is committed is to say it once. What it gives is a
   * refusal: the transaction ended without us, one way or the other.
   */
  async #tryCommit(transaction: Transaction): Promise<unknown> {
    try {
      await this.#cluster.call(() => transaction.commit())
      return undefined
    } catch (error) {
      const isOver = ['INVALID_TXN_STATE', forgotten].some((id) => isRefusal(causeOf(error), id))
      if (isFenced(error) || isOver) return error
      throw error
    }
  }

  /** The broker marks the end of a transaction in each partition that has records of it. */
  async #isCommitted({ topic, partition, offset, producerId }: Landed): Promise<boolean> {
    const consumer = this.#cluster.consumer({ groupId: this.#id, retries: 1 })
    try {
      consumer.topics.track(topic)
      const { topics } = await this.#cluster.call(() => consumer.metadata({ topics: [topic] }))
      const found = topics.get(topic)
      const node = found?.partitions[partition]?.leader ?? -1
      for (let fetchOffset = offset; ;) {
        const parts = [{ partition, fetchOffset, ...anyEpoch, partitionMaxBytes: maxBytes }]
        const { responses } = await this.#cluster.call(() =>
          consumer.fetch({
            node,
            topics: [{ topicId: found?.id ?? '', partitions: parts }],
            isolationLevel: FetchIsolationLevels.READ_UNCOMMITTED,
            maxWaitTime: 0,
            minBytes: 1,
            maxBytes,
          }),
        )
        const batches = responses[0]?.partitions[0]?.records ?? []
        const end = batches.find((batch) => batch.producerId === producerId && endIn(batch))
        if (end) return endIn(end) === 'commit'
        const last = batches.at(-1)
        if (!last) throw new Error('the transaction has not ended')
        fetchOffset = last.firstOffset + BigInt(last.lastOffsetDelta) + 1n
      }
    } finally {
      await consumer.close(true).catch(() => {})
    }
  }

  /** Until there is an answer, or nobody waits for it any more. */
  async #persist<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const { clock } = this.#cluster
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs))
      try {
        return await ask()
      } catch (error) {
        const over = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])])
        if (over.aborted) {
          // What comes next begins anew, and ends what is open.
          await this.#drop()
          throw unknown(error)
        }
        await sleep(clock, pauseMs * (0.5 + clock.random()), over)
      }
  }

  /** It is not known how far the broker came. What comes next begins anew, as the same sender, and ends what was open. */
  async #startOver(why: unknown, begunMs: number): Promise<void> {
    // Whoever takes too long is refused like whoever was taken over, and may go on.
    const isInTime = this.#cluster.clock.mono() - begunMs < this.#transactionMs / 2
    if (isFenced(why) && isInTime) this.#lost = lostTo(this.#id, why)
    await this.#drop()
    // If that fails, the next one does it.
    await this.#ready().catch(() => {})
  }

  async #drop(): Promise<void> {
    const producer = this.#producer
    this.#producer = undefined
    await producer?.close(true).catch(() => {})
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof RedriveError ? error.cause : error
}

/** Said to whoever was taken over, and to whoever took too long. */
function isFenced(error: unknown): boolean {
  const cause = causeOf(error)
  return ['PRODUCER_FENCED', 'INVALID_PRODUCER_EPOCH'].some((id) => isRefusal(cause, id))
}

function lostTo(id: string, cause: unknown): RedriveError {
  return new RedriveError(
    'LEASE_LOST',
    `somebody else sends transactions as ${JSON.stringify(id)} now; nothing more of ours comes through`,
    { cause },
  )
}

function unknown(cause: unknown): RedriveError {
  return new RedriveError(
    'MAILBOX_UNAVAILABLE',
    'closed or stopped before the broker said whether the transaction is committed',
    { cause },
  )
}
