import type { Clock } from '../../clock/clock.ts'
import { Batcher } from '../../backends/batcher.ts'
import type { CountedAction, DeadLetter } from '../../letter/letter.ts'
import type { Total } from '../../store.ts'
import { hashOf } from './fields.ts'
import type { DocumentIndex, Hit, ReadDocument, Revision, Stamped } from './document-index.ts'
import { contentionError, maxAttempts } from './contention.ts'

/**
 * Totals of one queue, counted by one process or, in the base document, folded from several. The
 * sum over all documents of a queue is the total. A sealed document is no longer written and waits
 * to be folded.
 */
export interface TotalsDocument extends Stamped {
  kind: 'totals'
  name: string
  queue: string
  atMs: number
  totals: Total[]
  sealed?: true
  /**
   * In the base document: the folded documents, which no longer count although they may still
   * exist.
   */
  folded?: string[]
}

type Counted = Pick<DeadLetter, 'queue' | 'priority' | 'retries' | 'backoffMs'>

/** Totals by action, priority and queue. */
type TotalsMap = Map<string, Total>

/** The document of this process for one queue. */
interface OwnDocument {
  name: string
  revision: Revision | 'new'
  totals: TotalsMap
}

const dayMs = 86_400_000
/** Number of documents of one queue from which they are folded. */
const minFolded = 8

/** Counts actions on letters, and stores the totals in documents. */
export class Totals {
  readonly #documents: DocumentIndex<TotalsDocument>
  readonly #clock: Clock
  readonly #own = new Map<string, OwnDocument>()
  /** Counts by queue that are not written yet. */
  #pending = new Map<string, TotalsMap>()
  readonly #writer: Batcher<null, null>

