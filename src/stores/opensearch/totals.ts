import type { Clock } from '../../clock/clock.ts'
import { Batcher } from '../../backends/batcher.ts'
import type { CountedAction, DeadLetter } from '../../letter/letter.ts'
import type { Total } from '../../store.ts'
import { hashOf } from './fields.ts'
import type { Found, Mark, DocumentIndex, Stamped } from './document-index.ts'
import { contentionError, maxAttempts } from './contention.ts'

/**
 * Totals of one queue, counted by one process or, in the base, folded from several. The sum over
 * all documents of a queue is the total. A sealed document is no longer written and waits to be
 * folded.
 */
export interface TotalsDocument extends Stamped {
  kind: 'totals'
  name: string
  queue: string
  atMs: number
  totals: Total[]
  sealed?: true
  /**
   * In the base: documents whose counts are included, and which no longer count although they may
   * still exist.
   */
  folded?: string[]
}

type Counted = Pick<DeadLetter, 'queue' | 'priority' | 'retries' | 'backoffMs'>

type Cells = Map<string, Total>

/** The document of this process, per queue. */
interface Own {
  name: string
  mark: Mark | 'new'
  totals: Cells
}

const dayMs = 86_400_000
/** Maximum number of documents of one queue before they are folded. */
const manyDocuments = 8

/** Totals stored in documents. */
export class Totals {
  readonly #shelf: DocumentIndex<TotalsDocument>
  readonly #clock: Clock
  readonly #own = new Map<string, Own>()
  /** Counted, but not yet written. */
  #pending = new Map<string, Cells>()
  readonly #writer: Batcher<null, null>

