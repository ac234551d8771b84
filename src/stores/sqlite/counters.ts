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

/**
 * The counts, kept and not scanned. Within a transaction changes gather here; `flush` writes each
 * row that is touched once. The cells are also held in memory, for as long as no other connection
 * has written.
 */
export interface Counters {
  /** Takes note of a letter that came (+1) or went (-1). */
  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void
  /** Takes note of what happened to a letter, which now stands like this. */
  total(queue: number, action: number, row: Row): void
  /** Letters kept, archived ones aside, as the transaction stands. */
  standing(): number
  /** The cells that hold letters, as the transaction stands. */
  cells(): Map<number, number>
  flush(): void
  /** Forgets what gathered and what is held. */
  forget(): void
}

export function counters(db: Database): Counters {
  return new MaintainedCounters(db)
}

/** Rows that one statement writes at the most. */
const maxGrown = 8

/** The statement for each number of rows. */
const growCounters = Array.from({ length: maxGrown + 1 }, (_, rows) => {
  const values = Array<string>(rows).fill('(?, ?, ?, ?, ?, ?, ?, ?)').join(', ')
  return `INSERT INTO counters VALUES ${values} ON CONFLICT DO UPDATE SET
    n = n + excluded.n, retries = retries + excluded.retries,
    max_retries = max(max_retries, excluded.max_retries), backoff_ms = backoff_ms + excluded.backoff_ms`
})

const dropCounter =
  'DELETE FROM counters WHERE queue = ? AND kind = ? AND name = ? AND code = ? AND n = 0'

/** All rows of one kind. Queue by queue, since that is how they stand. */
const ofKind = 'FROM queues CROSS JOIN counters ON counters.queue = queues.id AND counters.kind = ?'

class MaintainedCounters implements Counters {
  readonly #db: Database
  #held: Map<number, number> | undefined
  #standing = 0
  #seenVersion: unknown
  readonly #deltas = new Deltas()

  constructor(db: Database) {
    this.#db = db
  }

  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void {
    this.#deltas.count(queue, row, tags, n)
    if (this.#held) this.#hold(this.#held, cellOf(queue, row), n)
  }

  total(queue: number, action: number, row: Row): void {
    this.#deltas.total(queue, action, row)
  }

  standing(): number {
    this.cells()
    return this.#standing
  }

  /**
   * Asks SQLite whether another connection has written since the last look; only then are the rows
   * read again.
   */
  cells(): Map<number, number> {
    const version = this.#db.get('PRAGMA data_version')![0]
    if (this.#held && version === this.#seenVersion) return this.#held
    this.#seenVersion = version
    this.#standing = 0
    const held = new Map<number, number>()
    const rows = this.#db.all(`SELECT queue, code, n ${ofKind}`, counter.cell)
    for (const [queue, code, n] of rows as number[][])
      this.#hold(held, queue! * codesPerQueue + code!, n!)
    for (const { queue, kind, code, n } of this.#deltas.changed())
      if (kind === counter.cell) this.#hold(held, queue * codesPerQueue + code, n)
    this.#held = held
    return held
  }

  #hold(held: Map<number, number>, cell: number, n: number): void {
    const sum = (held.get(cell) ?? 0) + n
    if (sum === 0) held.delete(cell)
    else held.set(cell, sum)
    if (partsOf(cell).state !== archived) this.#standing += n
  }

  flush(): void {
    const changed = this.#deltas.changed()
    for (let start = 0; start < changed.length; start += maxGrown) {
      const some = changed.slice(start, start + maxGrown)
      this.#db.run(growCounters[some.length]!, ...some.flatMap(valuesOf))
    }
    for (const { queue, kind, name, code, n } of changed)
      if (n < 0) this.#db.run(dropCounter, queue, kind, name, code)
    this.#deltas.clear()
  }

  forget(): void {
    this.#deltas.clear()
    this.#held = undefined
  }
}

function valuesOf(delta: Delta): SqlValue[] {
  const { queue, kind, name, code, n, retries, maxRetries, backoffMs } = delta
  return [queue, kind, name, code, n, retries, maxRetries, backoffMs]
}

/** The cells with letters that pass, told by their parts. */
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
