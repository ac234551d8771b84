import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/clock.ts'
import type { PackedLetter } from '../../src/kept/form.ts'
import { rowColumns, rowWidth } from '../../src/kept/row.ts'
import { migrations } from '../../src/stores/sqlite/schema.ts'
import { toMs } from '../../src/letter/time.ts'
import { rate } from '../harness.ts'
import type { Ground } from '../ground.ts'
import { sampleRows } from '../sample.ts'

/**
 * What node:sqlite alone gives: the rows that the store writes, into the same tables and indexes, fully synchronous, in
 * one thread, with so many letters to a transaction. Nothing is made, checked, classified, counted or handed between
 * threads: the counters that the store keeps up are its own cost.
 */
export async function rawSqlite(
  { at }: Ground,
  count: number,
  perTransaction: number,
): Promise<number> {
  const path = join(at, `raw-${perTransaction}.db`)
  const raw = openRaw(path, await sampleRows())
  const warmUp = Math.min(count, 10 * perTransaction)
  for (let n = 0; n < warmUp; n += perTransaction) raw.transaction(n, perTransaction)
  const startMs = performance.now()
  for (let n = 0; n < count; n += perTransaction) raw.transaction(n, perTransaction)
  const tookMs = performance.now() - startMs
  raw.close()
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
  return rate(count, tookMs)
}

interface Raw {
  transaction(first: number, letters: number): void
  close(): void
}

function openRaw(path: string, rows: readonly PackedLetter[]): Raw {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 2000')
  for (const migration of migrations) db.exec(migration)
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const marks = '?, '.repeat(rowWidth)
  const letters = db.prepare(
    `INSERT INTO letters (${rowColumns}, queue, dedupe, wait, due_at) VALUES (${marks}?, ?, ?, ?)`,
  )
  const bodies = db.prepare('INSERT INTO bodies VALUES (?, ?, ?, ?, ?)')
  const insert = (n: number): void => {
    const [values, , origin, originCrc, bytes, bytesCrc] = rows[n % rows.length]!
    values[0] = systemClock.id()
    const dueAt = toMs(values[11] as string)
    const { lastInsertRowid } = letters.run(...values, 1, null, 0, dueAt)
    bodies.run(lastInsertRowid, origin, originCrc, bytesCrc, bytes)
  }
  return {
    transaction: (first, count) => {
      begin.run()
      for (let n = first; n < first + count; n++) insert(n)
      commit.run()
    },
    close: () => db.close(),
  }
}
