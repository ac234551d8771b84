import { DatabaseSync } from 'node:sqlite'
import type { PackedLetter } from '../../src/stores/rows/form.ts'
import { rowColumns, rowWidth } from '../../src/stores/rows/row.ts'
import { toMs } from '../../src/letter/time.ts'
import { migrations } from '../../src/stores/sqlite/schema.ts'

export interface Raw {
  transaction(letters: readonly PackedLetter[]): void
  close(): void
}

/** A SQLite file with the tables of a store, without the store. */
export function openRaw(path: string): Raw {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 2000')
  for (const migration of migrations) if (typeof migration === 'string') db.exec(migration)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const marks = '?, '.repeat(rowWidth)
  const letters = db.prepare(
    `INSERT INTO letters (${rowColumns}, queue, dedupe, wait, due_at) VALUES (${marks}?, ?, ?, ?)`,
  )
  const bodies = db.prepare('INSERT INTO bodies VALUES (?, ?, ?, ?, ?)')
  const insert = ([values, , origin, originCrc, bytes, bytesCrc]: PackedLetter): void => {
    const dueAt = toMs(values[11] as string)
    const { lastInsertRowid } = letters.run(...values, 1, null, 0, dueAt)
    bodies.run(lastInsertRowid, origin, originCrc, bytesCrc, bytes)
  }
  return {
    transaction: (some) => {
      begin.run()
      for (const letter of some) insert(letter)
      commit.run()
    },
    close: () => db.close(),
  }
}
