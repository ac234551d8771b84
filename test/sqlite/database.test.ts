import { rename } from 'node:fs/promises'
import { join } from 'node:path'
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
      busyTimeoutMs: 1000,
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

  it('has its log put on disk, however often', () => {
    database.flush()
    database.begin('write')
    database.run('INSERT INTO numbers VALUES (1)')
    database.commit()
    database.flush()
    expect(database.all('SELECT n FROM numbers')).toEqual([[1]])
  })

  it('says so when its log cannot be put on disk', async () => {
    await rename(`${path}-wal`, `${path}-gone`)
    expect(() => database.flush()).toThrow(FlushFailed)
    await rename(`${path}-gone`, `${path}-wal`)
    database.flush()
  })
})
