import type { Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'
import { hasCode, type RedriveError } from '../../errors.ts'
import { Batcher } from '../../backends/batcher.ts'
import { faultOf, isLaterStatus, type Fault } from '../../backends/opensearch/errors.ts'
import {
  busyDelay,
  maxBusyAttempts,
  type OpensearchConnection,
} from '../../backends/opensearch/connection.ts'

/**
 * The version of a document when it was read: a write with it succeeds only if the document is
 * unchanged.
 */
export interface Mark {
  seqNo: number
  term: number
}

export interface Found<T> {
  id: string
  mark: Mark
  source: T
}

/**
 * Every document has the id of its last write, so that a write whose answer was lost can be
 * distinguished from another one.
 */
export interface Stamped {
  stamp?: string
}

export type Write<T> =
  | { id: string; put: T; at: Mark | 'new' }
  | { id: string; drop: true; at: Mark }

export type Written = { done: true; mark: Mark } | { done: false }

/** The result of a write, or why the server rejected it. */
export type Attempt = Written | { done: false; fault: RedriveError }

export interface Hit<T> {
  id: string
  source: T
  /** The sort values: where the next page starts. */
  place: (string | number)[]
}

/** The result of a search. */
export interface Results<T> {
  hits: Hit<T>[]
  /**
   * Counts by value, if the search has an aggregation named `counts`, and where their next page
   * starts.
   */
  counts: [value: string, count: number][]
  nextCounts?: Record<string, string>
}

interface RawResults<T> {
  status: number
  error?: Fault
  hits: { hits: { _id: string; _source: T; sort?: (string | number)[] }[] }
  aggregations?: {
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

/** Valid document ids; no others are requested. */
const isId = (id: string): boolean => id !== '' && Buffer.byteLength(id) <= 512

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
    this.#refreshes = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, async (asks) => {
      await connection.request({ method: 'POST', path: `/${index}/_refresh` })
      return asks.map(() => ({ value: null }))
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
    atOnce = maxReadDocuments,
  ): Promise<Map<string, Found<T>>> {
    const found = new Map<string, Found<T>>()
    const asked = [...new Set(ids)].filter(isId)
    for (let at = 0; at < asked.length; at += atOnce) {
      const { body } = await this.#connection.request<{ docs: RawDocument<T>[] }>({
        method: 'POST',
        path: `/${this.index}/_mget`,
        ...(fields ? { query: { _source_includes: fields.join() } } : {}),
        body: { ids: asked.slice(at, at + atOnce) },
      })
      for (const { found: isThere, _id: id, _source: source, ...raw } of body.docs) {
        const { error, _seq_no: seqNo, _primary_term: term } = raw
        // A shard cannot be read at present: it is unknown whether the document exists.
        if (error) throw faultOf(503, error, this.#node)
        if (isThere) found.set(id, { id, mark: { seqNo, term }, source })
      }
    }
    return found
  }

  /**
   * Writes each document separately, and only if it is unchanged since it was read. Returns results
   * in the given order.
   */
  async write(writes: readonly Write<T>[]): Promise<Written[]> {
    return (await this.attempt(writes)).map((one) => {
      if ('fault' in one) throw one.fault
      return one
    })
  }

  /** Like `write`, but a rejected document does not fail the others. */
  async attempt(writes: readonly Write<T>[]): Promise<Attempt[]> {
    const results: Attempt[] = []
    let lines: Line[] = []
    let size = 0
    const send = async (): Promise<void> => {
      if (lines.length > 0) results.push(...(await this.#sendFitting(lines)))
      lines = []
      size = 0
    }
    for (const write of writes) {
      const line = lineOf(write, this.#clock.id())
      if (size + line.text.length > maxWriteChars || lines.length >= maxWriteDocuments) await send()
      lines.push(line)
      size += line.text.length
    }
    await send()
    return results
  }

  async search(body: object): Promise<Results<T>> {
    const path = `/${this.index}/_search`
    return resultsOf(
      (await this.#connection.request<RawResults<T>>({ method: 'POST', path, body })).body,
    )
  }

  /** Several searches in one request. */
  async searches(bodies: readonly object[]): Promise<Results<T>[]> {
    if (bodies.length === 0) return []
    const lines = bodies.map((body) => `{}\n${JSON.stringify(body)}\n`).join('')
    const request = { method: 'POST', path: `/${this.index}/_msearch`, lines } as const
    const { body } = await this.#connection.request<{ responses: RawResults<T>[] }>(request)
    return body.responses.map((raw) => {
      if (raw.error) throw faultOf(raw.status, raw.error, this.#node)
      return resultsOf(raw)
    })
  }

  async count(query: object): Promise<number> {
    const path = `/${this.index}/_count`
    return (
      await this.#connection.request<{ count: number }>({ method: 'POST', path, body: { query } })
    ).body.count
  }

  /**
   * Sends lines; one by one if they are too large for one request, so that only a line that is too
   * large itself is rejected.
   */
  async #sendFitting(lines: Line[]): Promise<Attempt[]> {
    try {
      return await this.#send(lines)
    } catch (fault) {
      if (!hasCode(fault, 'TOO_LARGE')) throw fault
      if (lines.length === 1) return [{ done: false, fault }]
      const results: Attempt[] = []
      for (const line of lines) results.push(...(await this.#sendFitting([line])))
      return results
    }
  }

  /** Sends lines, and again those that the server was too busy for. */
  async #send(lines: Line[]): Promise<Attempt[]> {
    const results = new Map<Line, Attempt>()
    const backoff = new Backoff(this.#connection.clock, busyDelay)
    let left = lines
    for (let tries = 1; left.length > 0; tries++) {
      const { body, repeated } = await this.#connection.write<{
        items: Record<string, BulkItem>[]
      }>(this.index, left.map(({ text }) => text).join(''))
      const turnedAway: Line[] = []
      const doubtful: Line[] = []
      for (const [at, line] of left.entries()) {
        const item = Object.values(body.items[at]!)[0]!
        if (isLaterStatus(item.status) && tries < maxBusyAttempts) turnedAway.push(line)
        else if (repeated && (item.status === 409 || item.status === 404)) doubtful.push(line)
        else results.set(line, this.#written(item))
      }
      for (const [line, written] of await this.#lookBack(doubtful)) results.set(line, written)
      left = turnedAway
      if (left.length > 0) await backoff.wait()
    }
    return lines.map((line) => results.get(line)!)
  }

  #written({ status, error, _seq_no: seqNo, _primary_term: term }: BulkItem): Attempt {
    if (status < 300) return { done: true, mark: { seqNo: seqNo!, term: term! } }
    if (status === 409 || (status === 404 && !error)) return { done: false }
    return { done: false, fault: faultOf(status, error, this.#node) }
  }

  /** Whether a rejected write was executed by an earlier attempt whose answer was lost. */
  async #lookBack(lines: readonly Line[]): Promise<Map<Line, Written>> {
    const now = await this.read(lines.map(({ id }) => id))
    return new Map(
      lines.map((line): [Line, Written] => {
        const found = now.get(line.id)
        const mine = line.stamp === undefined ? !found : found?.source.stamp === line.stamp
        const mark = found?.mark ?? { seqNo: 0, term: 0 }
        return [line, mine ? { done: true, mark } : { done: false }]
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

function resultsOf<T>({ hits, aggregations }: RawResults<T>): Results<T> {
  const { buckets = [], after_key: nextCounts } = aggregations?.counts ?? {}
  return {
    hits: hits.hits.map(({ _id: id, _source: source, sort: place = [] }) => ({
      id,
      source,
      place,
    })),
    counts: buckets.map(({ key: { value }, doc_count: count }) => [value, count]),
    ...(nextCounts && buckets.length > 0 ? { nextCounts } : {}),
  }
}

/** One write as a line of a bulk request. */
interface Line {
  id: string
  /** Absent for a removal. */
  stamp?: string
  text: string
}

function lineOf<T extends Stamped>(write: Write<T>, stamp: string): Line {
  const { id, at } = write
  const guard = at === 'new' ? {} : { if_seq_no: at.seqNo, if_primary_term: at.term }
  const target = { _id: id, ...guard }
  if ('drop' in write) return { id, text: `${JSON.stringify({ delete: target })}\n` }
  const action = at === 'new' ? { create: target } : { index: target }
  const text = `${JSON.stringify(action)}\n${JSON.stringify({ ...write.put, stamp })}\n`
  return { id, stamp, text }
}
