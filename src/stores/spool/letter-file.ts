import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { isBusy } from '../../backends/sqlite/errors.ts'
import { FilePlace } from '../../backends/sqlite/place.ts'
import { RedriveError } from '../../errors.ts'

/** Format of the file. A file with a higher number is from a newer version. */
const formatVersion = 1

/** How long an open waits for another process that opens the same file. */
const busyTimeoutMs = 100

/** A letter to write: its timestamp and its JSON. */
export type NewRow = readonly [at: string, json: string]

export interface StoredRow {
  seq: number
  crc: number
  letter: Uint8Array
}

/**
 * A SQLite file of waiting letters, locked exclusively while it is open. The system releases the
 * lock when the process dies. Each row has a checksum because SQLite has none. The file has a
 * rollback journal and no WAL: SQLite silently ignores the part of a WAL that follows a damaged
 * frame.
 */
export class LetterFile {
  readonly path: string
  letters = 0
  bytes = 0
  readonly #db: DatabaseSync
  readonly #place: FilePlace
  /** Rows up to this one are settled, even if they could not be deleted. */
  #settledSeq = 0

  private constructor(path: string, db: DatabaseSync) {
    this.path = path
    this.#db = db
    this.#place = new FilePlace(path)
  }

  /** Undefined: the name is taken, or another process removed the empty file before the lock. */
  static create(path: string): LetterFile | undefined {
    if (existsSync(path)) return undefined
    closeSync(openSync(path, 'wx', 0o600))
    return lockFile(path, (db) => {
      db.exec(`BEGIN; PRAGMA user_version = ${formatVersion}; CREATE TABLE letters (
        seq INTEGER PRIMARY KEY, at TEXT NOT NULL, crc INTEGER NOT NULL, letter BLOB NOT NULL
      ) STRICT; COMMIT`)
      return new LetterFile(path, db)
    })
  }

  /** Opens a file of a process that ended. Undefined: its process is alive, or the file is gone. */
  static open(path: string): LetterFile | undefined {
    return lockFile(path, (db) => {
      const file = new LetterFile(path, db)
      checkFile(db)
      // An empty file is from a process that died before its first commit.
      if (statSync(path).size === 0) return file
      return Object.assign(file, file.#count(Number.MAX_SAFE_INTEGER))
    })
  }

  /** Appends all rows or none. When it returns, they are on disk. */
  append(rows: readonly NewRow[]): void {
    const letters = rows.map(([, json]) => Buffer.from(json))
    const insert = this.#db.prepare('INSERT INTO letters (at, crc, letter) VALUES (?, ?, ?)')
    this.#db.exec('BEGIN')
    for (const [at, letter] of letters.entries()) insert.run(rows[at]![0], crc32(letter), letter)
    this.#db.exec('COMMIT')
    const problem = this.#place.problem()
    if (problem !== undefined) throw new Error(problem)
    this.letters += letters.length
    this.bytes += letters.reduce((sum, { length }) => sum + length, 0)
  }

  /** When the oldest letter was captured. */
  oldestAt(): string | undefined {
    const sql = 'SELECT at FROM letters WHERE seq > ? ORDER BY seq LIMIT 1'
    return query(this.#db, sql, this.#settledSeq)[0]?.['at'] as string | undefined
  }

  /** Reads the oldest rows: at most `limit`, and about `maxBytes`. */
  read(limit: number, maxBytes: number): StoredRow[] {
    const sql = 'SELECT seq, crc, letter FROM letters WHERE seq > ? ORDER BY seq LIMIT ?'
    const rows: StoredRow[] = []
    let bytes = 0
    for (const row of this.#db.prepare(sql).iterate(this.#settledSeq, limit)) {
      rows.push(row as unknown as StoredRow)
      bytes += rows.at(-1)!.letter.length
      if (bytes >= maxBytes) break
    }
    return rows
  }

  /** Removes the row and all rows before it. */
  removeUpTo(seq: number): void {
    const removed = this.#count(seq)
    this.letters -= removed.letters
    this.bytes -= removed.bytes
    this.#settledSeq = seq
    try {
      query(this.#db, 'DELETE FROM letters WHERE seq <= ?', seq)
    } catch {
      // A full disk must not stop the drain. After a crash these letters are drained again.
    }
  }

  close(): void {
    this.#db.close()
  }

  /** Removes the file while it is locked, so that no other process has it open. */
  delete(): void {
    rmSync(this.path, { force: true })
    this.close()
    rmSync(`${this.path}-journal`, { force: true })
  }

  /** Counts the waiting rows up to this one. */
  #count(seq: number): { letters: number; bytes: number } {
    const sql = `SELECT count(*) AS letters, total(length(letter)) AS bytes FROM letters
      WHERE seq > ? AND seq <= ?`
    return query(this.#db, sql, this.#settledSeq, seq)[0] as { letters: number; bytes: number }
  }
}

/** Opens and locks a file. Undefined: another process has it locked, or it is gone. */
function lockFile(path: string, use: (db: DatabaseSync) => LetterFile): LetterFile | undefined {
  let db: DatabaseSync | undefined
  try {
    const place = new FilePlace(path)
    db = new DatabaseSync(path, { timeout: busyTimeoutMs })
    db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;
      PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; ROLLBACK`)
    if (place.problem() === undefined) return use(db)
    db.close()
    return undefined
  } catch (error) {
    db?.close()
    if (isBusy(error) || (error as { code?: unknown }).code === 'ENOENT') return undefined
    throw error
  }
}

function checkFile(db: DatabaseSync): void {
  const version = Number(query(db, 'PRAGMA user_version')[0]!['user_version'])
  if (version > formatVersion)
    throw new RedriveError(
      'STORE_UNSAFE',
      `the file has format ${version}, this version of Redrive reads up to ${formatVersion}: upgrade Redrive`,
    )
  const [check] = query(db, 'PRAGMA quick_check(1)')
  if (check?.['quick_check'] === 'ok') return
  throw Object.assign(new Error(String(check?.['quick_check'])), { errcode: corrupt })
}

const noSuchTable = 1
const corrupt = 11
const notADatabase = 26

/** Whether SQLite cannot make sense of the file. */
export function isDamaged(error: unknown): boolean {
  const { errcode } = error as { errcode?: unknown }
  return (
    typeof errcode === 'number' && [noSuchTable, corrupt, notADatabase].includes(errcode & 0xff)
  )
}

/** Renames a damaged file to `.damaged`, with its journal. Returns the new name. */
export function renameDamaged(path: string): string {
  const damaged = path.replace(/\.spool$/, '.damaged')
  renameSync(path, damaged)
  if (existsSync(`${path}-journal`)) renameSync(`${path}-journal`, `${damaged}-journal`)
  return damaged
}

function query(
  db: DatabaseSync,
  sql: string,
  ...values: SQLInputValue[]
): Record<string, SQLOutputValue>[] {
  return db.prepare(sql).all(...values)
}
