import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { RedriveError } from '../../errors.ts'
import { nodeAdvice } from './node-version.ts'
import { FilePlace } from './place.ts'
import { FlushFailed, isBusy } from './errors.ts'

export type SqlValue = null | number | string | Uint8Array

export interface DatabaseForm {
  path: string
  /** How long a write waits for the write lock of another process. */
  busyTimeoutMs: number
  /**
   * 2: a commit is on disk. 1: a commit survives a crash of the process, and is on disk after
   * `flush`.
   */
  synchronous: 1 | 2
  pageBytes: number
  cacheKib: number
  schema: Schema
}

interface Schema {
  /** The table with the schema version. A file with this table is ours. */
  meta: string
  version: number
  /** The version that the first migration creates. Older files are refused. Default: 1. */
  firstVersion?: number
  /**
   * Migrations from each version to the next: SQL statements separated by semicolons. All of them
   * run in one transaction.
   */
  migrations: readonly string[]
}

/** Older versions can lose a WAL that two connections reset at once. */
const oldestSqlite = [3, 51, 3] as const

/** Maximum number of cached statements (filters generate many). A full cache is cleared. */
const maxStatements = 500

/** Number of WAL pages that triggers a checkpoint. */
const checkpointPages = 2000
const journalLimitBytes = 64 * 2 ** 20

/**
 * Opens the file, creates or migrates the schema, and checks the version and settings of SQLite.
 * Rejects, and does not change, a file of another program or of a newer Redrive.
 */
