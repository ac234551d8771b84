import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { runChild } from '../run-child.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

describe('sqliteStore shared by processes', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  const names = ['a', 'b', 'c', 'd']

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'letters.db')
  })
  afterEach(() => directory.clear())

  it('can be created by four processes at once', async () => {
    await Promise.all(names.map(() => runChild('sqlite', 'open', path)))
    const store = sqliteStore({ path })
    await store.open()
    expect((await store.health()).problems).toEqual([])
    await store.close()
  })

  it('stores and counts what four processes add at once', async () => {
    const added = (
      await Promise.all(names.map((name) => runChild('sqlite', 'add', path, name)))
    ).flat()
    expect(new Set(added).size).toBe(800)
    const store = sqliteStore({ path })
    await store.open()
    expect((await store.get(added)).length).toBe(800)
    const each = { a: 200, b: 200, c: 200, d: 200 }
    expect(Object.fromEntries(await store.tally('queue'))).toEqual(each)
    expect(Object.fromEntries(await store.tally('tag'))).toEqual(each)
    const captured = (await store.totals()).map(({ queue, count }) => [queue, count])
    expect(Object.fromEntries(captured)).toEqual(each)
    await store.close()
  })

  it('gives each letter to one of four processes', async () => {
    const store = sqliteStore({ path })
    await store.open()
    const letters = Array.from({ length: 600 }, () => aLetter())
    await store.add(letters)
    const taken = (
      await Promise.all(names.map((name) => runChild('sqlite', 'drain', path, name)))
    ).flat()
    expect(taken.toSorted()).toEqual(letters.map(({ id }) => id))
    expect(await store.tally('state')).toEqual(new Map([['resolved', 600]]))
    const [resolved] = (await store.totals()).filter(({ action }) => action === 'resolve')
    expect(resolved?.count).toBe(600)
    await store.close()
  })

  it('does not keep the process alive, closed or not', async () => {
    await runChild('sqlite', 'open', path)
    await runChild('sqlite', 'leave', path)
    const store = sqliteStore({ path })
    await store.open()
    expect(await store.tally('state')).toEqual(new Map([['pending', 1]]))
    await store.close()
  })
})
