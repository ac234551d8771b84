import type { Database, SqlValue } from '../../backends/sqlite/database.ts'
import type { Total } from '../../store.ts'
import {
  actionCode,
  actions,
  codesPerQueue,
  counter,
  partsOf,
  priorities,
  priorityCode,
  type Cell,
} from '../rows/codes.ts'
import { Deltas, type Delta } from '../rows/deltas.ts'
import { groupValueSql, type GroupKey } from '../rows/tally.ts'
import type { Counted } from './counted.ts'
import type { QueueNames } from './queue-names.ts'

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
  readonly #deltas = new Deltas()
  /** The cells without the changes of this transaction. */
  #cached: Map<number, number> | undefined
  #seenVersion: unknown

  constructor(db: Database) {
    this.#db = db
  }

  /** Counts letters that were added (positive) or removed (negative). */
  count(letter: Counted, n: number): void {
    this.#deltas.count(letter.queue, letter, letter.tags, n)
  }

  /** Counts letters that changed. */
  move(before: Counted, next: Counted, n = 1): void {
    this.count(before, -n)
    this.count(next, n)
  }

  /** Adds actions, a bit for each, on equal letters to the totals. `letter` is one after them. */
  total(bits: number, { queue, priority, retries, backoffMs }: Counted, n = 1): void {
    const sums = { n, retries: n * retries, maxRetries: retries, backoffMs: n * backoffMs }
    for (let action = 0; bits >> action !== 0; action++)
      if ((bits >> action) & 1) this.#deltas.totals(queue, action, priority, sums)
  }

  /**
   * Number of letters by cell, within the transaction. Reads the rows again only if another
   * connection has written since the last read.
   */
  cells(): Map<number, number> {
    const version = this.#db.get('PRAGMA data_version')![0]
    if (!this.#cached || version !== this.#seenVersion) {
      const rows = this.#db.all(`SELECT queue, code, n ${ofKind}`, counter.cell) as number[][]
      this.#cached = new Map(rows.map(([queue, code, n]) => [queue! * codesPerQueue + code!, n!]))
      this.#seenVersion = version
    }
    const changed = this.#deltas.changed()
    return changed.length === 0 ? this.#cached : addCells(new Map(this.#cached), changed)
  }

  flush(): void {
    const changed = this.#deltas.changed()
    for (let start = 0; start < changed.length; start += maxRowsPerStatement) {
      const some = changed.slice(start, start + maxRowsPerStatement)
      this.#db.run(upsertCounters[some.length]!, ...some.flatMap(valuesOf))
    }
    for (const { queue, kind, name, code, n } of changed)
      if (n < 0) this.#db.run(dropCounter, queue, kind, name, code)
    if (this.#cached) addCells(this.#cached, changed)
    this.#deltas.clear()
  }

  /** Drops uncommitted changes and the cache. */
  forget(): void {
    this.#deltas.clear()
    this.#cached = undefined
  }
}

function addCells(cells: Map<number, number>, changed: readonly Delta[]): Map<number, number> {
  for (const { queue, kind, code, n } of changed) {
    if (kind !== counter.cell) continue
    const cell = queue * codesPerQueue + code
    const sum = (cells.get(cell) ?? 0) + n
    if (sum === 0) cells.delete(cell)
    else cells.set(cell, sum)
  }
  return cells
}

function valuesOf(delta: Delta): SqlValue[] {
  const { queue, kind, name, code, n, retries, maxRetries, backoffMs } = delta
  return [queue, kind, name, code, n, retries, maxRetries, backoffMs]
}

/** Number of letters in the cells that pass. */
export function countWhere(counters: Counters, passes: (cell: Cell) => boolean): number {
  let sum = 0
  for (const [, n] of cellsWhere(counters, passes)) sum += n
  return sum
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

/** How many letters each group or tag has, in counters of these codes and queues. */
export function namedCounts(
  db: Database,
  by: GroupKey | 'tag',
  codes: string,
  queues: readonly number[] | undefined,
): Map<string, number> {
  const counted = new Map<string, number>()
  const value = by === 'tag' ? 'name' : groupValueSql(by, 'code >> 9', 'name')
  const parts = by === 'groupState' ? 'name, code >> 9' : 'name'
  // Queue by queue, in the order of the primary key, so that nothing is sorted.
  const sql = `SELECT ${value}, sum(n) FROM counters WHERE queue = ? AND kind = ? AND ${codes} GROUP BY ${parts}`
  const kind = by === 'tag' ? counter.tag : counter.group
  const all = queues ?? db.all('SELECT id FROM queues').map(([id]) => id as number)
  for (const queue of new Set(all))
    for (const [name, n] of db.all(sql, queue, kind) as [string, number][])
      counted.set(name, (counted.get(name) ?? 0) + n)
  return counted
}

/** The counters of some groups. */
export function groupCells(
  db: Database,
  groups: readonly string[],
): { group: string; cell: Cell; n: number }[] {
  const unique = [...new Set(groups)]
  const sql = `SELECT queue, counters.name, code, n ${ofKind}
    WHERE counters.name IN (${unique.map(() => '?').join()})`
  const rows = db.all(sql, counter.group, ...unique) as [number, string, number, number][]
  return rows.map(([queue, group, code, n]) => ({
    group,
    cell: partsOf(queue * codesPerQueue + code),
    n,
  }))
}

interface Totals {
  readonly db: Database
  readonly queues: QueueNames
}

export function readTotals({ db, queues }: Totals): Total[] {
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

export function writeTotals({ db, queues }: Totals, totals: readonly Total[]): null {
  const sql = 'INSERT OR REPLACE INTO counters VALUES (?, ?, ?, ?, ?, ?, ?, ?)'
  for (const { action, queue, priority, count, retries, maxRetries, backoffMs } of totals) {
    const code = actionCode(action) * 4 + priorityCode(priority)
    const key = [queues.number(queue), counter.total, '', code] as const
    db.run(sql, ...key, count, retries, maxRetries, backoffMs)
  }
  return null
}
