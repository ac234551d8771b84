import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrations, schemaVersion } from '../../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { findsBySource, sourcedLetters } from '../sourced-letters.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('migrations', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'letters.db')
  })
  afterEach(() => directory.clear())

  it('lead to the schema version', () => {
    expect(migrations).toHaveLength(schemaVersion)
  })

  it('make letters of schema 1 findable by their source ids', async () => {
    const letters = sourcedLetters()
    const before = sqliteStore({ path })
    await before.open()
    await before.add(letters)
    await before.close()
    const db = new DatabaseSync(path)
    db.exec('DROP INDEX letters_source; ALTER TABLE letters DROP COLUMN source_id')
    db.exec(`UPDATE meta SET value = '1' WHERE key = 'schema'`)
    db.exec(`UPDATE bodies SET origin = 'not JSON' WHERE seq = ${letters.length}`)
    db.close()
    const after = sqliteStore({ path })
    await after.open()
    await findsBySource(after, letters)
    expect((await after.health()).checks['schema']).toBe(String(schemaVersion))
    await after.close()
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
