import { chmodSync, copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RedriveError } from '../../src/errors.ts'
import { resolve } from '../../src/letter/moves.ts'
import type { Store } from '../../src/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../src/testing/index.ts'
import { run as runProgram } from '../processes.ts'
import { temporaryDirectory } from '../stores/sqlite/sqlite-bench.ts'

let directory: Awaited<ReturnType<typeof temporaryDirectory>>
let path: string
let opened: Store[]

beforeEach(async () => {
  directory = await temporaryDirectory()
  path = join(directory.path, 'letters.db')
  opened = []
})
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()))
  await directory.clear()
})

async function open(at = path): Promise<Store> {
  const store = sqliteStore({ path: at })
  opened.push(store)
  await store.open()
  return store
}

const countLetters = async (store: Store): Promise<number> =>
  [...(await store.tally('state')).values()].reduce((sum, n) => sum + n, 0)

/** The ids of all letters, after a check that all are intact and the counters agree. */
async function readIntactIds(store: Store): Promise<string[]> {
  const { items } = await store.find({ order: 'oldest', limit: 1000, payload: true })
  expect(items.filter(({ corrupt }) => corrupt !== undefined)).toEqual([])
  expect(await countLetters(store)).toBe(items.length)
  return items.map(({ id }) => id)
}

describe('a SQLite file that others change', () => {
  it('gets no more writes once it was replaced, and the new file is not changed', async () => {
    const store = await open()
    await store.add([aLetter()])
    const other = join(directory.path, 'other.db')
    writeFileSync(other, 'mine')
    renameSync(other, path)
    expect((await store.health()).problems).toEqual([expect.stringContaining('replaced')])
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await store.close()
    expect(readFileSync(path, 'utf8')).toBe('mine')
  })

  it.each([
    ['is not readable by this process', 0o600, 0o755],
    ['is in a folder that is not writable', 0o444, 0o755],
  ])('is refused when it %s', async (_, fileMode, folderMode) => {
    await (await open()).close()
    const before = readFileSync(path)
    chmodSync(path, fileMode)
    chmodSync(directory.path, folderMode)
    const script = join(import.meta.dirname, 'disk-fault-store.ts')
    // Root ignores permissions, so the process runs as another user.
    const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    if (process.getuid?.() !== 0) chmodSync(path, 0o400)
    const env = { ...process.env, NODE_COMPILE_CACHE: '' }
    const run = runProgram(process.execPath, [script, path], { ...user, env })
    expect((await run).stdout).toMatch(/^refused open 1 INVALID_CONFIG\nrefused open 2/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe('a backup of a SQLite file', () => {
  it('made while letters arrive has every letter acknowledged before, intact and counted', async () => {
    const store = await open()
    const before = Array.from({ length: 300 }, () => aLetter())
    await store.add(before)
    const source = new DatabaseSync(path)
    const copy = join(directory.path, 'copy.db')
    const progress = { isDone: false }
    const copying = backup(source, copy, { rate: 10 }).finally(() => {
      progress.isDone = true
    })
    let during = 0
    for (; !progress.isDone; during += 1) await store.add([aLetter()])
    await copying
    source.close()
    expect(during).toBeGreaterThan(0)
    const ids = await readIntactIds(await open(copy))
    expect(ids).toEqual(expect.arrayContaining(before.map(({ id }) => id)))
    expect(await countLetters(store)).toBe(300 + during)
  })

  it('restored under a running worker lets that worker settle nothing, and fences its lease', async () => {
    const old = await open()
    const letter = aLetter()
    await old.add([letter])
    const copy = join(directory.path, 'copy.db')
    const source = new DatabaseSync(path)
    await backup(source, copy)
    source.close()
    const [held] = (await old.claim({ worker: 'old', limit: 1, leaseMs: 60_000 })).letters
    renameSync(copy, path)
    for (const rest of ['-wal', '-shm']) rmSync(path + rest)

    const fresh = await open()
    const [again] = (await fresh.claim({ worker: 'new', limit: 1, leaseMs: 60_000 })).letters
    expect(again).toMatchObject({ id: letter.id, epoch: held!.epoch })
    const late = resolve(held!, { at: held!.updatedAt, actor: 'old', guard: 'epoch' })
    await old.health()
    await expect(old.apply([late])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await fresh.apply([late]), 'the same epoch, of another worker').toEqual(['conflict'])
    const result = resolve(again!, { at: again!.updatedAt, actor: 'new', guard: 'epoch' })
    expect(await fresh.apply([result])).toEqual(['written'])
  })
})

describe('a damaged SQLite file', () => {
  it('has all letters up to the damage in its WAL, intact and counted', async () => {
    const store = await open()
    const letters = Array.from({ length: 30 }, () => aLetter())
    for (const letter of letters) await store.add([letter])
    const damaged = join(directory.path, 'damaged.db')
    copyFileSync(path, damaged)
    const wal = readFileSync(`${path}-wal`)
    const middle = Math.floor(wal.length / 2)
    wal[middle] = wal[middle]! ^ 1
    writeFileSync(`${damaged}-wal`, wal)
    const ids = await readIntactIds(await open(damaged))
    expect(ids.length).toBeGreaterThan(0)
    expect(ids.length).toBeLessThan(30)
    expect(ids).toEqual(letters.slice(0, ids.length).map(({ id }) => id))
  })

  it('answers or reports the damage, whichever page is overwritten', async () => {
    const store = await open()
    await store.add(Array.from({ length: 40 }, () => aLetter()))
    await store.close()
    const sound = readFileSync(path)
    const pageBytes = 8192
    const noticed: number[] = []
    for (let page = 1; page < sound.length / pageBytes; page++) {
      const damaged = Buffer.from(sound)
      damaged.fill(0x5a, page * pageBytes, (page + 1) * pageBytes)
      const place = join(directory.path, `page-${page}.db`)
      writeFileSync(place, damaged)
      const store = sqliteStore({ path: place })
      const answers = await Promise.allSettled([
        store.open(),
        store.open().then(() => store.find({ order: 'oldest', limit: 100, payload: true })),
        store.open().then(() => store.claim({ worker: 'w', limit: 100, leaseMs: 1000 })),
        store.open().then(() => store.add([aLetter()])),
        store.open().then(() => store.tally('state')),
      ])
      await store.close()
      rmSync(place)
      const refusals = answers.flatMap((answer) =>
        answer.status === 'rejected' ? [answer.reason as unknown] : [],
      )
      for (const reason of refusals) expect(reason).toBeInstanceOf(RedriveError)
      const list = answers[1]
      const intact =
        list.status === 'fulfilled' && list.value.items.filter(({ corrupt }) => !corrupt).length
      if (refusals.length > 0 || intact !== 40) noticed.push(page)
    }
    expect(noticed.length).toBeGreaterThan(5)
  })
})
