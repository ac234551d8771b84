import { dueOf } from '../rows/due.ts'
import type { StoreContext } from './context.ts'
import { archived, isActiveCode, resolved, retrying, wait } from '../rows/codes.ts'
import { restOf } from '../rows/rest.ts'
import { entryBySeq } from './reading.ts'
import type { Row } from '../rows/row.ts'

/** Where a letter waits, and until when. */
export interface WaitPlace {
  wait: number | null
  dueAt: number | null
}

/**
 * Where a letter waits as it now stands. A lane has one letter in flight at a time, which stays
 * claimable should its lease lapse, and otherwise its oldest active letter is free; a letter that
 * still depends on another is not.
 */
export function waitOf(context: StoreContext, seq: number, queue: number, row: Row): WaitPlace {
  const dueAt = dueOf(row)
  if (dueAt === null) return { wait: null, dueAt }
  if (!isActiveCode(row.state)) return { wait: wait.resting, dueAt }
  if (row.state === retrying) return { wait: wait.leased, dueAt }
  const held =
    (row.dependent === 1 && isDependent(context, seq)) ||
    (row.lane !== null && isBehind(context, queue, row.lane, row.id))
  if (held) return { wait: wait.held, dueAt }
  context.woke = true
  return { wait: wait.ready, dueAt }
}

/** `deps` has only what is not resolved yet: once resolved is resolved for ever. */
function isDependent(context: StoreContext, seq: number): boolean {
  return context.db.get('SELECT 1 FROM deps WHERE seq = ? LIMIT 1', seq) !== undefined
}

/** What the letter still waits for. */
export function waitsOf({ db }: StoreContext, seq: number): string[] {
  return db.all('SELECT id FROM deps WHERE seq = ?', seq).map(([id]) => id as string)
}

const laneHeads = 'letters INDEXED BY letters_lane_head WHERE queue = ? AND lane = ? AND state < 2'
const laneBusy = 'letters INDEXED BY letters_lane_busy WHERE queue = ? AND lane = ? AND state = 1'

/** Whether another letter of the lane is in flight, or an older one goes first. */
function isBehind(context: StoreContext, queue: number, lane: string, id: string): boolean {
  const older = `SELECT 1 FROM ${laneHeads} AND id < ? LIMIT 1`
  const busy = `SELECT 1 FROM ${laneBusy} AND id <> ? LIMIT 1`
  return [older, busy].some((sql) => context.db.get(sql, queue, lane, id) !== undefined)
}

/**
 * After a letter joined its lane, left it, or began or ended a run: only the first two of the lane,
 * and the one that follows the letter, can have become free, or be free no more.
 */
export function settleLane(context: StoreContext, queue: number, lane: string, id: string): void {
  const first = `SELECT seq FROM ${laneHeads} ORDER BY id LIMIT 2`
  const next = `SELECT seq FROM ${laneHeads} AND id > ? ORDER BY id LIMIT 1`
  const places = [...context.db.all(first, queue, lane), ...context.db.all(next, queue, lane, id)]
  for (const seq of new Set(places.map((row) => row[0] as number))) settle(context, seq)
}

/** Notes what a new letter depends on, as far as it is not resolved, and then where it waits. */
export function addDependencies(context: StoreContext, seq: number, ids: readonly string[]): void {
  for (const id of ids)
    if (!isResolved(context, id))
      context.db.run('INSERT OR IGNORE INTO deps VALUES (?, ?)', seq, id)
  settle(context, seq)
}

function isResolved(context: StoreContext, id: string): boolean {
  const found = context.db.get('SELECT state, seq FROM letters WHERE id = ?', id) as
    | [number, number]
    | undefined
  if (!found) return false
  if (found[0] !== archived) return found[0] === resolved
  const entry = entryBySeq(context, found[1])
  return entry !== undefined && restOf(entry.row)?.archivedFrom === 'resolved'
}

/** Releases the letters that depend on a resolved letter. */
export function freeDependents(context: StoreContext, id: string): void {
  const dependents = context.db.all('SELECT seq FROM deps INDEXED BY deps_id WHERE id = ?', id)
  if (dependents.length === 0) return
  context.db.run('DELETE FROM deps WHERE id = ?', id)
  for (const [seq] of dependents) settle(context, seq as number)
}

/** Updates where a letter waits. */
function settle(context: StoreContext, seq: number): void {
  const entry = entryBySeq(context, seq)
  if (!entry) return
  const place = waitOf(context, seq, entry.queue, entry.row)
  context.db.run(
    'UPDATE letters SET wait = ?, due_at = ? WHERE seq = ?',
    place.wait,
    place.dueAt,
    seq,
  )
}
