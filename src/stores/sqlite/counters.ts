import type { Total } from '../../store.ts'
import { actions, archived, cellOf, partsOf, priorities, type Cell } from './codes.ts'
import type { Database } from './database.ts'
import type { Row } from './row.ts'

/** What is counted under one name and cell: letters of a group, letters with a tag. */
interface NamedDelta {
  table: 'group_counts' | 'tag_counts'
  name: string
  cell: number
  n: number
}

interface TotalDelta {
  queue: number
  action: number
  priority: number
  count: number
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
  readonly #cells = new Map<number, number>()
  readonly #named = new Map<string, NamedDelta>()
  readonly #totals = new Map<number, TotalDelta>()

  constructor(db: Database) {
    this.#db = db
  }

  count(queue: number, row: Row, tags: readonly string[], n: 1 | -1): void {
    const cell = cellOf(queue, row)
    this.#cells.set(cell, (this.#cells.get(cell) ?? 0) + n)
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
    const key = queue * 64 + action * 4 + row.priority
    const delta = this.#totals.get(key)
    if (delta) {
      delta.count += 1
      delta.retries += row.retries
      delta.maxRetries = Math.max(delta.maxRetries, row.retries)
      delta.backoffMs += row.backoffMs
      return
    }
    const { priority, retries, backoffMs } = row
    this.#totals.set(key, {
      queue,
      action,
      priority,
      count: 1,
      retries,
      maxRetries: retries,
      backoffMs,
    })
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
    for (const [cell, n] of this.#db.all('SELECT cell, n FROM counts') as [number, number][])
      this.#hold(held, cell, n)
    for (const [cell, n] of this.#cells) this.#hold(held, cell, n)
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
    for (const [cell, n] of this.#cells) {
      if (n === 0) continue
      this.#db.run(
        'INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n',
        cell,
        n,
      )
      if (n < 0) this.#db.run('DELETE FROM counts WHERE cell = ? AND n = 0', cell)
    }
    for (const { table, name, cell, n } of this.#named.values()) {
      if (n === 0) continue
      this.#db.run(
        `INSERT INTO ${table} VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n`,
        name,
        cell,
        n,
      )
      if (n < 0)
        this.#db.run(`DELETE FROM ${table} WHERE name = ? AND cell = ? AND n = 0`, name, cell)
    }
    for (const total of this.#totals.values()) this.#flushTotal(total)
    this.#clear()
  }

  #flushTotal({
    queue,
    action,
    priority,
    count,
    retries,
    maxRetries,
    backoffMs,
  }: TotalDelta): void {
    this.#db.run(
      `INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
         count = count + excluded.count, retries = retries + excluded.retries,
         max_retries = max(max_retries, excluded.max_retries), backoff_ms = backoff_ms + excluded.backoff_ms`,
      queue,
      action,
      priority,
      count,
      retries,
      maxRetries,
      backoffMs,
    )
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
  const rows = db.all(
    'SELECT queue, action, priority, count, retries, max_retries, backoff_ms FROM totals',
  ) as number[][]
  return rows.map(([queue, action, priority, count, retries, maxRetries, backoffMs]) => ({
    action: actions[action!]!,
    queue: nameOf(queue!),
    priority: priorities[priority!]!,
    count: count!,
    retries: retries!,
    maxRetries: maxRetries!,
    backoffMs: backoffMs!,
  }))
}
