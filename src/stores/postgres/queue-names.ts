import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { fromText, toText } from './text.ts'

/** A queue and a priority. The letters of a range are ordered by time. */
export interface Range {
  queue: number
  priority: number
}

const insertQueues = 'INSERT INTO @queues (name) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING'
const insertRanges = `INSERT INTO @ranges SELECT * FROM unnest($1::int[], $2::smallint[]) r(queue, priority)
  ORDER BY 1, 2 ON CONFLICT DO NOTHING`

/**
 * Maps queue names to their numbers in the database. Mappings never change and are never removed,
 * so they are cached.
 */
export class QueueNames {
  readonly #connection: PostgresConnection
  readonly #numbers = new Map<string, number>()
  readonly #names = new Map<number, string>()
  /** Ranges that are registered, by queue and priority. */
  readonly #ranges = new Set<number>()

  constructor(connection: PostgresConnection) {
    this.#connection = connection
  }

  /** The numbers of those names that have one. */
  async find(names: readonly string[]): Promise<Map<string, number>> {
    const unknown = names.filter((name) => !this.#numbers.has(name))
    if (unknown.length > 0) await this.#load('name = ANY($1::text[])', [unknown.map(toText)])
    const found = new Map<string, number>()
    for (const name of names) {
      const number = this.#numbers.get(name)
      if (number !== undefined) found.set(name, number)
    }
    return found
  }

  /** The numbers of all names; a new name gets a number. */
  async numbers(names: readonly string[]): Promise<Map<string, number>> {
    const found = await this.find(names)
    const missing = [...new Set(names.filter((name) => !found.has(name)))].toSorted()
    if (missing.length === 0) return found
    const work = (tx: Transaction): Promise<unknown> => tx.rows(insertQueues, [missing.map(toText)])
    await this.#connection.transaction('hot', work, { repeatable: true })
    return this.find(names)
  }

  /** The names of these numbers. */
  async names(queues: Iterable<number>, tx?: Transaction): Promise<(queue: number) => string> {
    const unknown = [...new Set(queues)].filter((queue) => !this.#names.has(queue))
    if (unknown.length > 0) await this.#load('id = ANY($1::int[])', [unknown], tx)
    return (queue) => this.#names.get(queue) ?? `queue ${queue}`
  }

  /** All queues. */
  async all(): Promise<ReadonlyMap<string, number>> {
    await this.#load('true', [])
    return this.#numbers
  }

  /** Registers ranges, so that claims read them, before letters are added to them. */
  async ranges(ranges: Iterable<Range>, tx?: Transaction): Promise<void> {
    const fresh = new Map<number, Range>()
    for (const range of ranges) {
      const code = range.queue * 4 + range.priority
      if (!this.#ranges.has(code)) fresh.set(code, range)
    }
    if (fresh.size === 0) return
    const all = [...fresh.values()]
    const values = [all.map(({ queue }) => queue), all.map(({ priority }) => priority)]
    // Not cached: within a transaction the ranges exist only once it commits.
    if (tx) return void tx.rows(insertRanges, values)
    const work = (own: Transaction): Promise<unknown> => own.rows(insertRanges, values)
    await this.#connection.transaction('hot', work, { repeatable: true })
    for (const code of fresh.keys()) this.#ranges.add(code)
  }

  /** Clears the cache, when the tables may be new. */
  forget(): void {
    this.#numbers.clear()
    this.#names.clear()
    this.#ranges.clear()
  }

  /** Reads on the hot side, since capture and claim need names. */
  async #load(condition: string, values: unknown[], tx?: Transaction): Promise<void> {
    const sql = `SELECT id, name FROM @queues WHERE ${condition}`
    const rows: Cells[] = tx
      ? await tx.rows(sql, values)
      : await this.#connection.read(sql, values, { side: 'hot' })
    for (const [id, escaped] of rows as [number, string][]) {
      const name = fromText(escaped)
      this.#numbers.set(name, id)
      this.#names.set(id, name)
    }
  }
}
