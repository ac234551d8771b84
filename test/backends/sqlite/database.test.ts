import { copyFileSync, readdirSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openDatabase, type Database } from '../../../src/backends/sqlite/database.ts'
import { FlushFailed } from '../../../src/backends/sqlite/errors.ts'
import { temporaryDirectory } from '../../stores/sqlite/sqlite-bench.ts'

/** The version that SQLite reports, in place of its own. */
const reported = vi.hoisted(() => ({ version: '' }))

vi.mock(import('node:sqlite'), async (original) => {
  const real = await original()
  class DatedDatabase extends real.DatabaseSync {
    override prepare(sql: string) {
      const { version } = reported
      return super.prepare(version ? sql.replace('sqlite_version()', `'${version}'`) : sql)
    }
  }
  return { ...real, DatabaseSync: DatedDatabase }
})

const form = {
  busyTimeoutMs: 50,
  synchronous: 1,
  pageBytes: 4096,
  cacheKib: 100,
  schema: { meta: 'meta', version: 1, migrations: ['CREATE TABLE numbers (n)'] },
} as const

describe('an unsupported version of SQLite', () => {
  afterEach(() => {
    reported.version = ''
  })

  it.each(['3.51.2', '3.50.9', '2.99.0'])(
    'is rejected (%s) with the Node version to use, and leaves no file behind',
    async (version) => {
      const directory = await temporaryDirectory()
      reported.version = version
      const open = (): Database => openDatabase({ ...form, path: join(directory.path, 'one.db') })
      expect(open).toThrow(`has SQLite ${version}, which can lose writes`)
      expect(open).toThrow('use Node 24.15 or newer')
      expect(readdirSync(directory.path)).toEqual([])
      await directory.clear()
    },
  )
})

describe('Database with explicit flushes', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  let database: Database

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'one.db')
    database = openDatabase({ ...form, path })
  })
  afterEach(async () => {
    database.close()
    await directory.clear()
  })

  it('throws FlushFailed when the WAL cannot be flushed', async () => {
    await rename(`${path}-wal`, `${path}-gone`)
    expect(() => database.flush()).toThrow(FlushFailed)
    await rename(`${path}-gone`, `${path}-wal`)
  })

  it('opens the WAL once', async () => {
    database.flush()
    await rename(`${path}-wal`, `${path}-gone`)
    expect(() => database.flush()).not.toThrow()
    await rename(`${path}-gone`, `${path}-wal`)
  })

  it('writes the whole WAL to the file in flushAgain, unless a reader blocks it', () => {
    const put = (n: number): void => {
      database.begin('write')
      database.run('INSERT INTO numbers VALUES (?)', n)
      database.commit()
    }
    put(1)
    const reader = new DatabaseSync(path)
    reader.exec('BEGIN; SELECT n FROM numbers')
    put(2)
    expect(() => database.flushAgain()).toThrow(FlushFailed)
    reader.exec('COMMIT')
    database.flushAgain()
    copyFileSync(path, `${path}-copy`)
    const copy = new DatabaseSync(`${path}-copy`)
    expect(copy.prepare('SELECT n FROM numbers').all()).toEqual([{ n: 1 }, { n: 2 }])
    copy.close()
    reader.close()
  })
})
