import { toTimestamp } from '../../letter/time.ts'
import type { StoreContext } from './context.ts'
import type { Methods, SentRecord } from './protocol.ts'

const columns = 'id, version, value, updated_at'

const selectRecord = `SELECT ${columns} FROM records WHERE kind = ? AND id = ?`

export function getRecord(
  { db }: StoreContext,
  { kind, id }: Methods['record']['request'],
): Methods['record']['response'] {
  return (db.get(selectRecord, kind, id) as SentRecord | undefined) ?? null
}

/** The records with these ids, in the given order. Ids without a record are left out. */
export function getRecords(
  { db }: StoreContext,
  { kind, ids }: Methods['recordsOf']['request'],
): SentRecord[] {
  return ids.flatMap((id) => db.all(selectRecord, kind, id) as SentRecord[])
}

export function putRecord(
  { db, nowMs }: StoreContext,
  { kind, id, value, expected }: Methods['put']['request'],
): 'written' | 'conflict' {
  const found = db.get('SELECT version FROM records WHERE kind = ? AND id = ?', kind, id)
  const version = found ? (found[0] as number) : 0
  if (expected !== undefined && expected !== version) return 'conflict'
  const sql = 'INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)'
  db.run(sql, kind, id, version + 1, value, toTimestamp(nowMs))
  return 'written'
}

export function dropRecord(
  { db }: StoreContext,
  { kind, id }: Methods['drop']['request'],
): boolean {
  return db.run('DELETE FROM records WHERE kind = ? AND id = ?', kind, id) > 0
}

/** Ids with a common prefix are adjacent, so the list ends at the first id without it. */
export function listRecords(
  { db }: StoreContext,
  { kind, prefix, after, limit }: Methods['records']['request'],
): SentRecord[] {
  const isAfter = after === null ? '' : 'AND id > ?'
  const sql = `SELECT ${columns} FROM records WHERE kind = ? AND id >= ? ${isAfter} ORDER BY id LIMIT ?`
  const found = db.all(sql, kind, prefix, ...(after === null ? [] : [after]), limit) as SentRecord[]
  const end = found.findIndex(([id]) => !id.startsWith(prefix))
  return end === -1 ? found : found.slice(0, end)
}

/**
 * One index lookup per kind. Kinds are sorted as JavaScript sorts strings, which differs from
 * SQLite.
 */
export function listKinds({ db }: StoreContext): string[] {
  const kinds: string[] = []
  let row = db.get('SELECT min(kind) FROM records')
  while (row && row[0] !== null) {
    kinds.push(row[0] as string)
    row = db.get('SELECT min(kind) FROM records WHERE kind > ?', row[0]!)
  }
  return kinds.toSorted()
}
