import type { Books } from './books.ts'
import type { Rest } from './pack.ts'
import type { KeptLetter } from './protocol.ts'
import { rowColumns, rowOf, rowWidth, seal, valuesOf, type Row, type SqlValue } from './row.ts'
import { isCorrupt } from './trouble.ts'

/** A letter in the file: where it is, and what stands there. */
export interface Entry {
  seq: number
  queue: number
  row: Row
  /** False: the checksum did not hold when the row was read. It is never made good by writing over it. */
  sound: boolean
}

const fields = `${rowColumns}, seq, queue`

export function entryById(books: Books, id: string): Entry | undefined {
  return entryOf(books.db.get(`SELECT ${fields} FROM letters WHERE id = ?`, id))
}

export function entryBySeq(books: Books, seq: number): Entry | undefined {
  return entryOf(books.db.get(`SELECT ${fields} FROM letters WHERE seq = ?`, seq))
}

function entryOf(values: SqlValue[] | undefined): Entry | undefined {
  if (!values) return undefined
  const row = rowOf(values)
  const sound = seal(row) === row.crc
  return { seq: values[rowWidth] as number, queue: values[rowWidth + 1] as number, row, sound }
}

/** Tags as they count: each once. */
export function tagsOf(row: Row): string[] {
  if (row.tagged === 0) return []
  const tags = restOf(row)?.tags
  return Array.isArray(tags) ? [...new Set(tags)] : []
}

/** The fields without a column, undefined when they cannot be read. */
export function restOf(row: Row): Rest | undefined {
  try {
    return JSON.parse(row.rest) as Rest
  } catch {
    return undefined
  }
}

/** How `rest` begins once the payload was edited, and `origin` when the first entry of the history is in it. */
const editedMark = '{"payload":'
const enteredMark = '{"entry":'

/** The open letter of a queue that holds this key; of several the oldest. */
export function holderOf(books: Books, queue: number, dedupe: Uint8Array): Entry | undefined {
  return entryOf(
    books.db.get(
      `SELECT ${fields} FROM letters INDEXED BY letters_dedupe
       WHERE queue = ? AND dedupe = ? AND state NOT IN (2, 5) ORDER BY id LIMIT 1`,
      queue,
      dedupe,
    ),
  )
}

/** The letter in the form in which it goes to the caller; `whole`: with bytes and history. */
export function keptOf(books: Books, { seq, queue, row }: Entry, whole: boolean): KeptLetter {
  const kept: KeptLetter = [valuesOf(row), books.queues.name(queue), null, 0, null, 0, [], null]
  try {
    readBody(books, seq, row, kept, whole)
  } catch (error) {
    if (!isCorrupt(error)) throw error
    kept[7] = 'the page that holds it is damaged'
  }
  return kept
}

/** Reads what belongs to the row. The bytes of an edit, where there is one, take the place of those captured. */
function readBody({ db }: Books, seq: number, row: Row, kept: KeptLetter, whole: boolean): void {
  const columns = whole ? 'origin, origin_crc, bytes, bytes_crc' : 'origin, origin_crc'
  const body = db.get(`SELECT ${columns} FROM bodies WHERE seq = ?`, seq)
  if (!body) {
    kept[7] = 'its body is gone'
    return
  }
  const origin = body[0] as string
  kept[2] = origin
  kept[3] = body[1] as number
  if (!whole) return
  const edit = row.rest.startsWith(editedMark)
    ? db.get('SELECT bytes, bytes_crc FROM edits WHERE seq = ?', seq)
    : undefined
  kept[4] = (edit ? edit[0] : body[2]) as Uint8Array
  kept[5] = (edit ? edit[1] : body[3]) as number
  if (row.entries - row.omitted > (origin.startsWith(enteredMark) ? 1 : 0))
    kept[6] = db
      .all('SELECT entry FROM history WHERE seq = ? ORDER BY n', seq)
      .map(([entry]) => entry as string)
}

/** The letter with the bytes as they were captured. */
export function keptAsCaptured(books: Books, { seq, queue, row }: Entry): KeptLetter | undefined {
  const body = books.db.get(
    'SELECT origin, origin_crc, bytes, bytes_crc FROM bodies WHERE seq = ?',
    seq,
  )
  if (!body) return undefined
  const [origin, originCrc, bytes, bytesCrc] = body as [string, number, Uint8Array, number]
  return [valuesOf(row), books.queues.name(queue), origin, originCrc, bytes, bytesCrc, [], null]
}
