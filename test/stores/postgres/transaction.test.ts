import { Client, Pool } from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DeadLetterQueue } from '../../../src/index.ts'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { Queryable } from '../../../src/backends/postgres/query.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { meanwhile, missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'me', guard: 'version' } as const

describe.skipIf(missing)('postgresStore within a transaction of the caller', () => {
  let bench: PostgresBench
  let client: Client

  beforeEach(async () => {
    bench = await openPostgresBench()
    client = new Client({ connectionString: url })
    await client.connect()
    await client.query('BEGIN')
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await client.end()
    await bench.close()
  })

  it('stores nothing when the caller rolls back', async () => {
    const letter = aLetter({ tags: ['a'], lane: 'l', dedupeKey: 'k' })
    expect(await bench.store.within(client).add([letter])).toEqual([{ kind: 'added' }])
    await client.query('ROLLBACK')
    expect(await bench.store.get([letter.id])).toEqual([])
    expect(await bench.store.tally('tag')).toEqual(new Map())
    expect(await bench.store.totals()).toEqual([])
  })

  it('stores and counts letters when the caller commits, and not before', async () => {
    const letters = [aLetter({ tags: ['a'] }), aLetter()]
    await bench.store.within(client).add(letters)
    expect(await bench.store.get([letters[0]!.id])).toEqual([])
    // Others go on meanwhile: the caller's transaction holds none of their counts.
    expect(await bench.store.add([aLetter()])).toEqual([{ kind: 'added' }])
    await client.query('COMMIT')
    expect(await bench.store.get(letters.map(({ id }) => id))).toEqual(letters)
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 3]]))
  })

  it('wakes a watcher once the caller commits', async () => {
    bench.store.watch(() => {})
    await expect.poll(async () => (await bench.store.health()).checks['wakeups']).toBe('listening')
    let calls = 0
    const woken = new Promise<void>((resolve) => {
      bench.store.watch(() => {
        calls += 1
        resolve()
      })
    })
    await bench.store.within(client).add([aLetter()])
    expect(calls).toBe(0)
    await client.query('COMMIT')
    await woken
  })

  it('deduplicates by id and by dedupe key', async () => {
    const first = aLetter({ dedupeKey: 'k' })
    await bench.store.add([first])
    const within = bench.store.within(client)
    expect(await within.add([first, aLetter({ dedupeKey: 'k' })])).toMatchObject([
      { kind: 'duplicate', by: 'id' },
      { kind: 'duplicate', by: 'dedupeKey', occurrences: 2 },
    ])
    await client.query('COMMIT')
    expect((await bench.store.get([first.id]))[0]!.occurrences).toBe(2)
  })

  it('reports a transaction that has failed already', async () => {
    await client.query('SELECT nonsense').catch(() => {})
    const added = bench.store.within(client).add([aLetter()])
    await expect(added).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'refuses a transaction that is %s, and leaves it as it was',
    async (level) => {
      await client.query(`ROLLBACK; BEGIN ISOLATION LEVEL ${level}; CREATE TEMPORARY TABLE own ()`)
      const added = bench.store.within(client).add([aLetter()])
      await expect(added).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('READ COMMITTED') as string,
      })
      await client.query('COMMIT')
      expect((await client.query('SELECT * FROM own')).rows).toEqual([])
      expect(await bench.store.tally('state')).toEqual(new Map())
    },
  )

  it('rejects a connection without a transaction, a pool, and other objects', async () => {
    await client.query('ROLLBACK')
    const pool = new Pool({ connectionString: url })
    for (const odd of [client, pool, {}, 'client', null]) {
      const added = bench.store.within(odd as Queryable).add([aLetter()])
      await expect(added).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        message: expect.stringContaining('BEGIN') as string,
      })
    }
    await pool.end()
    expect(await bench.store.tally('state')).toEqual(new Map())
  })

  it('starts over when the letter that holds the dedupe key is settled concurrently', async () => {
    const holder = aLetter({ dedupeKey: 'k' })
    await bench.store.add([holder])
    meanwhile('FOR UPDATE', () => bench.store.apply([resolve(holder, by)]))
    const next = aLetter({ dedupeKey: 'k' })
    expect(await bench.store.within(client).add([next])).toEqual([{ kind: 'added' }])
    await client.query('COMMIT')
    expect(await bench.store.get([next.id])).toEqual([next])
    const counts = { resolved: 1, pending: 1 }
    expect(await bench.store.tally('state')).toEqual(new Map(Object.entries(counts)))
  })

  it('depends on a letter that was added concurrently, not on a duplicate of it', async () => {
    const parked = aLetter({ state: 'parked' })
    const rival = { ...aLetter({ state: 'resolved' }), id: parked.id }
    meanwhile(`SELECT id, '', 0, 0 FROM unnest`, () => bench.store.add([parked]))
    const dependent = aLetter({ dependsOn: [parked.id] })
    expect(await bench.store.within(client).add([rival, dependent])).toMatchObject([
      { kind: 'duplicate', by: 'id' },
      { kind: 'added' },
    ])
    await client.query('COMMIT')
    const { letters } = await bench.store.claim({ worker: 'w', limit: 3, leaseMs: 1000 })
    expect(letters).toEqual([])
  })

  it('stores all letters or none when one of them is added concurrently', async () => {
    const twice = aLetter()
    const letter = aLetter({ dedupeKey: 'k', lane: 'l', tags: ['a'] })
    meanwhile('DO NOTHING RETURNING id', () => bench.store.add([twice]))
    expect(await bench.store.within(client).add([letter, twice])).toMatchObject([
      { kind: 'added' },
      { kind: 'duplicate', by: 'id' },
    ])
    await client.query('COMMIT')
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 2]]))
    expect((await bench.store.find({ tag: 'a' })).items.map(({ id }) => id)).toEqual([letter.id])
    const { letters } = await bench.store.claim({ worker: 'w', limit: 3, leaseMs: 1000 })
    expect(letters.length).toBe(2)
  })

  it('keeps the transaction and its other captures when one capture fails', async () => {
    const within = bench.store.within(client)
    const noise = Array.from({ length: 999 }, (_, n) => `${n * 7919} ${n ** 5}`).join('')
    const good = [aLetter({ tags: ['a'] }), aLetter(), aLetter()]
    const outcomes = await Promise.allSettled([
      within.add([good[0]!]),
      within.add([aLetter({ tags: ['b', noise] })]),
      within.add([good[1]!]),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { code: 'INVALID_INPUT' } })
    await within.add([good[2]!])
    await client.query('COMMIT')
    expect(await bench.store.get(good.map(({ id }) => id))).toEqual(good)
    expect(await bench.store.tally('state')).toEqual(new Map([['pending', 3]]))
    expect(await bench.store.tally('tag')).toEqual(new Map([['a', 1]]))
  })

  it('is used by enqueue with a client, and invisible before the commit', async () => {
    const queue = await DeadLetterQueue.open(await bench.another())
    const operation = { type: 'orders', payload: { id: 1 } }
    const context = { client, dedupeKey: 'order-1' }
    const { id } = await queue.enqueue(operation, new Error('no stock'), context)
    const again = await queue.enqueue(operation, new Error('no stock'), context)
    expect([again.id, again.occurrences]).toEqual([id, 2])
    expect((await queue.find()).items).toEqual([])
    await client.query('COMMIT')
    expect((await queue.find()).items).toMatchObject([{ id, occurrences: 2 }])
    const failure = { operation, error: new Error('no stock'), context: { client } }
    await expect(queue.enqueueAll([failure])).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    await queue.close()
  })
})