export function openDatabase(form: DatabaseForm): Database {
  const { path, busyTimeoutMs, schema } = form
  checkVersion(path)
  // SQLite would create the file readable by all. The WAL gets the mode of the file.
  closeSync(openSync(path, 'a', 0o600))
  const connection = new DatabaseSync(path, {
    timeout: busyTimeoutMs,
    enableForeignKeyConstraints: false,
  })
  try {
    const database = new Database(connection, path)
    checkOwner(database, path, schema)
    configure(database, form)
    migrate(database, schema)
    return database
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * Rejects a SQLite that is too old, before the file is created.
 */
function checkVersion(path: string): void {
  const version = sqliteVersion()
  const parts = version.split('.').map(Number)
  for (const [at, least] of oldestSqlite.entries()) {
    if (parts[at]! > least) return
    if (parts[at]! < least)
      throw new RedriveError(
        'STORE_UNSAFE',
        `sqlite ${path}: Node ${process.versions.node} has SQLite ${version}, which can lose writes; ${oldestSqlite.join('.')} or newer is needed: ${nodeAdvice}`,
      )
  }
}

/**
 * The version of the linked library. `process.versions` is wrong if Node uses the system's SQLite.
 */
function sqliteVersion(): string {
  const connection = new DatabaseSync(':memory:')
  try {
    return String(connection.prepare('SELECT sqlite_version() AS version').get()!['version'])
  } finally {
    connection.close()
  }
}

/** Checks before the first write that the file is empty or ours. */
function checkOwner(database: Database, path: string, schema: Schema): void {
  const { meta, version, firstVersion = 1 } = schema
  const tables = database.all("SELECT name FROM sqlite_schema WHERE type = 'table'").flat()
  if (tables.length === 0) return
  const found = tables.includes(meta) ? versionIn(database, meta) : undefined
  if (found === undefined)
    throw new RedriveError(
      'STORE_UNSAFE',
      `sqlite ${path}: the file is a database of another program and was not changed: choose another path`,
    )
  if (found > version)
    throw new RedriveError(
      'STORE_UNSAFE',
      `sqlite ${path}: the file has schema ${found}, this version of Redrive supports up to ${version}; the file was not changed: upgrade Redrive`,
    )
  if (found > 0 && found < firstVersion)
    throw new RedriveError(
      'STORE_UNSAFE',
      `sqlite ${path}: the file has schema ${found} of an older Redrive, this version supports ${firstVersion} to ${version}; the file was not changed: copy its letters with the Redrive that wrote it, or choose another path`,
    )
}

function versionIn(database: Database, meta: string): number | undefined {
  const row = database.get(`SELECT value FROM ${meta} WHERE key = 'schema'`)
  return row ? Number(row[0]) : undefined
}

function configure(database: Database, form: DatabaseForm): void {
  const { synchronous, pageBytes, cacheKib } = form
  // Has an effect only while the file is empty.
  database.get(`PRAGMA page_size = ${pageBytes}`)
  // Reads all rows: a disk error appears only at the end.
  patiently(() => database.all('PRAGMA journal_mode = WAL'))
  for (const setting of [
    `synchronous = ${synchronous}`,
    `cache_size = -${cacheKib}`,
    `wal_autocheckpoint = ${checkpointPages}`,
    `journal_size_limit = ${journalLimitBytes}`,
    'temp_store = MEMORY',
  ])
    database.get(`PRAGMA ${setting}`)
  const mode = database.get('PRAGMA journal_mode')![0]
  const found = database.get('PRAGMA synchronous')![0]
  if (mode !== 'wal' || found !== synchronous)
    throw new RedriveError(
      'STORE_UNSAFE',
      `SQLite kept journal_mode ${String(mode)} and synchronous ${String(found)}, not wal and ${synchronous}: use a path on a local disk`,
    )
}

/**
 * Migrates the schema. One process does it; others wait for its lock and find it done.
 */
function migrate(database: Database, schema: Schema): void {
  const { meta, version, firstVersion = 1, migrations } = schema
  const [exists] = database.get('SELECT count(*) FROM sqlite_schema WHERE name = ?', meta)!
  if (exists === 1 && versionIn(database, meta) === version) return
  patiently(() => database.begin('write'))
  try {
    database.run(
      `CREATE TABLE IF NOT EXISTS ${meta} (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT`,
    )
    const done = Math.max(0, (versionIn(database, meta) ?? 0) - firstVersion + 1)
    for (const migration of migrations.slice(done))
      for (const statement of migration.split(';')) if (statement.trim()) database.run(statement)
    database.run(
      `INSERT INTO ${meta} VALUES ('schema', ?) ON CONFLICT DO UPDATE SET value = excluded.value`,
      String(version),
    )
    database.commit()
  } catch (error) {
    database.rollback()
    throw error
  }
}

/**
 * Number and length of waits for a busy file where SQLite does not wait itself: when switching to
 * WAL.
 */
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

/** An open file: prepared statements by their SQL, and transactions. */
export class Database {
  readonly place: FilePlace
  readonly #connection: DatabaseSync
  readonly #path: string
  readonly #statements = new Map<string, StatementSync>()
  #open = false
  #log: number | undefined

  constructor(connection: DatabaseSync, path: string) {
    this.#connection = connection
    this.#path = path
    this.place = new FilePlace(path)
  }

  get(sql: string, ...params: SqlValue[]): SqlValue[] | undefined {
    return this.#statement(sql).get(...params) as unknown as SqlValue[] | undefined
  }

  all(sql: string, ...params: SqlValue[]): SqlValue[][] {
    return this.#statement(sql).all(...params) as unknown as SqlValue[][]
  }

  /** Returns how many rows changed. */
  run(sql: string, ...params: SqlValue[]): number {
    return Number(this.#statement(sql).run(...params).changes)
  }

  /** Returns the number of the new row, or 0 if the statement inserted none. */
  insert(sql: string, ...params: SqlValue[]): number {
    const { changes, lastInsertRowid } = this.#statement(sql).run(...params)
    return changes === 0 ? 0 : Number(lastInsertRowid)
  }

  begin(kind: 'read' | 'write'): void {
    this.run(kind === 'read' ? 'BEGIN' : 'BEGIN IMMEDIATE')
    this.#open = true
  }

  commit(): void {
    this.run('COMMIT')
    this.#open = false
  }

  /** Some errors end the transaction by themselves, so there may be nothing to roll back. */
  rollback(): void {
    if (!this.#open) return
    this.#open = false
    try {
      this.run('ROLLBACK')
    } catch {
      // Already gone.
    }
  }

  /**
   * Puts on disk what was committed. Waits for no lock. While the connection is open, its WAL stays
   * the same file. SQLite never locks the WAL, so another descriptor of it may be closed.
   */
  flush(): void {
    try {
      this.#log ??= openSync(`${this.#path}-wal`, 'r+')
      fdatasyncSync(this.#log)
    } catch (cause) {
      throw new FlushFailed(cause)
    }
  }

  /**
   * Puts on disk what was committed, after a flush that failed: a second flush would report success
   * for pages that the kernel has dropped, so all of the WAL is written to the file instead.
   */
  flushAgain(): void {
    const [busy] = this.get('PRAGMA wal_checkpoint(FULL)')!
    if (busy !== 0) throw new FlushFailed(new Error('another process uses the file'))
  }

  /** Moves the WAL to the file, as far as possible. Never throws. */
  checkpoint(): void {
    try {
      this.get('PRAGMA wal_checkpoint(PASSIVE)')
    } catch {
      // The disk is full.
    }
  }

  close(): void {
    this.#statements.clear()
    try {
      if (this.#log !== undefined) closeSync(this.#log)
    } finally {
      this.#log = undefined
      this.#connection.close()
    }
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
