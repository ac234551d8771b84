import type { Cells } from '../../backends/postgres/query.ts'
import type { PostgresConnection } from '../../backends/postgres/connection.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { fromText, toText } from './text.ts'

/** A queue and a priority: letters of one range stand in order of their time. */
export interface Range {
  queue: number
  priority: number
}

/** Sends a statement: over any connection, or within a transaction that has one already. */
type Send = (sql: string, values: unknown[]) => Promise<Cells[]>

/** Queues have numbers in the database. Both ways are remembered; neither ever changes, and none is ever taken away. */
export interface QueueNames {
  /** The numbers of those that have one. */
  find(names: readonly string[]): Promise<Map<string, number>>
  /** The numbers of all of them; those that have none get one. */
  numbers(names: readonly string[]): Promise<Map<string, number>>
  /** The names of all of these numbers. */
  names(queues: Iterable<number>, tx?: Transaction): Promise<(queue: number) => string>
  /** All queues there are. */
  all(): Promise<ReadonlyMap<string, number>>
  /** Sees to it that claims will look at these ranges, before letters come into them. */
  ranges(ranges: Iterable<Range>, tx?: Transaction): Promise<void>
  /** Forgets everything, when the tables may be new. */
  forget(): void
}

export function queueNames(connection: PostgresConnection): QueueNames {
  const numbers = new Map<string, number>()
  const names = new Map<number, string>()
  const known = new Set<number>()
  // Names are needed to capture and to claim, so they do not wait for readers.
  const readHot: Send = (sql, values) => connection.read(sql, values, { side: 'hot' })
  const load = async (condition: string, values: unknown[], send = readHot): Promise<void> => {
    const rows = await send(`SELECT id, name FROM @queues WHERE ${condition}`, values)
    for (const [id, kept] of rows as [number, string][]) {
      const name = fromText(kept)
      numbers.set(name, id)
      names.set(id, name)
    }
  }
  const find = async (wanted: readonly string[]): Promise<Map<string, number>> => {
    const unknown = wanted.filter((name) => !numbers.has(name))
    if (unknown.length > 0) await load('name = ANY($1::text[])', [unknown.map(toText)])
    const found = wanted.flatMap((name) => (numbers.has(name) ? [[name, numbers.get(name)!]] : []))
    return new Map(found as [string, number][])
  }
  return {
    find,
    async numbers(wanted) {
      const found = await find(wanted)
      const missing = [...new Set(wanted.filter((name) => !found.has(name)))].toSorted()
      if (missing.length === 0) return found
      const insert = 'INSERT INTO @queues (name) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING'
      const work = (tx: Transaction): Promise<unknown> => tx.rows(insert, [missing.map(toText)])
      await connection.transaction('hot', work, { repeatable: true })
      return find(wanted)
    },
    async names(queues, tx) {
      const unknown = [...new Set(queues)].filter((queue) => !names.has(queue))
      const send: Send = tx ? (sql, values) => tx.rows(sql, values) : readHot
      if (unknown.length > 0) await load('id = ANY($1::int[])', [unknown], send)
      return (queue) => names.get(queue) ?? `queue ${queue}`
    },
    async all() {
      await load('true', [])
      return numbers
    },
    async ranges(ranges, tx) {
      const fresh = new Map<number, Range>()
      for (const range of ranges) {
        const code = range.queue * 4 + range.priority
        if (!known.has(code)) fresh.set(code, range)
      }
      if (fresh.size === 0) return
      const insert = `INSERT INTO @ranges SELECT * FROM unnest($1::int[], $2::smallint[]) r(queue, priority)
        ORDER BY 1, 2 ON CONFLICT DO NOTHING`
      const all = [...fresh.values()]
      const values = [all.map(({ queue }) => queue), all.map(({ priority }) => priority)]
      // Within a transaction they are there only once it commits.
      if (tx) return void tx.rows(insert, values)
      await connection.transaction('hot', (own) => own.rows(insert, values), { repeatable: true })
      for (const code of fresh.keys()) known.add(code)
    },
    forget() {
      numbers.clear()
      names.clear()
      known.clear()
    },
  }
}
