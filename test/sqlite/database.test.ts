import { copyFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../src/sqlite/database.ts'
import { FlushFailed } from '../../src/sqlite/trouble.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'

describe('a database that is flushed when it is told to', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  let database: Database

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'one.db')
    const schema = { meta: 'meta', version: 1, migrations: ['CREATE TABLE numbers (n)'] }
    database = openDatabase({
      path,
      busyTimeoutMs: 50,
      synchronous: 1,
      pageBytes: 4096,
      cacheKib: 100,
      schema,
    })
  })
  afterEach(async () => {
    database.close()
    await directory.clear()
  })

  it('says so when its log cannot be put on disk', async () => {
    await rename(`${path}-wal`, `${path}-gone`)
    expect(() => database.flush()).toThrow(FlushFailed)
    await rename(`${path}-gone`, `${path}-wal`)
  })

  it('opens its log once', async () => {
    database.flush()
    await rename(`${path}-wal`, `${path}-gone`)
    database.flush()
    await rename(`${path}-gone`, `${path}-wal`)
  })

  it('can have all that is in its log written to the file itself, unless somebody reads', () => {
    const put = (n: number): void => {
      database.begin('write')
      database.run('INSERT INTO numbers VALUES (?)', n)
      database.commit()
    }
    put(1)
    const reader = new DatabaseSync(path)
    reader.exec('BEGIN; SELECT n FROM numbers')
    put(2)
    expect(() => database.flushAnew()).toThrow(FlushFailed)
    reader.exec('COMMIT')
    database.flushAnew()
    copyFileSync(path, `${path}-copy`)
    const copy = new DatabaseSync(`${path}-copy`)
    expect(copy.prepare('SELECT n FROM numbers').all()).toEqual([{ n: 1 }, { n: 2 }])
    copy.close()
    reader.close()
  })
})
