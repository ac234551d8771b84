import type { Total } from '../../store.ts'
import {
  actions,
  archived,
  cellOf,
  isCell,
  partsOf,
  priorities,
  totalOf,
  totalPartsOf,
  type Cell,
} from './codes.ts'
import type { Database } from './database.ts'
import type { Row } from './row.ts'

/** What is counted under one name and cell: letters of a group, letters with a tag. */
interface NamedDelta {
  table: 'group_counts' | 'tag_counts'
  name: string
  cell: number
  n: number
}

/** What is to be added to one row of the counters. */
interface Delta {
  n: number
  retries: number
  maxRetries: number
  backoffMs: number
}

/**
 * The counts, kept and not scanned. Within a transaction changes gather here; `flush` writes one row per cell touched.
 * The plain counts are also held in memory, for as long as no other connection has written.
 */
export interface Counters {
  /** Takes note of a letter that came (+1) or went (-1). */
  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void
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

class MaintainedCounters implements Counters {
  readonly #db: Database
  #held: Map<number, number> | undefined
  #standing = 0
  #seenVersion: unknown
  readonly #cells = new Map<number, Delta>()
  readonly #totals = new Map<number, Delta>()
  readonly #named = new Map<string, NamedDelta>()

  constructor(db: Database) {
    this.#db = db
  }

  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void {
    const cell = cellOf(queue, row)
    deltaOf(this.#cells, cell).n += n
    this.#name('group_counts', row.fingerprint, cell, n)
    for (const tag of tags) this.#name('tag_counts', tag, cell, n)
    if (this.#held) this.#hold(this.#held, cell, n)
  }

  #name(table: NamedDelta['table'], name: string, cell: number, n: number): void {
    const key = `${table === 'tag_counts' ? 't' : 'g'}${cell} ${name}`
    const delta = this.#named.get(key)
    if (delta) delta.n += n
    else this.#named.set(key, { table, name, cell, n })
  }

  total(queue: number, action: number, row: Row): void {
    const delta = deltaOf(this.#totals, totalOf(queue, action, row.priority))
    delta.n += 1
    delta.retries += row.retries
    delta.maxRetries = Math.max(delta.maxRetries, row.retries)
    delta.backoffMs += row.backoffMs
  }

  standing(): number {
    this.cells()
    return this.#standing
  }

  /** The first look in a transaction asks SQLite whether another connection has written since the last. */
  cells(): Map<number, number> {
    const version = this.#db.get('PRAGMA data_version')![0]
    if (this.#held && version === this.#seenVersion) return this.#held
    this.#seenVersion = version
    this.#standing = 0
    const held = new Map<number, number>()
    const rows = this.#db.all(`SELECT key, n FROM counters WHERE ${isCell}`)
    for (const [cell, n] of rows as [number, number][]) this.#hold(held, cell, n)
    for (const [cell, { n }] of this.#cells) this.#hold(held, cell, n)
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
    for (const [cell, delta] of this.#cells) {
      this.#add(cell, delta)
      if (delta.n < 0) this.#db.run('DELETE FROM counters WHERE key = ? AND n = 0', cell)
    }
    for (const [key, delta] of this.#totals) this.#add(key, delta)
    for (const { table, name, cell, n } of this.#named.values()) {
      if (n === 0) continue
      const grown = this.#db.run(
        `UPDATE ${table} SET n = n + ? WHERE name = ? AND cell = ?`,
        n,
        name,
        cell,
      )
      if (grown === 0) this.#db.run(`INSERT INTO ${table} VALUES (?, ?, ?)`, name, cell, n)
      if (n < 0)
        this.#db.run(`DELETE FROM ${table} WHERE name = ? AND cell = ? AND n = 0`, name, cell)
    }
    this.#clear()
  }

  /** Most rows are there already, and an update is cheaper than an insertion that runs into one. */
  #add(key: number, { n, retries, maxRetries, backoffMs }: Delta): void {
    if (n === 0) return
    const sums = [n, retries, maxRetries, backoffMs] as const
    const grown = this.#db.run(
      `UPDATE counters SET n = n + ?, retries = retries + ?, max_retries = max(max_retries, ?),
         backoff_ms = backoff_ms + ? WHERE key = ?`,
      ...sums,
      key,
    )
    if (grown === 0) this.#db.run('INSERT INTO counters VALUES (?, ?, ?, ?, ?)', key, ...sums)
  }

  forget(): void {
    this.#clear()
    this.#held = undefined
  }

  #clear(): void {
    this.#cells.clear()
    this.#named.clear()
    this.#totals.clear()
  }
}

function deltaOf(deltas: Map<number, Delta>, key: number): Delta {
  let delta = deltas.get(key)
  if (!delta) deltas.set(key, (delta = { n: 0, retries: 0, maxRetries: 0, backoffMs: 0 }))
  return delta
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

export function readTotals(db: Database, nameOf: (queue: number) => string): Total[] {
  const sql = `SELECT key, n, retries, max_retries, backoff_ms FROM counters WHERE NOT (${isCell})`
  const rows = db.all(sql) as [number, number, number, number, number][]
  return rows.map(([key, count, retries, maxRetries, backoffMs]) => {
    const { queue, action, priority } = totalPartsOf(key)
    return {
      action: actions[action]!,
      queue: nameOf(queue),
      priority: priorities[priority]!,
      count,
      retries,
      maxRetries,
      backoffMs,
    }
  })
}
