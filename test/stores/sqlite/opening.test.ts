import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { schemaVersion } from '../../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('sqliteStore at open', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'letters.db')
  })
  afterEach(() => directory.clear())

  async function refusal(): Promise<{ code?: string; message?: string }> {
    const store = sqliteStore({ path })
    const error: unknown = await store.open().catch((thrown: unknown) => thrown)
    await store.close()
    return error as { code?: string; message?: string }
  }

  it('makes the file and its WAL for the owner alone', async () => {
    const store = sqliteStore({ path })
    await store.open()
    await store.add([aLetter()])
    for (const file of [path, `${path}-wal`, `${path}-shm`])
      expect((await stat(file)).mode & 0o777).toBe(0o600)
    await store.close()
  })

  it('says which settings it checked', async () => {
    const store = sqliteStore({ path })
    await store.open()
    expect((await store.health()).checks).toMatchObject({
      journal_mode: 'wal',
      synchronous: 'full',
      schema: String(schemaVersion),
    })
    await store.close()
    const relaxed = sqliteStore({ path, synchronous: 'relaxed' })
    await relaxed.open()
    expect((await relaxed.health()).checks['synchronous']).toBe('relaxed')
    await relaxed.close()
  })

  it('explains why the file cannot be created', async () => {
    const { path: folder } = directory
    path = join(folder, 'nowhere', 'letters.db')
    expect((await refusal()).message).toMatch(/the folder of the file does not exist: create it/)
    path = folder
    expect((await refusal()).message).toMatch(/the path is a folder/)
  })

  it('accepts an empty file as a new one', async () => {
    await writeFile(path, '')
    const store = sqliteStore({ path })
    await store.open()
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    await store.close()
  })

  it('rejects a file that is not a database, without changing it', async () => {
    const text = 'These are my notes, and nobody is to write over them. '.repeat(100)
    await writeFile(path, text)
    expect(await refusal()).toMatchObject({ code: 'STORE_UNSAFE' })
    expect(await readFile(path, 'utf8')).toBe(text)
  })

  it('rejects a database of another program, without changing it', async () => {
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE bills (n INTEGER); INSERT INTO bills VALUES (1)')
    other.close()
    const before = await readFile(path)
    expect(await refusal()).toMatchObject({ code: 'STORE_UNSAFE' })
    expect((await readFile(path)).equals(before)).toBe(true)
  })

  it('rejects a file of a newer version, without changing it', async () => {
    const store = sqliteStore({ path })
    await store.open()
    await store.add([aLetter()])
    await store.close()
    const newer = new DatabaseSync(path)
    newer.exec(`UPDATE meta SET value = '${schemaVersion + 1}' WHERE key = 'schema'`)
    newer.close()
    const before = await readFile(path)
    const { code, message } = await refusal()
    expect(code).toBe('STORE_UNSAFE')
    expect(message).toContain('upgrade')
    expect((await readFile(path)).equals(before)).toBe(true)
  })

  it('completes an interrupted migration', async () => {
    const broken = new DatabaseSync(path)
    broken.exec(
      'PRAGMA journal_mode = WAL; CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
    )
    broken.exec("INSERT INTO meta VALUES ('schema', '0')")
    broken.close()
    const store = sqliteStore({ path })
    await store.open()
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    await store.close()
  })

  it('explains what is wrong with the path, and opens once it is corrected', async () => {
    path = join(directory.path, 'not', 'there', 'letters.db')
    const store = sqliteStore({ path })
    await expect(store.open()).rejects.toMatchObject({ code: 'INVALID_CONFIG' })
    await mkdir(join(directory.path, 'not', 'there'), { recursive: true })
    await store.open()
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    await store.close()
  })

  it('rejects every method before open', async () => {
    const store = sqliteStore({ path })
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'CLOSED' })
    expect(await store.health()).toMatchObject({ ok: false })
    await store.close()
    await expect(store.open()).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
