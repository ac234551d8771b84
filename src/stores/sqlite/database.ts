import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { RedriveError } from '../../errors.ts'
import type { SqlValue } from '../../kept/row.ts'
import { migrations, schemaVersion } from './schema.ts'
import { isBusy } from './trouble.ts'

export interface DatabaseOptions {
  path: string
  synchronous: 'full' | 'relaxed'
  busyTimeoutMs: number
}

/** Older ones can lose a WAL that two connections reset at once. */
const oldestSqlite = [3, 51, 3] as const

/** Statements that are made from a filter are kept up to this many; then the store starts over. */
const maxStatements = 500

/** Two or three letters with their payload and stack fit on a page; on one of 4 KiB, a third of it would be wasted. */
const pageBytes = 8192
/** Pages that gather in the WAL before they are moved to the file. */
const checkpointPages = 2000
const journalLimitBytes = 64 * 2 ** 20
const cacheKib = 64 * 1024

/** The open file: statements by their text, and transactions. */
export interface Database {
  get(sql: string, ...params: SqlValue[]): SqlValue[] | undefined
  all(sql: string, ...params: SqlValue[]): SqlValue[][]
  /** Answers how many rows changed. */
  run(sql: string, ...params: SqlValue[]): number
  /** Answers the number of the new row, or 0 when the statement left it out. */
  insert(sql: string, ...params: SqlValue[]): number
  begin(kind: 'read' | 'write'): void
  commit(): void
  rollback(): void
  /** Moves what stands in the WAL to the file, as far as it goes. Never throws. */
  checkpoint(): void
  close(): void
}

/**
 * Opens the file, creates or migrates what is needed, and checks that SQLite and its settings keep our promises.
 * Refuses, and leaves untouched, what is not ours or what a newer Redrive wrote.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { path, synchronous, busyTimeoutMs } = options
  // SQLite would make the file readable for all; the WAL takes its mode from it.
  closeSync(openSync(path, 'a', 0o600))
  const connection = new DatabaseSync(path, {
    timeout: busyTimeoutMs,
    enableForeignKeyConstraints: false,
  })
  try {
    const database = new SqliteDatabase(connection)
    checkVersion(database)
    checkOwner(database, path)
    configure(database, synchronous)
    migrate(database)
    return database
  } catch (error) {
    connection.close()
    throw error
  }
}

function checkVersion(database: Database): void {
  const version = String(database.get('SELECT sqlite_version()')![0])
  const parts = version.split('.').map(Number)
  for (const [at, least] of oldestSqlite.entries()) {
    if (parts[at]! > least) return
    if (parts[at]! < least)
      throw new RedriveError(
        'STORE_UNSAFE',
        `SQLite ${version} can lose writes: ${oldestSqlite.join('.')} or newer is needed, use a newer Node`,
      )
  }
}

/** Looks before anything is written: an empty file, one of ours that we know, or a refusal. */
function checkOwner(database: Database, path: string): void {
  const tables = database.all("SELECT name FROM sqlite_schema WHERE type = 'table'").flat()
  if (tables.length === 0) return
  const found = tables.includes('meta') ? schemaOf(database) : undefined
  if (found === undefined)
    throw new RedriveError(
      'STORE_UNSAFE',
      `sqlite ${path}: the file is a database of something else; it was left as it is: choose another path`,
    )
  if (found > schemaVersion)
    throw new RedriveError(
      'STORE_UNSAFE',
      `sqlite ${path}: the file has schema ${found}, this version of Redrive knows up to ${schemaVersion}; it was left as it is: upgrade`,
    )
}

function schemaOf(database: Database): number | undefined {
  const row = database.get("SELECT value FROM meta WHERE key = 'schema'")
  return row ? Number(row[0]) : undefined
}

