import { pending, wait } from '../rows/codes.ts'
import type { StoreContext } from './context.ts'
import { idOf } from './schema.ts'

const laneHeads = `SELECT seq, state, unmet, wait FROM letters INDEXED BY letters_lane_head
  WHERE queue = ? AND lane = ? AND state < 2 ORDER BY id LIMIT 2`
const laneBusy = `SELECT 1 FROM letters INDEXED BY letters_lane_busy
  WHERE queue = ? AND lane = ? AND state = 1 LIMIT 1`

/**
 * Frees the oldest active letter of a lane, unless it depends on another or one is in flight, and
 * holds the next one. Called after a letter joined its lane, left it, or ended a run. Letters of
 * lanes are written as held, so only the first two of a lane can be wrong.
 */
export function settleLane(context: StoreContext, queue: number, lane: string): void {
  const { db } = context
  const isBusy = db.get(laneBusy, queue, lane) !== undefined
  const heads = db.all(laneHeads, queue, lane) as [number, number, number, number][]
  for (const [at, [seq, state, unmet, present]] of heads.entries()) {
    if (state !== pending) continue
    const place = at === 0 && !isBusy && unmet === 0 ? wait.ready : wait.held
    if (place !== present) db.run('UPDATE letters SET wait = ? WHERE seq = ?', place, seq)
    context.woke ||= place === wait.ready
  }
}

const isDone = `SELECT 1 FROM letters WHERE id = ${idOf('?')} AND (state = 2 OR archived_from = 2)`

/** Holds a new letter until the letters with these ids are resolved, if one of them is not. */
export function addDependencies({ db }: StoreContext, seq: number, ids: readonly string[]): void {
  const unmet = new Set(ids.filter((id) => !db.get(isDone, id)))
  if (unmet.size === 0) return
  for (const id of unmet) db.run('INSERT INTO deps VALUES (?, ?)', seq, id)
  const hold = 'UPDATE letters SET unmet = ?, wait = iif(wait = 0, 2, wait) WHERE seq = ?'
  db.run(hold, unmet.size, seq)
}

const meetOne = `UPDATE letters SET unmet = unmet - 1,
  wait = iif(wait = 2 AND unmet = 1 AND lane IS NULL, 0, wait)
  WHERE seq = ? RETURNING queue, lane, unmet`

/** Frees the letters that depended on these resolved ones, if they depend on no other. */
export function releaseDependents(context: StoreContext, resolved: readonly string[]): void {
  const { db } = context
  if (resolved.length === 0 || !db.get('SELECT 1 FROM deps LIMIT 1')) return
  for (const id of resolved)
    for (const [seq] of db.all('DELETE FROM deps WHERE id = ? RETURNING seq', id)) {
      const [queue, lane, unmet] = db.get(meetOne, seq!) as [number, string | null, number]
      if (unmet > 0) continue
      if (lane !== null) settleLane(context, queue, lane)
      else context.woke = true
    }
}

/** The ids that a letter still waits for. */
export function waitsOf({ db }: StoreContext, seq: number): string[] {
  return db.all('SELECT id FROM deps WHERE seq = ?', seq).map(([id]) => id as string)
}
