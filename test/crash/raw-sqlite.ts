import { DatabaseSync } from 'node:sqlite'
import { dumpOf, type RawLetter } from './raw-letter.ts'
import type { Dump } from './verify.ts'

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

interface RawRow extends Omit<RawLetter, 'bytes'> {
  bytes: string | Uint8Array | null
}

/** The letters of the file, read with plain SQL. */
export function dumpFile(url: string): Dump {
  const db = openFile(url)
  try {
    const rows = db
      .prepare(
        `SELECT lower(hex(letters.id)) AS id, name AS queue, state, reason, epoch, retries,
           max_retries AS maxRetries, history, bytes
         FROM letters LEFT JOIN queues ON queues.id = queue LEFT JOIN bodies USING (seq)
         ORDER BY letters.id`,
      )
      .all() as unknown as RawRow[]
    return dumpOf(rows.map(letterOf), problemsIn(db))
  } finally {
    db.close()
  }
}

/** Ids have no hyphens, and bytes that are UTF-8 are text. */
function letterOf({ id, bytes, ...row }: RawRow): RawLetter {
  return {
    ...row,
    id: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    bytes: bytes === null ? null : Buffer.from(bytes as string),
  }
}

/** Rows without a letter, and the integrity check of SQLite. */
function problemsIn(db: DatabaseSync): string[] {
  const { n } = db
    .prepare('SELECT count(*) AS n FROM bodies WHERE seq NOT IN (SELECT seq FROM letters)')
    .get() as { n: number }
  const integrity = db
    .prepare('PRAGMA integrity_check')
    .all()
    .map((row) => String(row['integrity_check']))
  return [
    ...(n > 0 ? [`${n} bodies without a letter`] : []),
    ...integrity.filter((line) => line !== 'ok').map((line) => `integrity check: ${line}`),
  ]
}
