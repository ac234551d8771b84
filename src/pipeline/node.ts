import type { BaseOptions } from '@platformatic/kafka'
import { systemClock, type Clock } from '../clock/clock.ts'
import { Cluster } from '../backends/kafka/cluster.ts'
import type { StoredRecord, NewRecord } from '../backends/kafka/record.ts'
import type { OutgoingRecord } from '../backends/kafka/sender.ts'
import { Transactor } from '../backends/kafka/transactor.ts'
import { Caller, isPromise, type CallResult } from './caller.ts'
import { documentOf, putAway, withoutDocument } from './documents/references.ts'
import type { DocumentStore } from './documents/documents.ts'
import { keyOfDead, seal } from './dead/envelope.ts'
import type { ErrorType } from './error-type.ts'
import type { PipelineEvent } from './events.ts'
import { givenUp, noStore, tooFar, tooLarge, unwritable } from './give-up-reasons.ts'
import { incoming, type Incoming } from './incoming.ts'
import { isSpent, lineageIn, withoutLineage, type Headers } from './dead/lineage.ts'
import type { Module } from './modules/module.ts'
import { Reader, type Turn } from './reader.ts'
import { nodeSettings, type Edge, type NodeInput, type NodeSettings } from './graph/settings.ts'
import { log, passed, writeStream, type PipeStream } from './stream.ts'
import { createTopics } from './graph/topic-setup.ts'
import type { Work } from './work.ts'

export interface PipelineNodeOptions {
  /** `kafka://user:password@host:9092,other:9092`, or `kafkas://` over TLS. */
  url: string
  /** The node, from a graph or created directly. */
  node: NodeInput
  module: Module
  /** Stores documents that are too large for records. */
  documents?: DocumentStore
  /**
   * Sends results and commits offsets in one transaction: readers with read_committed get each
   * record once. Slower. Default: false; a process that dies in between sends the results of its
   * last records again.
   */
  transactional?: boolean
  /** All processes of one group share the work. Default: derived from the names of the node. */
  groupId?: string
  onEvent?: (event: PipelineEvent) => void
  clock?: Clock
  /** Further options of the connection: certificates, another authentication. */
  connection?: Partial<BaseOptions>
  /**
   * A process that is silent for this long is removed from the group, and others continue. Default:
   * 10 seconds.
   */
  sessionMs?: number
  /** How long running calls may take when a partition is revoked. Default: 10 seconds. */
  drainMs?: number
  /** Time limit of a call to Kafka. Default: 5 seconds. */
  timeoutMs?: number
}

/** Readers with read_committed wait for transactions that a dead process left open. */
const transactionMs = 10_000

/**
 * A node of a graph: reads its topic as a member of a group, calls its module for each record, and
 * sends the result to the next nodes. A record that it gives up on is in its DLQ topic, confirmed
 * by the broker, before it counts as done.
 */
