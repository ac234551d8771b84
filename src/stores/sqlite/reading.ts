import type { Database } from '../../backends/sqlite/database.ts'
import { isCorrupt } from '../../backends/sqlite/errors.ts'
import type { StoreContext } from './context.ts'
import type { LoadedLetter } from '../rows/form.ts'
import { rowColumns, rowOf, rowWidth, type Row, type SqlValue } from '../rows/row.ts'
import { hasLaterEntries, isEdited } from '../rows/rest.ts'

/** A letter in the file: its row number, queue and row. */
export interface Entry {
  seq: number
  queue: number
  row: Row
}

const fields = `${rowColumns}, seq, queue`

export function entryById(context: StoreContext, id: string): Entry | undefined {
  return entryOf(context.db.get(`SELECT ${fields} FROM letters WHERE id = ?`, id))
}

export function entryBySeq(context: StoreContext, seq: number): Entry | undefined {
  return entryOf(context.db.get(`SELECT ${fields} FROM letters WHERE seq = ?`, seq))
}

function entryOf(values: SqlValue[] | undefined): Entry | undefined {
  if (!values) return undefined
  return {
    seq: values[rowWidth] as number,
    queue: values[rowWidth + 1] as number,
    row: rowOf(values),
  }
}

/** The oldest open letter of a queue with this dedupe key. */
export function holderOf(
  context: StoreContext,
  queue: number,
  dedupe: Uint8Array,
): Entry | undefined {
  return entryOf(
    context.db.get(
      `SELECT ${fields} FROM letters INDEXED BY letters_dedupe
       WHERE queue = ? AND dedupe = ? AND state NOT IN (2, 5) ORDER BY id LIMIT 1`,
      queue,
      dedupe,
    ),
  )
}

/** How much of a letter is read: the summary, the whole letter, or the whole letter as captured. */
export type Extent = 'summary' | 'whole' | 'captured'

/** A letter in the file, and as it is sent to the caller. */
export interface Found {
  entry: Entry
  letter: LoadedLetter
}

export function findLetter(
  context: StoreContext,
  by: 'id' | 'seq',
  key: string | number,
  extent: Extent,
): Found | undefined {
  const body = extent === 'summary' ? 'origin, origin_crc' : 'origin, origin_crc, bytes, bytes_crc'
  const sql = `SELECT ${fields}, ${body} FROM letters LEFT JOIN bodies USING (seq) WHERE letters.${by} = ?`
  try {
    const values = context.db.get(sql, key)
    return values && foundIn(context, values, extent)
  } catch (error) {
    if (!isCorrupt(error)) throw error
    return damaged(context, by, key)
  }
}

function foundIn(context: StoreContext, values: SqlValue[], extent: Extent): Found {
  const entry = entryOf(values)!
  const [origin, originCrc, bytes, bytesCrc] = values.splice(rowWidth).slice(2) as [
    string | null,
    number,
    (Uint8Array | null)?,
    number?,
  ]
  const problem = origin === null ? 'its body is missing' : null
  const queue = context.queues.name(entry.queue)
  const letter: LoadedLetter = [
    values,
    queue,
    origin,
    originCrc,
    bytes ?? null,
    bytesCrc ?? 0,
    [],
    problem,
  ]
  if (extent === 'whole' && origin !== null) addLater(context, { entry, letter }, origin)
  return { entry, letter }
}

/**
 * Adds what came after capture: edited bytes, and history entries beyond the first.
 */
function addLater({ db }: StoreContext, { entry, letter }: Found, origin: string): void {
  const { seq, row } = entry
  const edit = isEdited(row)
    ? db.get('SELECT bytes, bytes_crc FROM edits WHERE seq = ?', seq)
    : undefined
  if (edit) {
    letter[4] = edit[0] as Uint8Array
    letter[5] = edit[1] as number
  }
  if (hasLaterEntries(row, origin)) letter[6] = laterEntries(db, seq)
}

/** History entries that are not in the origin, as JSON. */
export function laterEntries(db: Database, seq: number): string[] {
  const rows = db.all('SELECT entry FROM history WHERE seq = ? ORDER BY n', seq)
  return rows.map(([entry]) => entry as string)
}

/**
 * What is left of a letter with an unreadable page: its row, if that is on another page.
 */
function damaged(context: StoreContext, by: 'id' | 'seq', key: string | number): Found | undefined {
  const values = context.db.get(`SELECT ${fields} FROM letters WHERE ${by} = ?`, key)
  if (!values) return undefined
  const entry = entryOf(values)!
  const queue = context.queues.name(entry.queue)
  const problem = 'a page of the letter is damaged'
  return { entry, letter: [values.slice(0, rowWidth), queue, null, 0, null, 0, [], problem] }
}
