import { isCorrupt } from '../../backends/sqlite/errors.ts'
import type { SqlValue } from '../rows/columns.ts'
import type { StoreContext } from './context.ts'
import { parseTags, type Counted } from './counted.ts'
import { idOf, readColumns } from './schema.ts'
import { after, type SentLetter } from './transfer.ts'

/** How much of a letter is read: the summary, the whole letter, or the whole letter as captured. */
export type Extent = 'summary' | 'whole' | 'captured'

const edited = (column: string): string =>
  `iif(edit IS NULL, bodies.${column}, (SELECT ${column} FROM edits WHERE edits.seq = letters.seq))`

const bodyColumns: Record<Extent, string> = {
  summary: 'origin, origin_crc, NULL, 0',
  whole: `origin, origin_crc, ${edited('bytes')}, ${edited('bytes_crc')}`,
  captured: 'origin, origin_crc, bodies.bytes, bodies.bytes_crc',
}

const keyed = { seq: 'letters.seq = wanted.value', id: `letters.id = ${idOf('wanted.value')}` }

/** The letters with these keys, in their order. Missing ones are left out. */
export function loadLetters(
  context: StoreContext,
  by: 'seq' | 'id',
  keys: readonly (number | string)[],
  extent: Extent,
): SentLetter[] {
  const sql = `SELECT ${readColumns}, queue, ${bodyColumns[extent]} FROM json_each(?) AS wanted
    CROSS JOIN letters ON ${keyed[by]} LEFT JOIN bodies ON bodies.seq = letters.seq`
  try {
    const letters = context.db.all(sql, JSON.stringify(keys))
    for (const letter of letters)
      letter[after.queue] = context.queues.name(letter[after.queue] as number)
    return letters
  } catch (error) {
    if (!isCorrupt(error)) throw error
    if (keys.length === 1) return loadDamaged(context, by, keys[0]!)
    return keys.flatMap((key) => loadLetters(context, by, [key], extent))
  }
}

/** What is left of a letter with an unreadable page: its row, if that is on another page. */
function loadDamaged(
  { db, queues }: StoreContext,
  by: 'seq' | 'id',
  key: number | string,
): SentLetter[] {
  const sql = `SELECT ${readColumns}, queue FROM json_each(?) AS wanted
    CROSS JOIN letters ON ${keyed[by]}`
  return db.all(sql, JSON.stringify([key])).map((row) => {
    const queue = queues.name(row.pop() as number)
    return [...row, queue, null, 0, null, 0, 'a page of the letter is damaged']
  })
}

/** The columns of a letter that decide what may happen to it, and what it is counted by. */
export interface Entry extends Counted {
  seq: number
  version: number
  epoch: number
  worker: string | null
  lane: string | null
  unmet: number
}

const entryColumns = `seq, queue, state, priority, category, policy, fingerprint, retries, backoff_ms,
  version, epoch, worker, lane, unmet, tags`

// Statements are found by their SQL: a constant string is hashed once.
const entryById = `SELECT ${entryColumns} FROM letters WHERE id = ${idOf('?')}`
const entriesBySeq = `SELECT ${entryColumns} FROM json_each(?) CROSS JOIN letters ON seq = value`

/** The entry of a letter. Undefined: there is none, or the id is not a UUID. */
export function findEntry({ db }: StoreContext, id: string): Entry | undefined {
  const values = db.get(entryById, id)
  return values && entryOf(values)
}

export function entriesOf({ db }: StoreContext, seqs: readonly number[]): Entry[] {
  return db.all(entriesBySeq, JSON.stringify(seqs)).map(entryOf)
}

function entryOf(values: SqlValue[]): Entry {
  return {
    seq: values[0] as number,
    queue: values[1] as number,
    state: values[2] as number,
    priority: values[3] as number,
    category: values[4] as number,
    policy: values[5] as number,
    fingerprint: values[6] as string,
    retries: values[7] as number,
    backoffMs: values[8] as number,
    version: values[9] as number,
    epoch: values[10] as number,
    worker: values[11] as string | null,
    lane: values[12] as string | null,
    unmet: values[13] as number,
    tags: parseTags(values[14]!),
  }
}