  constructor(documents: DocumentIndex<TotalsDocument>, clock: Clock) {
    this.#documents = documents
    this.#clock = clock
    this.#writer = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, async (calls) => {
      await this.#write()
      return calls.map(() => ({ value: null }))
    })
  }

  count(action: CountedAction, letter: Counted): void {
    const { queue, priority, retries, backoffMs } = letter
    const total = { action, queue, priority, count: 1, retries, maxRetries: retries, backoffMs }
    let totals = this.#pending.get(queue)
    if (!totals) this.#pending.set(queue, (totals = new Map()))
    addTotal(totals, total)
  }

  /**
   * Writes the counts. The letters are already written, so a failure must not fail their operation:
   * the next flush writes the counts.
   */
  async flush(): Promise<void> {
    if (this.#pending.size > 0) await this.#writer.call(null).catch(() => {})
  }

  async readAll(): Promise<Total[]> {
    await this.flush()
    const sums: TotalsMap = new Map()
    for (const { source } of await this.#readDocuments())
      for (const total of source.totals) addTotal(sums, total)
    return [...sums.values()].sort((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1))
  }

  /** Replaces totals. Folds all documents of their queues. */
  async replace(totals: readonly Total[]): Promise<void> {
    await this.flush()
    const documents = await this.#readDocuments()
    for (const [queue, replacements] of Map.groupBy(totals, (total) => total.queue)) {
      const names = documents.filter(({ source }) => source.queue === queue).map(({ id }) => id)
      await this.#fold(queue, names, replacements)
      this.#own.delete(queue)
    }
  }

  /** Folds the documents of this process, and those that were not written for a day. */
  async foldDocuments(): Promise<void> {
    await this.flush()
    const ownNames = new Set([...this.#own.values()].map(({ name }) => name))
    const staleMs = this.#clock.now() - dayMs
    for (const [queue, documents] of Map.groupBy(
      await this.#readDocuments(),
      ({ source }) => source.queue,
    )) {
      if (documents.length < minFolded) continue
      const names = documents
        .filter(({ id, source }) => ownNames.has(id) || source.atMs < staleMs)
        .map(({ id }) => id)
        .filter((id) => id !== baseNameOf(queue))
      await this.#fold(queue, names, [])
    }
  }

  /** Reads all documents that are not folded. Consistent, since all are in one shard. */
  async #readDocuments(): Promise<Hit<TotalsDocument>[]> {
    await this.#documents.refresh()
    const all: Hit<TotalsDocument>[] = []
    for await (const hits of this.#documents.pages({
      query: { term: { kind: 'totals' } },
      size: 5000,
      sort: [{ name: 'asc' }],
    }))
      all.push(...hits)
    const folded = new Set(all.flatMap(({ source }) => source.folded ?? []))
    return all.filter(({ id }) => !folded.has(id))
  }

  async #write(): Promise<void> {
    const pending = this.#pending
    this.#pending = new Map()
    try {
      for (let tries = 0; pending.size > 0; tries++) {
        if (tries === maxAttempts) throw contentionError('the totals')
        for (const queue of await this.#writeQueues(pending)) pending.delete(queue)
      }
    } finally {
      for (const [queue, totals] of pending) {
        const newer = this.#pending.get(queue)
        if (newer) for (const total of totals.values()) addTotal(newer, total)
        else this.#pending.set(queue, totals)
      }
    }
  }

  /** Returns the queues whose counts were written. */
  async #writeQueues(pending: ReadonlyMap<string, TotalsMap>): Promise<string[]> {
    const next = [...pending].map(([queue, counted]) => {
      const own = this.#own.get(queue) ?? this.#createOwn(queue)
      const totals: TotalsMap = new Map([...own.totals].map(([key, total]) => [key, { ...total }]))
      for (const total of counted.values()) addTotal(totals, total)
      return { queue, own, totals }
    })
    const atMs = this.#clock.now()
    const written = await this.#documents.write(
      next.map(({ queue, own: { name, revision }, totals }) => ({
        id: name,
        put: { kind: 'totals', name, queue, atMs, totals: [...totals.values()] },
        expected: revision,
      })),
    )
    return next.flatMap(({ queue, own: { name }, totals }, at) => {
      const result = written[at]!
      if (result.done) this.#own.set(queue, { name, revision: result.revision, totals })
      // Another process has sealed or folded the document. Its counts are safe, and the next write
      // creates another document.
      else this.#own.delete(queue)
      return result.done ? [queue] : []
    })
  }

  #createOwn(queue: string): OwnDocument {
    const name = `totals:${hashOf(queue)}:${this.#clock.id()}`
    const own: OwnDocument = { name, revision: 'new', totals: new Map() }
    this.#own.set(queue, own)
    return own
  }

  /**
   * Seals documents, so that no process writes to them, adds their counts to the base document, and
   * only then removes them. `replacements` are totals that replace the sums.
   */
  async #fold(
    queue: string,
    names: readonly string[],
    replacements: readonly Total[],
  ): Promise<void> {
    const baseName = baseNameOf(queue)
    for (let tries = 0; tries < maxAttempts; tries++) {
      const documents = await this.#documents.read([baseName, ...names])
      const base = documents.get(baseName)
      const earlier = new Set(base?.source.folded)
      const parts = [...documents.values()].filter(({ id }) => id !== baseName && !earlier.has(id))
      if (!(await this.#seal(parts.filter(({ source }) => !source.sealed)))) continue
      const totals: TotalsMap = new Map()
      for (const { source } of base ? [base, ...parts] : parts)
        for (const total of source.totals) addTotal(totals, total)
      for (const total of replacements) totals.set(keyOf(total), { ...total })
      const unremoved = await this.#documents.read(earlier)
      const folded = [...parts.map(({ id }) => id), ...unremoved.keys()]
      const put: TotalsDocument = {
        kind: 'totals',
        name: baseName,
        queue,
        atMs: this.#clock.now(),
        totals: [...totals.values()],
        ...(folded.length > 0 ? { folded } : {}),
      }
      const [written] = await this.#documents.write([
        { id: baseName, put, expected: base?.revision ?? 'new' },
      ])
      if (written!.done) return this.#removeDocuments(folded)
    }
    throw contentionError('the totals')
  }

  /** Returns false if a document was changed concurrently. */
  async #seal(parts: readonly ReadDocument<TotalsDocument>[]): Promise<boolean> {
    const writes = parts.map(({ id, revision, source }) => ({
      id,
      put: { ...source, sealed: true as const },
      expected: revision,
    }))
    return (await this.#documents.write(writes)).every(({ done }) => done)
  }

  async #removeDocuments(names: readonly string[]): Promise<void> {
    const documents = await this.#documents.read(names)
    await this.#documents.write(
      [...documents.values()].map(({ id, revision }) => ({ id, drop: true, expected: revision })),
    )
  }
}

/** The name of the base document of a queue. */
const baseNameOf = (queue: string): string => `totals:${hashOf(queue)}`

const keyOf = ({ action, queue, priority }: Total): string => `${action} ${priority} ${queue}`

const sortKeyOf = ({ action, queue, priority }: Total): string =>
  JSON.stringify([queue, action, priority])

function addTotal(totals: TotalsMap, total: Total): void {
  const sum = totals.get(keyOf(total))
  if (!sum) {
    totals.set(keyOf(total), { ...total })
    return
  }
  sum.count += total.count
  sum.retries += total.retries
  sum.maxRetries = Math.max(sum.maxRetries, total.maxRetries)
  sum.backoffMs += total.backoffMs
}
