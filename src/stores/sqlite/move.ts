import { crc32 } from 'node:zlib'
import { maxHistory } from '../../letter/history.ts'
import type { RowChange } from '../rows/change.ts'
import { isActiveCode } from '../rows/codes.ts'
import type { Column } from '../rows/columns.ts'
import type { StoreContext } from './context.ts'
import { parseTags, type Counted } from './counted.ts'
import type { Entry } from './letters.ts'
import { idOf } from './schema.ts'
import type { SentChange, SentGroup, StoredBytes } from './transfer.ts'
import { settleLane } from './waits.ts'

/** How the changes of one group are written. */
export interface Move {
  /**
   * The statements for one letter and for many. Parameters: the values of the change, its line, and
   * the row number or a JSON list of them.
   */
  one: string
  many: string
  due: RowChange['due']
  /** The fields that letters are counted by and that the changes set, with their positions. */
  counted: [field: keyof Counted, position: number][]
}

/** The column of each field that letters are counted by. A change can set all but the queue. */
const columnOf: [keyof Counted, Column][] = [
  ['state', 'state'],
  ['priority', 'priority'],
  ['category', 'category'],
  ['policy', 'policy'],
  ['fingerprint', 'fingerprint'],
  ['retries', 'retries'],
  ['backoffMs', 'backoff_ms'],
  ['tags', 'tags'],
]

/** The position of the first value in a change. */
const firstValue = 6

/** Moves by their columns and due: the shapes of changes are few. */
const moves = new Map<string, Move>()

export function moveOf({ columns, due }: Omit<SentGroup, 'guard' | 'changes'>): Move {
  const shape = `${columns} ${due}`
  const known = moves.get(shape)
  if (known) return known
  const move = createMove(columns.split(',') as Column[], due)
  moves.set(shape, move)
  return move
}

function createMove(columns: readonly Column[], due: RowChange['due']): Move {
  const update = `UPDATE letters SET ${assignments(columns, due)} WHERE seq`
  return {
    one: `${update} = ?`,
    many: `${update} IN (SELECT value FROM json_each(?))`,
    due,
    counted: columnOf
      .filter(([, column]) => columns.includes(column))
      .map(([field, column]) => [field, firstValue + columns.indexOf(column)]),
  }
}

function assignments(columns: readonly Column[], due: RowChange['due']): string {
  const set = columns.map((column) => `${column} = ?`)
  if (due === 'ready') set.push('wait = iif(unmet > 0 OR lane IS NOT NULL, 2, 0)')
  if (due === 'resting') set.push('due_at = retry_at, wait = iif(retry_at IS NULL, NULL, 3)')
  return [...set, 'version = version + 1', appendLine('?')].join(', ')
}

/** Whether the history has the maximum number of lines. A line has at least 12 characters. */
const isFull = `(octet_length(history) > ${12 * maxHistory} AND
  length(history) - length(replace(history, char(10), '')) >= ${maxHistory - 1})`

/** The history without its second line. */
const shortened = `substr(history, 1, instr(history, char(10))) ||
  substr(history, instr(history, char(10)) + 1 +
    instr(substr(history, instr(history, char(10)) + 1), char(10)))`

/** Assignments that append a line to the history: `appendHistory` of `letter/history.ts` in SQL. */
export function appendLine(line: string): string {
  return `omitted = omitted + ${isFull}, history =
    iif(history = '', '', iif(${isFull}, ${shortened}, history) || char(10)) || ${line}`
}

/** Writes a change of a letter, and updates counts, tags and its lane. Returns the new state. */
export function moveLetter(
  context: StoreContext,
  entry: Entry,
  move: Move,
  change: SentChange,
): number {
  const { db, counters } = context
  const { seq, lane } = entry
  const [id, , , line, counts, bytes, ...values] = change
  db.run(move.one, ...values, line, seq)
  const next = nextOf(entry, move, change)
  if (next.tags !== entry.tags) writeTags(context, { seq, id }, entry.tags, next.tags)
  if (bytes !== null) writeEdit(context, seq, bytes)
  counters.move(entry, next)
  counters.total(counts, next)
  const isActive = isActiveCode(entry.state) || isActiveCode(next.state)
  if (lane !== null && isActive && move.due !== undefined) settleLane(context, entry.queue, lane)
  if (move.due === 'ready' && lane === null && entry.unmet === 0) context.woke = true
  return next.state
}

/** What the letter is counted by after the change. */
export function nextOf<T extends Counted>(entry: T, { counted }: Move, change: SentChange): T {
  const next = { ...entry }
  const fields = next as Record<keyof Counted, unknown>
  for (const [field, position] of counted)
    fields[field] = field === 'tags' ? parseTags(change[position]!) : change[position]
  return next
}

/** Brings the index of tags from the old tags of a letter to its new ones. */
export function writeTags(
  { db }: StoreContext,
  { seq, id }: { seq: number; id: string },
  from: readonly string[],
  to: readonly string[],
): void {
  for (const tag of from)
    if (!to.includes(tag)) db.run(`DELETE FROM tags WHERE tag = ? AND id = ${idOf('?')}`, tag, id)
  for (const tag of to)
    if (!from.includes(tag)) db.run(`INSERT INTO tags VALUES (?, ${idOf('?')}, ?)`, tag, id, seq)
}

/** Stores the bytes of the newest edit. The captured bytes stay. */
export function writeEdit({ db }: StoreContext, seq: number, bytes: StoredBytes): void {
  db.run('INSERT OR REPLACE INTO edits VALUES (?, ?, ?)', seq, bytes, crc32(bytes))
}

/**
 * Deletes a letter and everything that belongs to it. Without an action, the totals do not change.
 */
export function eraseLetter(context: StoreContext, entry: Entry, action?: number): void {
  const { db, counters } = context
  const { seq, queue, lane, tags } = entry
  for (const tag of tags)
    db.run(
      'DELETE FROM tags WHERE tag = ? AND id = (SELECT id FROM letters WHERE seq = ?)',
      tag,
      seq,
    )
  if (entry.unmet > 0) db.run('DELETE FROM deps WHERE seq = ?', seq)
  for (const table of ['letters', 'bodies', 'edits'])
    db.run(`DELETE FROM ${table} WHERE seq = ?`, seq)
  counters.count(entry, -1)
  if (action !== undefined) counters.total(1 << action, entry)
  if (lane !== null && isActiveCode(entry.state)) settleLane(context, queue, lane)
}