export class PipelineNode {
  readonly settings: NodeSettings
  readonly #options: PipelineNodeOptions
  readonly #clock: Clock
  readonly #cluster: Cluster
  readonly #reader: Reader
  readonly #caller: Caller
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  constructor(options: PipelineNodeOptions) {
    const { url, clock = systemClock, connection, timeoutMs = 5000, sessionMs = 10_000 } = options
    const { transactional = false, drainMs = 10_000 } = options
    this.#options = options
    this.#clock = clock
    const settings = (this.settings = nodeSettings(options.node))
    const reaching = { url, clock, timeoutMs, clientId: 'redrive-pipeline' }
    const cluster = (this.#cluster = new Cluster(
      connection ? { ...reaching, connection } : reaching,
    ))
    this.#caller = new Caller({
      clock,
      module: options.module,
      settings,
      onRetry: (streamId, retry, { errorType }) =>
        this.#emit({ type: 'retry', streamId, retry, errorType }),
    })
    const { groupId = `redrive.${settings.inputTopic}` } = options
    this.#reader = new Reader({
      cluster,
      groupId,
      topics: [settings.inputTopic],
      sessionMs,
      concurrency: settings.concurrency,
      aloneFrom: Math.min(2, settings.maxDeliveries - 1),
      drainMs,
      work: (record, turn) => this.#work(record, turn),
      onError: (error) => this.#emit({ type: 'error', error }),
      ...(transactional
        ? { transactor: new Transactor(cluster, `${groupId}.${clock.id()}`, transactionMs) }
        : {}),
    })
  }

  /** Creates missing topics, and starts. May be called twice. */
  async start(): Promise<void> {
    this.#starting ??= this.#begin().catch((error: unknown) => {
      this.#starting = undefined
      throw error
    })
    await this.#starting
  }

  /**
   * Accepts no more records, waits for running calls, and leaves the group. Unfinished records are
   * delivered again, uncounted. May be called twice.
   */
  async stop(options: { drainMs?: number } = {}): Promise<void> {
    await this.#starting?.catch(() => {})
    this.#stopping ??= this.#reader.stop(options.drainMs)
    await this.#stopping
    this.#caller.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #begin(): Promise<void> {
    for (const problem of await createTopics(this.#cluster, [this.settings]))
      this.#emit({ type: 'error', error: problem })
    this.#reader.start()
  }

  /** The messages to send for this record: to the next nodes, or as a dead record. */
  #work(record: StoredRecord, { deliveries, signal }: Turn): Work | Promise<Work> {
    const { maxDeliveries, maxHops } = this.settings
    const come = incoming(record.value)
    if (!come)
      return this.#dead(
        record,
        undefined,
        givenUp('MALFORMED', 'the record is not a PipeStream'),
        0,
      )
    if (deliveries > maxDeliveries) {
      const message = `the process died ${maxDeliveries} times while it processed the record`
      return this.#dead(record, come, givenUp('CRASH_LOOP', message), maxDeliveries - 1)
    }
    if (maxHops > 0 && come.hopCount >= maxHops)
      return this.#dead(record, come, tooFar(come.stream, maxHops), 0)
    const { documents } = this.#options
    if (come.isElsewhere && !documents) return this.#dead(record, come, noStore(come.stream), 0)
    const fetch =
      documents && come.isElsewhere ? () => documentOf(come.stream, documents) : undefined
    const called = this.#caller.call(come, signal, fetch)
    return isPromise(called)
      ? called.then((ended) => this.#settle(record, come, ended, signal))
      : this.#settle(record, come, called, signal)
  }

  #settle(
    record: StoredRecord,
    come: Incoming,
    called: CallResult,
    { aborted }: AbortSignal,
  ): Work | Promise<Work> {
    if (aborted) return { outgoing: [] }
    if (called.kind === 'failed') return this.#dead(record, come, called.error, called.retries)
    if (called.kind === 'refused' && this.settings.dlq.deadLetterLogicalFailures)
      return this.#dead(record, come, givenUp('LOGICAL_FAILURE', called.error), called.retries)
    const { streamId } = come
    const done = (): void =>
      this.#emit(
        called.kind === 'refused'
          ? { type: 'logical-failure', streamId, message: called.error }
          : { type: 'routed', streamId },
      )
    if (this.settings.next.length === 0) return { outgoing: [], done }
    return this.#route(record, come, called, done)
  }

  /**
   * Sends to the next nodes, with key and headers. A document that the module rejected is unchanged
   * and marked.
   */
  async #route(
    record: StoredRecord,
    come: Incoming,
    called: Exclude<CallResult, { kind: 'failed' }>,
    done: () => void,
  ): Promise<Work> {
    const { next, maxInlineBytes, dlq } = this.settings
    const headers = withoutLineage(record.headers)
    let onwards: PipeStream
    let outgoing: OutgoingRecord[]
    try {
      onwards = this.#onwards(come, called)
      const closed = next.find(({ maxHops }) => maxHops > 0 && onwards.hopCount > maxHops)
      if (closed) return this.#dead(record, come, tooFar(onwards, closed.maxHops, closed.to), 0)
      outgoing = outgoingTo(next, onwards, headers, record.key)
    } catch (thrown) {
      return this.#dead(record, come, unwritable(thrown), 0)
    }
    const { content } = onwards
    await putAway(onwards, this.#options.documents, maxInlineBytes)
    if (onwards.content !== content) outgoing = outgoingTo(next, onwards, headers, record.key)
    if (!dlq.enabled) return { outgoing, done }
    return { outgoing, done, instead: () => this.#dead(record, come, tooLarge(next), 0) }
  }

  #onwards(come: Incoming, called: Exclude<CallResult, { kind: 'failed' }>): PipeStream {
    const { node } = this.settings
    const onwards = passed(come.stream, node)
    const atMs = this.#clock.now()
    if (called.kind === 'refused')
      log(onwards, { atMs, node, event: 'failed', message: called.error })
    else log(onwards, { atMs, node, event: 'processed' })
    if (called.kind === 'processed' && called.document)
      onwards.content = { case: 'document', value: called.document }
    return onwards
  }

  async #dead(
    record: StoredRecord,
    come: Incoming | undefined,
    error: ErrorType,
    retries: number,
  ): Promise<Work> {
    const { cluster, graph, node, dlq } = this.settings
    const { errorType, failure } = error
    // Without a DLQ nothing is dropped: the record is retried, and later ones with its key wait.
    if (!dlq.enabled) throw new Error(`${errorType}: ${failure.message} (this node has no DLQ)`)
    const { reprocessed, firstFailedMs } = lineageIn(record.headers)
    const quarantined = isSpent(reprocessed, dlq.maxReprocessCount)
    const failedMs = this.#clock.now()
    const bare =
      come && !dlq.includePayload
        ? await withoutDocument(come.stream, this.#options.documents)
        : undefined
    const topic = quarantined ? dlq.quarantineTopic : dlq.topic
    const value = seal({
      record,
      isStream: come !== undefined,
      ...(bare ? { value: writeStream(bare.stream) } : {}),
      cluster,
      graph,
      node,
      errorType,
      message: failure.message,
      ...(failure.code === undefined ? {} : { code: failure.code }),
      ...(failure.stack === undefined ? {} : { stack: failure.stack }),
      failedMs,
      firstFailedMs: firstFailedMs ?? failedMs,
      retries,
      reprocessed,
      quarantined,
      replayable: bare?.replayable ?? true,
    })
    const fields = { streamId: come?.streamId ?? '', errorType, message: failure.message, topic }
    return {
      outgoing: [
        { topic, record: written(value, headersOfDead(record, errorType), keyOfDead(record)) },
      ],
      done: () => this.#emit({ type: quarantined ? 'quarantined' : 'dead-lettered', ...fields }),
      failed: (error) => this.#emit({ type: 'publish-failed', topic, error }),
    }
  }

  #emit(event: Distributed<PipelineEvent>): void {
    const { onEvent } = this.#options
    if (!onEvent) return
    const { cluster, graph, node } = this.settings
    try {
      onEvent({ ...event, cluster, graph, node })
    } catch {
      // Errors of listeners are ignored.
    }
  }
}

/** An event without the fields that all events of a node share. */
type Distributed<E> = E extends unknown ? Omit<E, 'cluster' | 'graph' | 'node'> : never

/** Throws if the message cannot be encoded. */
function outgoingTo(
  next: readonly Edge[],
  stream: PipeStream,
  headers: Headers,
  key: Buffer | undefined,
): OutgoingRecord[] {
  return next.map(({ to, topic }) => {
    stream.currentNodeId = to
    return { topic, record: written(writeStream(stream), headers, key) }
  })
}

/**
 * Headers for people with other tools. The original headers are in the envelope, where there is
 * room.
 */
function headersOfDead({ headers }: StoredRecord, errorType: string): Headers {
  const trace = headers.filter(
    ([name, value]) => value && value.byteLength < 100 && name.toString() === 'traceparent',
  )
  return [[Buffer.from('redrive-error-type'), Buffer.from(errorType)], ...trace]
}

function written(value: Buffer, headers: Headers, key: Buffer | undefined): NewRecord {
  const map = new Map(headers.map(([name, text]) => [name, text] as const))
  return key ? { value, headers: map, key } : { value, headers: map }
}
