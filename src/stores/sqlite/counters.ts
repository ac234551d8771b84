import type { Total } from '../../store.ts'
import {
  actionCode,
  actions,
  archived,
  cellOf,
  codesPerQueue,
  counter,
  partsOf,
  priorities,
  priorityCode,
  type Cell,
} from '../rows/codes.ts'
import { Deltas, type Delta } from '../rows/deltas.ts'
import type { Database } from '../../backends/sqlite/database.ts'
import type { QueueNames } from './queue-names.ts'
import type { Row, SqlValue } from '../rows/row.ts'

/** Maximum number of rows that one statement writes. */
const maxRowsPerStatement = 8

/** The statement for each number of rows. */
const upsertCounters = Array.from({ length: maxRowsPerStatement + 1 }, (_, rows) => {
  const values = Array<string>(rows).fill('(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')
  return `INSERT INTO counters VALUES ${values} ON CONFLICT DO UPDATE SET
    n = n + excluded.n, retries = retries + excluded.retries,
    max_retries = max(max_retries, excluded.max_retries), backoff_ms = backoff_ms + excluded.backoff_ms`
})

const dropCounter =
  'DELETE FROM counters WHERE queue = ? AND kind = ? AND name = ? AND code = ? AND n = 0'

/** All rows of one kind, queue by queue: the order of the primary key. */
const ofKind = 'FROM queues CROSS JOIN counters ON counters.queue = queues.id AND counters.kind = ?'

/**
 * Maintained counts. Changes of a transaction collect in memory, and `flush` writes each changed
 * row once. The cells are cached for as long as no other connection writes.
 */
export class Counters {
  readonly #db: Database
  #cached: Map<number, number> | undefined
  #occupied = 0
  #seenVersion: unknown
  readonly #deltas = new Deltas()

  constructor(db: Database) {
    this.#db = db
  }

  /** Counts a letter that was added (1) or removed (-1). */
  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void {
    this.#deltas.count(queue, row, tags, n)
    if (this.#cached) this.#addTo(this.#cached, cellOf(queue, row), n)
  }

  /** Adds an action on a letter to the totals. `row` is the letter after it. */
  total(queue: number, action: number, row: Row): void {
    this.#deltas.total(queue, action, row)
  }

  /** Number of letters that are not archived, within the transaction. */
  occupied(): number {
    this.cells()
    return this.#occupied
  }

  /**
   * Number of letters by cell, within the transaction. Reads the rows again only if another
   * connection has written since the last read.
   */
  cells(): Map<number, number> {
    const version = this.#db.get('PRAGMA data_version')![0]
    if (this.#cached && version === this.#seenVersion) return this.#cached
    this.#seenVersion = version
    this.#occupied = 0
    const cells = new Map<number, number>()
    const rows = this.#db.all(`SELECT queue, code, n ${ofKind}`, counter.cell)
    for (const [queue, code, n] of rows as number[][])
      this.#addTo(cells, queue! * codesPerQueue + code!, n!)
    for (const { queue, kind, code, n } of this.#deltas.changed())
      if (kind === counter.cell) this.#addTo(cells, queue * codesPerQueue + code, n)
    this.#cached = cells
    return cells
  }

  #addTo(cells: Map<number, number>, cell: number, n: number): void {
    const sum = (cells.get(cell) ?? 0) + n
    if (sum === 0) cells.delete(cell)
    else cells.set(cell, sum)
    if (partsOf(cell).state !== archived) this.#occupied += n
  }

  flush(): void {
    const changed = this.#deltas.changed()
    for (let start = 0; start < changed.length; start += maxRowsPerStatement) {
      const some = changed.slice(start, start + maxRowsPerStatement)
      this.#db.run(upsertCounters[some.length]!, ...some.flatMap(valuesOf))
    }
    for (const { queue, kind, name, code, n } of changed)
      if (n < 0) this.#db.run(dropCounter, queue, kind, name, code)
    this.#deltas.clear()
  }

  /** Drops uncommitted changes and the cache. */
  forget(): void {
    this.#deltas.clear()
    this.#cached = undefined
  }
}

function valuesOf(delta: Delta): SqlValue[] {
  const { queue, kind, name, code, n, retries, maxRetries, backoffMs } = delta
  return [queue, kind, name, code, n, retries, maxRetries, backoffMs]
}

/** The non-empty cells that pass, decoded, with their counts. */
export function* cellsWhere(
  counters: Counters,
  passes: (cell: Cell) => boolean,
): Generator<[Cell, number]> {
  for (const [cell, n] of counters.cells()) {
    const parts = partsOf(cell)
    if (passes(parts)) yield [parts, n]
  }
}

/** How many letters each group or tag has, over the cells that pass. */
export function namedCounts(
  db: Database,
  kind: 'group' | 'tag',
  passes: (cell: Cell) => boolean,
): Map<string, number> {
  const counted = new Map<string, number>()
  const rows = db.all(`SELECT queue, counters.name, code, n ${ofKind}`, counter[kind])
  for (const [queue, name, code, n] of rows as [number, string, number, number][])
    if (passes(partsOf(queue * codesPerQueue + code)))
      counted.set(name, (counted.get(name) ?? 0) + n)
  return counted
}

export function readTotals(db: Database, queues: QueueNames): Total[] {
  const sql = `SELECT queue, code, n, retries, max_retries, backoff_ms ${ofKind}`
  const rows = db.all(sql, counter.total) as [number, number, number, number, number, number][]
  return rows.map(([queue, code, count, retries, maxRetries, backoffMs]) => ({
    action: actions[code >> 2]!,
    queue: queues.name(queue),
    priority: priorities[code & 3]!,
    count,
    retries,
    maxRetries,
    backoffMs,
  }))
}

export function writeTotals(
  { db, queues }: { db: Database; queues: QueueNames },
  totals: readonly Total[],
): null {
  const sql = 'INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
  for (const { action, queue, priority, count, retries, maxRetries, backoffMs } of totals) {
    const code = actionCode(action) * 4 + priorityCode(priority)
    const key = [queues.number(queue), counter.total, '', code] as const
    db.run(sql, ...key, count, retries, maxRetries, backoffMs)
  }
  return null
}
