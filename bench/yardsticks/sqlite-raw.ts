import { DatabaseSync } from 'node:sqlite'

/** A letter as the prototype stores it. */
export type RawLetter = [id: string, nowMs: number, row: string, origin: string, payload: string]

export interface Raw {
  transaction(letters: readonly RawLetter[]): void
  close(): void
}

/**
 * A prototype: a letter is one row with three indexes and one body, and one counter is exact. It
 * has no lanes, dependencies, dedupe keys or tags.
 */
export function openRaw(path: string): Raw {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 2000')
  db.exec(`
    CREATE TABLE letters (seq INTEGER PRIMARY KEY, id BLOB NOT NULL, queue INTEGER NOT NULL,
      state INTEGER NOT NULL, due_at INTEGER, row TEXT NOT NULL) STRICT;
    CREATE UNIQUE INDEX letters_id ON letters (id);
    CREATE INDEX letters_list ON letters (queue, state, id);
    CREATE INDEX letters_due ON letters (queue, due_at, id) WHERE due_at IS NOT NULL;
    CREATE TABLE bodies (seq INTEGER PRIMARY KEY, origin TEXT NOT NULL, payload TEXT NOT NULL) STRICT;
    CREATE TABLE counters (queue INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;
    INSERT INTO counters VALUES (1, 0)`)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const letters = db.prepare(
    "INSERT INTO letters (id, queue, state, due_at, row) VALUES (unhex(?, '-'), 1, 0, ?, ?)",
  )
  const bodies = db.prepare('INSERT INTO bodies VALUES (?, ?, ?)')
  const counters = db.prepare('UPDATE counters SET n = n + ? WHERE queue = 1')
  return {
    transaction: (some) => {
      begin.run()
      for (const [id, nowMs, row, origin, payload] of some)
        bodies.run(letters.run(id, nowMs, row).lastInsertRowid, origin, payload)
      counters.run(some.length)
      commit.run()
    },
    close: () => db.close(),
  }
}
