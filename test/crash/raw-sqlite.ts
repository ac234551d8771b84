import { DatabaseSync } from 'node:sqlite'
import type { Dump } from './verify.ts'
import { dumpOfRows, type RawRow } from './raw-row.ts'

function openFile(url: string): DatabaseSync {
  return new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true, timeout: 5000 })
}

/** Number of unsettled letters in the file. */
export function unsettledRows(url: string): number {
  const db = openFile(url)
  try {
    return db.prepare('SELECT count(*) AS n FROM letters WHERE state < 2').get()?.['n'] as number
  } finally {
    db.close()
  }
}

/** The letters of the file, read with plain SQL. */
export function dumpFile(url: string): Dump {
  const db = openFile(url)
  try {
    const history = db.prepare('SELECT entry FROM history WHERE seq = ? ORDER BY n')
    const rows = db
      .prepare(
        `SELECT seq, letters.id, name AS queue, state, reason, epoch, retries, rest, origin, bytes
         FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies USING (seq) ORDER BY letters.id`,
      )
      .all() as unknown as (RawRow & { seq: number })[]
    for (const row of rows) row.later = history.all(row.seq).map(({ entry }) => String(entry))
    return dumpOfRows(rows, problemsIn(db))
  } finally {
    db.close()
  }
}

/** Rows without a letter, and the integrity check of SQLite. */
function problemsIn(db: DatabaseSync): string[] {
  const count = (sql: string): number => Number(db.prepare(sql).get()?.['n'])
  const orphans = {
    bodies: count('SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM letters)'),
    'history lines': count(
      'SELECT count(*) AS n FROM history WHERE seq NOT IN (SELECT seq FROM letters)',
    ),
  }
  const left = Object.entries(orphans).filter(([, n]) => n > 0)
  const integrity = db
    .prepare('PRAGMA integrity_check')
    .all()
    .map((row) => String(row['integrity_check']))
  return [
    ...left.map(([what, n]) => `${n} ${what} without a letter`),
    ...integrity.filter((line) => line !== 'ok').map((line) => `integrity check: ${line}`),
  ]
}
