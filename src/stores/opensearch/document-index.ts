import type { Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'
import { hasCode, type RedriveError } from '../../errors.ts'
import { Batcher } from '../../backends/batcher.ts'
import { faultOf, isTemporaryStatus, type Fault } from '../../backends/opensearch/errors.ts'
import {
  busyDelay,
  maxBusyAttempts,
  type OpensearchConnection,
} from '../../backends/opensearch/connection.ts'

/**
 * The revision of a document when it was read. A write that expects it succeeds only if the
 * document is unchanged.
 */
export interface Revision {
  seqNo: number
  term: number
}

export interface ReadDocument<T> {
  id: string
  revision: Revision
  source: T
}

/**
 * Every document has the id of its last write, so that a write whose response was lost can be
 * distinguished from the write of another process.
 */
export interface Stamped {
  stamp?: string
}

export type Write<T> =
  | { id: string; put: T; expected: Revision | 'new' }
  | { id: string; drop: true; expected: Revision }

/** `done` is false if the document did not have the expected revision. */
export type Written = { done: true; revision: Revision } | { done: false }

/** The result of a write, or the error if the server rejected the document. */
export type WriteResult = Written | { done: false; error: RedriveError }

/** The values by which a hit is sorted. The next page starts after those of the last hit. */
export type SortValues = (string | number)[]

export interface Hit<T> {
  id: string
  source: T
  sortValues: SortValues
}

/** A search that is read page by page. `size` is the number of hits per page. */
interface PagedSearch {
  query: object
  sort: object[]
  size: number
  _source?: false | string[]
}

interface RawHits<T> {
  status: number
  error?: Fault
  hits: { hits: { _id: string; _source: T; sort?: SortValues }[] }
}

interface RawCounts {
  aggregations: {
    counts: {
      buckets: { key: { value: string }; doc_count: number }[]
      after_key?: Record<string, string>
    }
  }
}

/** Limits of one request. */
const maxReadDocuments = 32
const maxWriteDocuments = 500
const maxWriteChars = 8 * 2 ** 20

/** The server rejects a request with an invalid document id, so invalid ids are left out. */
const isValidId = (id: string): boolean => id !== '' && Buffer.byteLength(id) <= 512

interface BulkItem {
  status: number
  error?: Fault
  _seq_no?: number
  _primary_term?: number
}

/** The documents of one index: read in real time, written by compare-and-set. */
export class DocumentIndex<T extends Stamped> {
  readonly index: string
  readonly #connection: OpensearchConnection
  readonly #node: string
  readonly #clock: Clock
  readonly #refreshes: Batcher<null, null>

  constructor(connection: OpensearchConnection, node: string, index: string, clock: Clock) {
    this.#connection = connection
    this.#node = node
    this.index = index
    this.#clock = clock
    this.#refreshes = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, async (calls) => {
      await connection.request({ method: 'POST', path: `/${index}/_refresh` })
      return calls.map(() => ({ value: null }))
    })
  }

  /** Makes all earlier writes visible to searches. Concurrent callers share one refresh. */
  async refresh(): Promise<void> {
    await this.#refreshes.call(null)
  }

  /** Reads existing documents in real time. */
  async read(
    ids: Iterable<string>,
    fields?: readonly string[],
    batchSize = maxReadDocuments,
  ): Promise<Map<string, ReadDocument<T>>> {
    const documents = new Map<string, ReadDocument<T>>()
    const uniqueIds = [...new Set(ids)].filter(isValidId)
    for (let at = 0; at < uniqueIds.length; at += batchSize) {
      const { body } = await this.#connection.request<{ docs: RawDocument<T>[] }>({
        method: 'POST',
        path: `/${this.index}/_mget`,
        ...(fields ? { query: { _source_includes: fields.join() } } : {}),
        body: { ids: uniqueIds.slice(at, at + batchSize) },
      })
      for (const { found: exists, _id: id, _source: source, ...raw } of body.docs) {
        const { error, _seq_no: seqNo, _primary_term: term } = raw
        // A shard cannot be read at present: it is unknown whether the document exists.
        if (error) throw faultOf(503, error, this.#node)
        if (exists) documents.set(id, { id, revision: { seqNo, term }, source })
      }
    }
    return documents
  }

  async readOne(id: string): Promise<ReadDocument<T> | undefined> {
    return (await this.read([id])).get(id)
  }

  /**
   * Writes each document separately, and only if it is unchanged since it was read. Returns results
   * in the given order.
   */
  async write(writes: readonly Write<T>[]): Promise<Written[]> {
    return (await this.writeEach(writes)).map((result) => {
      if ('error' in result) throw result.error
      return result
    })
  }

  /** Like `write`, but a rejected document does not fail the others. */
  async writeEach(writes: readonly Write<T>[]): Promise<WriteResult[]> {
    const results: WriteResult[] = []
    let batch: Operation[] = []
    let size = 0
    const sendBatch = async (): Promise<void> => {
      if (batch.length > 0) results.push(...(await this.#sendFitting(batch)))
      batch = []
      size = 0
    }
    for (const write of writes) {
      const operation = operationOf(write, this.#clock.id())
      const { length } = operation.lines
      if (size + length > maxWriteChars || batch.length >= maxWriteDocuments) await sendBatch()
      batch.push(operation)
      size += length
    }
    await sendBatch()
    return results
  }

  async search(body: object): Promise<Hit<T>[]> {
    return hitsOf(await this.#search<RawHits<T>>(body))
  }

  /** All hits of a search, page by page, after the given sort values. */
  async *pages(body: PagedSearch, after?: SortValues): AsyncGenerator<Hit<T>[]> {
    do {
      const hits = await this.search({ ...body, ...(after ? { search_after: after } : {}) })
      yield hits
      after = hits.length === body.size ? hits.at(-1)!.sortValues : undefined
    } while (after)
  }

  /** Several searches in one request. */
  async searchAll(bodies: readonly object[]): Promise<Hit<T>[][]> {
    if (bodies.length === 0) return []
    const lines = bodies.map((body) => `{}\n${JSON.stringify(body)}\n`).join('')
    const request = { method: 'POST', path: `/${this.index}/_msearch`, lines } as const
    const { body } = await this.#connection.request<{ responses: RawHits<T>[] }>(request)
    return body.responses.map((raw) => {
      if (raw.error) throw faultOf(raw.status, raw.error, this.#node)
      return hitsOf(raw)
    })
  }

  /** Counts the matching documents by the values of a field, of which there may be many. */
  async countBy(field: string, query?: object): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    let after: Record<string, string> | undefined
    do {
      const sources = [{ value: { terms: { field } } }]
      const composite = { size: 1000, sources, ...(after ? { after } : {}) }
      const body = { ...(query ? { query } : {}), size: 0, aggs: { counts: { composite } } }
      const { buckets, after_key: next } = (await this.#search<RawCounts>(body)).aggregations.counts
      for (const { key, doc_count: count } of buckets) counts.set(key.value, count)
      after = buckets.length > 0 ? next : undefined
    } while (after)
    return counts
  }

  async #search<R>(body: object): Promise<R> {
    const path = `/${this.index}/_search`
    return (await this.#connection.request<R>({ method: 'POST', path, body })).body
  }

  async count(query: object): Promise<number> {
    const path = `/${this.index}/_count`
    return (
      await this.#connection.request<{ count: number }>({ method: 'POST', path, body: { query } })
    ).body.count
  }

  /**
   * Sends operations; one by one if they are too large for one request, so that only an operation
   * that is too large itself is rejected.
   */
  async #sendFitting(operations: Operation[]): Promise<WriteResult[]> {
    try {
      return await this.#send(operations)
    } catch (error) {
      if (!hasCode(error, 'TOO_LARGE')) throw error
      if (operations.length === 1) return [{ done: false, error }]
      const results: WriteResult[] = []
      for (const operation of operations) results.push(...(await this.#sendFitting([operation])))
      return results
    }
  }

  /** Sends operations, and sends those again for which the server was too busy. */
  async #send(operations: Operation[]): Promise<WriteResult[]> {
    const results = new Map<Operation, WriteResult>()
    const backoff = new Backoff(this.#connection.clock, busyDelay)
    let left = operations
    for (let attempt = 1; left.length > 0; attempt++) {
      const { body, repeated } = await this.#connection.write<{
        items: Record<string, BulkItem>[]
      }>(this.index, left.map(({ lines }) => lines).join(''))
      const postponed: Operation[] = []
      const uncertain: Operation[] = []
      for (const [at, operation] of left.entries()) {
        const item = Object.values(body.items[at]!)[0]!
        if (isTemporaryStatus(item.status) && attempt < maxBusyAttempts) postponed.push(operation)
        else if (repeated && (item.status === 409 || item.status === 404)) uncertain.push(operation)
        else results.set(operation, this.#resultOf(item))
      }
      for (const [operation, written] of await this.#checkExecuted(uncertain))
        results.set(operation, written)
      left = postponed
      if (left.length > 0) await backoff.wait()
    }
    return operations.map((operation) => results.get(operation)!)
  }

  #resultOf({ status, error, _seq_no: seqNo, _primary_term: term }: BulkItem): WriteResult {
    if (status < 300) return { done: true, revision: { seqNo: seqNo!, term: term! } }
    if (status === 409 || (status === 404 && !error)) return { done: false }
    return { done: false, error: faultOf(status, error, this.#node) }
  }

  /** Whether a rejected operation was executed by an earlier attempt whose response was lost. */
  async #checkExecuted(operations: readonly Operation[]): Promise<Map<Operation, Written>> {
    const documents = await this.read(operations.map(({ id }) => id))
    return new Map(
      operations.map((operation): [Operation, Written] => {
        const { id, stamp } = operation
        const document = documents.get(id)
        const executed = stamp === undefined ? !document : document?.source.stamp === stamp
        const revision = document?.revision ?? { seqNo: 0, term: 0 }
        return [operation, executed ? { done: true, revision } : { done: false }]
      }),
    )
  }
}

interface RawDocument<T> {
  _id: string
  found: boolean
  error?: Fault
  _seq_no: number
  _primary_term: number
  _source: T
}

function hitsOf<T>({ hits }: RawHits<T>): Hit<T>[] {
  return hits.hits.map(({ _id: id, _source: source, sort: sortValues = [] }) => ({
    id,
    source,
    sortValues,
  }))
}

/** One write of a bulk request. */
interface Operation {
  id: string
  /** Absent for a removal. */
  stamp?: string
  /** The lines of the request, as JSON. */
  lines: string
}

function operationOf<T extends Stamped>(write: Write<T>, stamp: string): Operation {
  const { id, expected } = write
  const isNew = expected === 'new'
  const condition = isNew ? {} : { if_seq_no: expected.seqNo, if_primary_term: expected.term }
  const target = { _id: id, ...condition }
  if ('drop' in write) return { id, lines: `${JSON.stringify({ delete: target })}\n` }
  const action = isNew ? { create: target } : { index: target }
  const lines = `${JSON.stringify(action)}\n${JSON.stringify({ ...write.put, stamp })}\n`
  return { id, stamp, lines }
}