function configure(database: Database, synchronous: 'full' | 'relaxed'): void {
  const level = synchronous === 'full' ? 2 : 1
  // Heeded while the file is empty, and ignored afterwards.
  database.get(`PRAGMA page_size = ${pageBytes}`)
  // To its end, since an error of the disk shows only there.
  patiently(() => database.all('PRAGMA journal_mode = WAL'))
  for (const setting of [
    `synchronous = ${level}`,
    `cache_size = -${cacheKib}`,
    `wal_autocheckpoint = ${checkpointPages}`,
    `journal_size_limit = ${journalLimitBytes}`,
    'temp_store = MEMORY',
  ])
    database.get(`PRAGMA ${setting}`)
  const mode = database.get('PRAGMA journal_mode')![0]
  const found = database.get('PRAGMA synchronous')![0]
  if (mode !== 'wal' || found !== level)
    throw new RedriveError(
      'STORE_UNSAFE',
      `SQLite kept journal_mode ${String(mode)} and synchronous ${String(found)}, not wal and ${level}: use a path on a local disk`,
    )
}

/** Brings the schema up to date. Of several processes one does it; the others wait for its lock and find it done. */
function migrate(database: Database): void {
  if (isCurrent(database)) return
  patiently(() => database.begin('write'))
  try {
    database.run(
      'CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
    )
    for (const script of migrations.slice(schemaOf(database) ?? 0))
      for (const statement of script.split(';')) if (statement.trim()) database.run(statement)
    database.run(
      "INSERT INTO meta VALUES ('schema', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      String(schemaVersion),
    )
    database.commit()
  } catch (error) {
    database.rollback()
    throw error
  }
}

function isCurrent(database: Database): boolean {
  const [exists] = database.get("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'")!
  return exists === 1 && schemaOf(database) === schemaVersion
}

/** How often and how long a busy file is waited for where SQLite itself does not wait: at the switch to WAL. */
const busyTries = 200
const busyPauseMs = 25
const never = new Int32Array(new SharedArrayBuffer(4))

function patiently(act: () => unknown): void {
  for (let tries = 1; ; tries++) {
    try {
      act()
      return
    } catch (error) {
      if (!isBusy(error) || tries === busyTries) throw error
      Atomics.wait(never, 0, 0, busyPauseMs)
    }
  }
}

class SqliteDatabase implements Database {
  readonly #connection: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  #open = false

  constructor(connection: DatabaseSync) {
    this.#connection = connection
  }

  get(sql: string, ...params: SqlValue[]): SqlValue[] | undefined {
    return this.#statement(sql).get(...params) as unknown as SqlValue[] | undefined
  }

  all(sql: string, ...params: SqlValue[]): SqlValue[][] {
    return this.#statement(sql).all(...params) as unknown as SqlValue[][]
  }

  run(sql: string, ...params: SqlValue[]): number {
    return Number(this.#statement(sql).run(...params).changes)
  }

  insert(sql: string, ...params: SqlValue[]): number {
    const { changes, lastInsertRowid } = this.#statement(sql).run(...params)
    return changes === 0 ? 0 : Number(lastInsertRowid)
  }

  begin(kind: 'read' | 'write'): void {
    this.run(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN')
    this.#open = true
  }

  commit(): void {
    this.run('COMMIT')
    this.#open = false
  }

  /** Some errors end the transaction by themselves; then there is nothing left to roll back. */
  rollback(): void {
    if (!this.#open) return
    this.#open = false
    try {
      this.run('ROLLBACK')
    } catch {
      // Already gone.
    }
  }

  checkpoint(): void {
    try {
      this.get('PRAGMA wal_checkpoint(PASSIVE)')
    } catch {
      // There was no room for it.
    }
  }

  close(): void {
    this.#statements.clear()
    this.#connection.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    if (this.#statements.size >= maxStatements) this.#statements.clear()
    const statement = this.#connection.prepare(sql)
    statement.setReturnArrays(true)
    this.#statements.set(sql, statement)
    return statement
  }
}
