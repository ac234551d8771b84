import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { firstVersion } from '../../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('migrations', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'letters.db')
  })
  afterEach(() => directory.clear())

  it('leave a file of an older schema as it is, and say so', async () => {
    const old = new DatabaseSync(path)
    old.exec('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT')
    old.exec(`INSERT INTO meta VALUES ('schema', '${firstVersion - 1}')`)
    old.close()
    const before = await readFile(path)
    const store = sqliteStore({ path })
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining(`schema ${firstVersion - 1} of an older Redrive`),
    })
    await store.close()
    expect((await readFile(path)).equals(before)).toBe(true)
  })

  it('have an index for source ids', async () => {
    const store = sqliteStore({ path })
    await store.open()
    await store.close()
    const db = new DatabaseSync(path)
    const plan = db.prepare('EXPLAIN QUERY PLAN SELECT id FROM letters WHERE source_id = ?').all('')
    expect(plan[0]!['detail']).toContain('USING COVERING INDEX letters_source')
    db.close()
  })
})
