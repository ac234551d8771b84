import type { Database } from '../../backends/sqlite/database.ts'
import { isCorrupt } from '../../backends/sqlite/errors.ts'
import type { StoreContext } from './context.ts'
import type { KeptLetter } from '../rows/form.ts'
import { rowColumns, rowOf, rowWidth, type Row, type SqlValue } from '../rows/row.ts'
import { hasLaterEntries, isEdited } from '../rows/rest.ts'

/** A letter in the file: where it is, and what stands there. */
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

/** The open letter of a queue that holds this key; of several the oldest. */
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

/** How much of a letter is read: what lists show, all of it, or all of it as it was captured. */
export type Extent = 'summary' | 'whole' | 'captured'

/** A letter in the file, together with the form in which it goes to the caller. */
export interface Found {
  entry: Entry
  kept: KeptLetter
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
  const trouble = origin === null ? 'its body is gone' : null
  const queue = context.queues.name(entry.queue)
  const kept: KeptLetter = [
    values,
    queue,
    origin,
    originCrc,
    bytes ?? null,
    bytesCrc ?? 0,
    [],
    trouble,
  ]
  if (extent === 'whole' && origin !== null) addLater(context, { entry, kept }, origin)
  return { entry, kept }
}

/**
 * Puts in what came after capture: the bytes of an edit, and the entries of the history beyond the
 * first.
 */
function addLater({ db }: StoreContext, { entry, kept }: Found, origin: string): void {
  const { seq, row } = entry
  const edit = isEdited(row)
    ? db.get('SELECT bytes, bytes_crc FROM edits WHERE seq = ?', seq)
    : undefined
  if (edit) {
    kept[4] = edit[0] as Uint8Array
    kept[5] = edit[1] as number
  }
  if (hasLaterEntries(row, origin)) kept[6] = laterEntries(db, seq)
}

/** The entries of the history that are not in the origin, as JSON. */
export function laterEntries(db: Database, seq: number): string[] {
  const rows = db.all('SELECT entry FROM history WHERE seq = ? ORDER BY n', seq)
  return rows.map(([entry]) => entry as string)
}

/**
 * What can still be said of a letter when a page of it cannot be read: its row, if that is on
 * another.
 */
function damaged(context: StoreContext, by: 'id' | 'seq', key: string | number): Found | undefined {
  const values = context.db.get(`SELECT ${fields} FROM letters WHERE ${by} = ?`, key)
  if (!values) return undefined
  const entry = entryOf(values)!
  const queue = context.queues.name(entry.queue)
  const trouble = 'a page that holds it is damaged'
  return { entry, kept: [values.slice(0, rowWidth), queue, null, 0, null, 0, [], trouble] }
}
