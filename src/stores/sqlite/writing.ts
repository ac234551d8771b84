import type { HistoryEntry } from '../../letter/letter.ts'
import { maxHistory } from '../../letter/history.ts'
import type { StoreContext } from './context.ts'
import { isActiveCode, resolved } from '../rows/codes.ts'
import { tagsOf } from '../rows/rest.ts'
import type { Entry } from './reading.ts'
import { seal, type Row } from '../rows/row.ts'
import { freeDependents, settleLane, waitOf } from './waits.ts'

const moved = `UPDATE letters SET state = ?, reason = ?, version = ?, epoch = ?, retries = ?, backoff_ms = ?, retry_at = ?,
  settled_at = ?, updated_at = ?, worker = ?, leased_until = ?, entries = ?, omitted = ?, rest = ?, crc = ?, wait = ?,
  due_at = ?`
const rewritten = `${moved}, priority = ?, category = ?, policy = ?, fingerprint = ?, expires_at = ?, tagged = ?`

/**
 * Writes a changed row and updates counts, lane and dependents. Columns that rarely change are left
 * out if unchanged, since each has an index.
 */
export function rewrite(context: StoreContext, { seq, queue, row }: Entry, next: Row): void {
  const { db, counters } = context
  // A row with a wrong checksum keeps a wrong checksum.
  next.crc = seal(row) === row.crc ? seal(next) : ~seal(next) >>> 0
  const place = waitOf(context, seq, queue, next)
  const values = [
    next.state,
    next.reason,
    next.version,
    next.epoch,
    next.retries,
    next.backoffMs,
    next.retryAt,
    next.settledAt,
    next.updatedAt,
    next.worker,
    next.leasedUntil,
    next.entries,
    next.omitted,
    next.rest,
    next.crc,
    place.wait,
    place.dueAt,
  ]
  const { priority, category, policy, fingerprint, expiresAt, tagged } = next
  const tags = tagsOf(row)
  if (
    priority === row.priority &&
    category === row.category &&
    policy === row.policy &&
    fingerprint === row.fingerprint &&
    expiresAt === row.expiresAt &&
    tagged === row.tagged
  )
    db.run(`${moved} WHERE seq = ?`, ...values, seq)
  else
    db.run(
      `${rewritten} WHERE seq = ?`,
      ...values,
      priority,
      category,
      policy,
      fingerprint,
      expiresAt,
      tagged,
      seq,
    )
  const newTags = next.rest === row.rest ? tags : tagsOf(next)
  if (newTags !== tags) retag(context, seq, row.id, tags, newTags)
  counters.count(queue, row, tags, -1)
  counters.count(queue, next, newTags, 1)
  const inLane = isActiveCode(row.state) || isActiveCode(next.state)
  if (row.lane !== null && inLane && row.state !== next.state)
    settleLane(context, queue, row.lane, row.id)
  if (next.state === resolved && row.state !== resolved) freeDependents(context, row.id)
}

function retag(context: StoreContext, seq: number, id: string, from: string[], to: string[]): void {
  for (const tag of from)
    if (!to.includes(tag)) context.db.run('DELETE FROM tags WHERE tag = ? AND id = ?', tag, id)
  for (const tag of to) if (!from.includes(tag)) addTag(context, tag, id, seq)
}

export function addTag(context: StoreContext, tag: string, id: string, seq: number): void {
  context.db.run('INSERT OR REPLACE INTO tags VALUES (?, ?, ?)', tag, id, seq)
}

/**
 * Deletes a letter and everything that belongs to it. Without an action, the totals do not change.
 */
export function erase(context: StoreContext, { seq, queue, row }: Entry, action?: number): void {
  const { db, counters } = context
  const tags = tagsOf(row)
  db.run('DELETE FROM letters WHERE seq = ?', seq)
  db.run('DELETE FROM bodies WHERE seq = ?', seq)
  db.run('DELETE FROM edits WHERE seq = ?', seq)
  db.run('DELETE FROM history WHERE seq = ?', seq)
  if (row.dependent === 1) db.run('DELETE FROM deps WHERE seq = ?', seq)
  for (const tag of tags) db.run('DELETE FROM tags WHERE tag = ? AND id = ?', tag, row.id)
  counters.count(queue, row, tags, -1)
  if (action !== undefined) counters.total(queue, action, row)
  if (row.lane !== null && isActiveCode(row.state)) settleLane(context, queue, row.lane, row.id)
}

/**
 * Appends to the history of a row that is about to be written. A full history drops its second
 * oldest entry.
 */
export function remember(context: StoreContext, seq: number, row: Row, entry: HistoryEntry): void {
  context.db.run('INSERT INTO history VALUES (?, ?, ?)', seq, row.entries, JSON.stringify(entry))
  row.entries += 1
  const excess = row.entries - row.omitted - maxHistory
  if (excess <= 0) return
  const last = row.omitted + excess
  context.db.run('DELETE FROM history WHERE seq = ? AND n BETWEEN 1 AND ?', seq, last)
  row.omitted = last
}
