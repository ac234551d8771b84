import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { resolve } from '../../../src/letter/moves.ts'
import type { Store } from '../../../src/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { temporaryDirectory } from './sqlite-bench.ts'

/** Every thread of this file, since a store takes over one that another gave back. */
const threads: Worker[] = []
process.on('worker', (worker) => threads.push(worker))

describe('sqliteThread', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>
  let path: string
  let store: Store

  beforeEach(async () => {
    directory = await temporaryDirectory()
    path = join(directory.path, 'letters.db')
    store = sqliteStore({ path, busyTimeoutMs: 200 })
    await store.open()
  })
  afterEach(async () => {
    await store.close()
    await directory.clear()
  })

  /** Keeps every other connection from writing while it does something. */
  async function locked<T>(act: () => Promise<T>): Promise<T> {
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    try {
      return await act()
    } finally {
      other.exec('ROLLBACK')
      other.close()
    }
  }

  it('rejects calls in flight when the thread dies, and starts a new thread', async () => {
    const kept = aLetter()
    await store.add([kept])
    await locked(async () => {
      const lost = [store.add([aLetter()]), store.claim({ worker: 'w', limit: 1, leaseMs: 100 })]
      const ends = Promise.all(threads.map((thread) => thread.terminate()))
      for (const one of lost) await expect(one).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      await ends
    })
    expect(await store.get([kept.id])).toEqual([kept])
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    expect((await store.health()).ok).toBe(true)
  })

  it('reports a write lock that another process holds for too long', async () => {
    await locked(async () => {
      const busy = store.add([aLetter()])
      await expect(busy).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      await expect(busy).rejects.toThrow(/busyTimeoutMs/)
      expect(await store.tally('state'), 'reads go on').toEqual(new Map())
    })
    expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
  })

  it('isolates a failing call from the other calls of its batch', async () => {
    const good = [aLetter(), aLetter()]
    const bad = aLetter({ retries: 0.5 })
    const results = await Promise.allSettled([
      store.add([good[0]!]),
      store.add([bad]),
      store.add([good[1]!]),
      store.records.put('kind', 'id', 1),
    ])
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    expect(await store.tally('state')).toEqual(new Map([['pending', 2]]))
    expect((await store.totals())[0]!.count).toBe(2)
  })

  it('rejects a letter that cannot be written as JSON with INVALID_INPUT', async () => {
    const circular: Record<string, never> = {}
    Object.assign(circular, { self: circular })
    const letter = aLetter({ metadata: circular })
    await expect(store.add([letter])).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('rejects a change that cannot be written as JSON with INVALID_INPUT', async () => {
    const letter = aLetter()
    const change = resolve(letter, { at: letter.updatedAt, actor: 'ada', guard: 'version' })
    const circular: Record<string, never> = {}
    Object.assign(circular, { self: circular })
    const odd = { ...change, set: { ...change.set, metadata: circular } }
    await expect(store.apply([odd])).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('rejects a call that cannot be sent to the thread, and only that call', async () => {
    const letter = aLetter()
    const odd = { id: letter.id, epoch: 1, worker: (() => {}) as never }
    const results = await Promise.allSettled([
      store.add([letter]),
      store.totals(),
      store.renew([odd], 1000),
      store.add([aLetter()]),
    ])
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect(results[2]).toMatchObject({ reason: { code: 'INVALID_INPUT' } })
    expect(await store.tally('state')).toEqual(new Map([['pending', 2]]))
  })

  it('rejects once when several chunks of a large batch fail', async () => {
    await locked(async () => {
      const many = Array.from({ length: 1000 }, () => aLetter())
      await expect(store.add(many)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    })
    expect(await store.tally('state')).toEqual(new Map())
  })

  it('writes a large batch of changes in order', async () => {
    const letters = Array.from({ length: 600 }, () => aLetter())
    await store.add(letters)
    const by = { at: letters[0]!.updatedAt, actor: 'ada', guard: 'version' } as const
    const changes = [...letters, ...letters].map((letter) => resolve(letter, by))
    const expected = changes.map((_, n) => (n < 600 ? 'written' : 'conflict'))
    expect(await store.apply(changes)).toEqual(expected)
    expect((await store.get(letters.map(({ id }) => id))).length).toBe(600)
    expect(await store.remove({ ids: letters.map(({ id }) => id) })).toBe(600)
  })

  it('waits for calls in flight before it closes', async () => {
    const letters = Array.from({ length: 300 }, () => aLetter())
    const adds = letters.map((letter) => store.add([letter]))
    const bulk = store.add(Array.from({ length: 2000 }, () => aLetter()))
    await store.close()
    expect((await Promise.all(adds)).flat()).toEqual(letters.map(() => ({ kind: 'added' })))
    expect(await bulk).toHaveLength(2000)
    const again = sqliteStore({ path })
    await again.open()
    expect(await again.tally('state')).toEqual(new Map([['pending', 2300]]))
    await again.close()
  })

  it('rejects writes to a file that was moved or removed', async () => {
    const letter = aLetter()
    await store.add([letter])
    await directory.clear()
    expect((await store.health()).problems).toHaveLength(1)
    await expect(store.add([aLetter()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const change = resolve(letter, { at: letter.updatedAt, actor: 'ada', guard: 'version' })
    await expect(store.apply([change])).rejects.toThrow(/moved, removed or replaced/)
  })
})
