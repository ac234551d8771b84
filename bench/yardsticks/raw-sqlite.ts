import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/clock/clock.ts'
import type { Location } from '../location.ts'
import type { RawEngine } from './raw-engine.ts'

const schema = `PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 2000;
  CREATE TABLE items (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, state INTEGER NOT NULL,
    due_at INTEGER, payload TEXT NOT NULL) STRICT;
  CREATE INDEX items_due ON items (state, due_at) WHERE due_at IS NOT NULL`

/** A table in a SQLite file, written by this thread with full durability. */
export async function openRawSqlite({ at }: Location): Promise<RawEngine> {
  const path = join(at, 'raw.db')
  const db = new DatabaseSync(path)
  db.exec(schema)
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const insert = db.prepare('INSERT INTO items (id, state, due_at, payload) VALUES (?, 0, ?, ?)')
  const lease = db.prepare(`UPDATE items SET state = 1, due_at = ?1 + 30000 WHERE seq IN
    (SELECT seq FROM items WHERE state = 0 AND due_at <= ?1 ORDER BY due_at LIMIT ?2)
    RETURNING seq, payload`)
  const reschedule = db.prepare(`UPDATE items SET due_at = ?1 WHERE seq IN
    (SELECT seq FROM items WHERE state = 0 AND due_at < ?1 ORDER BY due_at LIMIT ?2)`)
  const finish = db.prepare('UPDATE items SET state = 2, due_at = NULL WHERE seq = ? AND state = 1')
  const transact = (work: () => void): void => {
    begin.run()
    work()
    commit.run()
  }
  return {
    add: async (items) =>
      transact(() => {
        for (const { id, payload } of items) insert.run(id, systemClock.now(), payload)
      }),
    drain: async (limit) => {
      const leased = lease.all(systemClock.now(), limit)
      transact(() => {
        for (const { seq } of leased) finish.run(seq!)
      })
      return leased.length
    },
    reschedule: async (limit, dueMs) => Number(reschedule.run(dueMs, limit).changes),
    close: async () => {
      db.close()
      for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
    },
  }
}