  constructor(shelf: DocumentIndex<TotalsDocument>, clock: Clock) {
    this.#shelf = shelf
    this.#clock = clock
    this.#writer = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, async (asks) => {
      await this.#write()
      return asks.map(() => ({ value: null }))
    })
  }

  count(action: CountedAction, letter: Counted): void {
    const { queue, priority, retries, backoffMs } = letter
    const one = { action, queue, priority, count: 1, retries, maxRetries: retries, backoffMs }
    let cells = this.#pending.get(queue)
    if (!cells) this.#pending.set(queue, (cells = new Map()))
    addTo(cells, one)
  }

  /**
   * Writes the counts. The letters are already written, so a failure here must not fail their
   * operation: unwritten counts are kept for the next time.
   */
  async flush(): Promise<void> {
    if (this.#pending.size > 0) await this.#writer.call(null).catch(() => {})
  }

  async all(): Promise<Total[]> {
    await this.flush()
    const sums: Cells = new Map()
    for (const { source } of await this.#documents())
      for (const one of source.totals) addTo(sums, one)
    return [...sums.values()].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  }

  /** Replaces the totals. Everything counted in their queues is folded on the way. */
  async set(totals: readonly Total[]): Promise<void> {
    await this.flush()
    const documents = await this.#documents()
    for (const [queue, wanted] of Map.groupBy(totals, (total) => total.queue)) {
      const names = documents.filter(({ source }) => source.queue === queue).map(({ id }) => id)
      await this.#fold(queue, names, wanted)
      this.#own.delete(queue)
    }
  }

  /** Folds the documents of this process and of dead ones, before they become many. */
  async end(): Promise<void> {
    await this.flush()
    const mine = new Set([...this.#own.values()].map(({ name }) => name))
    const long = this.#clock.now() - dayMs
    for (const [queue, some] of Map.groupBy(
      await this.#documents(),
      ({ source }) => source.queue,
    )) {
      if (some.length < manyDocuments) continue
      const over = some.filter(({ id, source }) => mine.has(id) || source.atMs < long)
      const names = over.map(({ id }) => id).filter((id) => id !== baseOf(queue))
      await this.#fold(queue, names, [])
    }
  }

  /** All documents with totals. They are read consistently, as they are in one shard. */
  async #documents(): Promise<Pick<Found<TotalsDocument>, 'id' | 'source'>[]> {
    await this.#shelf.refresh()
    const all: Pick<Found<TotalsDocument>, 'id' | 'source'>[] = []
    let after: (string | number)[] | undefined
    do {
      const { hits } = await this.#shelf.search({
        query: { term: { kind: 'totals' } },
        size: 5000,
        sort: [{ name: 'asc' }],
        ...(after ? { search_after: after } : {}),
      })
      all.push(...hits)
      after = hits.length === 5000 ? hits.at(-1)!.place : undefined
    } while (after)
    const folded = new Set(all.flatMap(({ source }) => source.folded ?? []))
    return all.filter(({ id }) => !folded.has(id))
  }

  async #write(): Promise<void> {
    const pending = this.#pending
    this.#pending = new Map()
    try {
      for (let tries = 0; pending.size > 0; tries++) {
        if (tries === maxAttempts) throw contentionError('the totals')
        for (const queue of await this.#writeAll(pending)) pending.delete(queue)
      }
    } finally {
      for (const [queue, cells] of pending) {
        const newer = this.#pending.get(queue)
        if (newer) for (const one of cells.values()) addTo(newer, one)
        else this.#pending.set(queue, cells)
      }
    }
  }

  /** Returns the queues whose counts were written. */
  async #writeAll(pending: ReadonlyMap<string, Cells>): Promise<string[]> {
    const next = [...pending].map(([queue, cells]) => {
      const own = this.#own.get(queue) ?? this.#fresh(queue)
      const totals: Cells = new Map([...own.totals].map(([key, one]) => [key, { ...one }]))
      for (const one of cells.values()) addTo(totals, one)
      return { queue, own, totals }
    })
    const atMs = this.#clock.now()
    const written = await this.#shelf.write(
      next.map(({ queue, own: { name, mark }, totals }) => ({
        id: name,
        put: { kind: 'totals', name, queue, atMs, totals: [...totals.values()] },
        at: mark,
      })),
    )
    return next.flatMap(({ queue, own: { name }, totals }, at) => {
      const one = written[at]!
      if (one.done) this.#own.set(queue, { name, mark: one.mark, totals })
      // Another process has sealed or folded the document: its counts are safe, and a new one is
      // started.
      else this.#own.delete(queue)
      return one.done ? [queue] : []
    })
  }

  #fresh(queue: string): Own {
    const name = `totals:${hashOf(queue)}:${this.#clock.id()}`
    const own: Own = { name, mark: 'new', totals: new Map() }
    this.#own.set(queue, own)
    return own
  }

  /**
   * Seals documents, so that nobody writes to them, adds them to the base, and only then removes
   * them.
   */
  async #fold(queue: string, names: readonly string[], wanted: readonly Total[]): Promise<void> {
    const base = baseOf(queue)
    for (let tries = 0; tries < maxAttempts; tries++) {
      const found = await this.#shelf.read([base, ...names])
      const old = found.get(base)
      const known = new Set(old?.source.folded)
      const parts = [...found.values()].filter(({ id }) => id !== base && !known.has(id))
      if (!(await this.#seal(parts.filter(({ source }) => !source.sealed)))) continue
      const totals: Cells = new Map()
      for (const { source } of old ? [old, ...parts] : parts)
        for (const one of source.totals) addTo(totals, one)
      for (const one of wanted) totals.set(cellOf(one), { ...one })
      const gone = await this.#shelf.read(known)
      const folded = [...parts.map(({ id }) => id), ...gone.keys()]
      const put: TotalsDocument = {
        kind: 'totals',
        name: base,
        queue,
        atMs: this.#clock.now(),
        totals: [...totals.values()],
        ...(folded.length > 0 ? { folded } : {}),
      }
      const [written] = await this.#shelf.write([{ id: base, put, at: old?.mark ?? 'new' }])
      if (written!.done) return this.#drop(folded)
    }
    throw contentionError('the totals')
  }

  async #seal(parts: readonly Found<TotalsDocument>[]): Promise<boolean> {
    const writes = parts.map(({ id, mark, source }) => ({
      id,
      put: { ...source, sealed: true as const },
      at: mark,
    }))
    return (await this.#shelf.write(writes)).every(({ done }) => done)
  }

  async #drop(names: readonly string[]): Promise<void> {
    const found = await this.#shelf.read(names)
    await this.#shelf.write(
      [...found.values()].map(({ id, mark }) => ({ id, drop: true, at: mark })),
    )
  }
}

const baseOf = (queue: string): string => `totals:${hashOf(queue)}`

const cellOf = ({ action, queue, priority }: Total): string => `${action} ${priority} ${queue}`

const orderOf = ({ action, queue, priority }: Total): string =>
  JSON.stringify([queue, action, priority])

function addTo(cells: Cells, one: Total): void {
  const cell = cells.get(cellOf(one))
  if (!cell) {
    cells.set(cellOf(one), { ...one })
    return
  }
  cell.count += one.count
  cell.retries += one.retries
  cell.maxRetries = Math.max(cell.maxRetries, one.maxRetries)
  cell.backoffMs += one.backoffMs
}
