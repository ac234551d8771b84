import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DeadLetterQueue } from '../../../src/index.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

describe.skipIf(missing)('postgresStore within a transaction of its caller', () => {
  let bench: PostgresBench
  let client: Client

  beforeEach(async () => {
    bench = await openPostgresBench()
    client = new Client({ connectionString: url })
    await client.connect()
    await client.query('BEGIN')
  })
  afterEach(async () => {
    await client.end()
    await bench.close()
  })

  it('leaves nothing when the caller rolls back', async () => {
    const letter = aLetter({ tags: ['a'], lane: 'l', dedupeKey: 'k' })
    expect(await bench.store.within(client).add([letter])).toEqual([{ kind: 'added' }])
    await client.query('ROLLBACK')
    expect(await bench.store.get([letter.id])).toEqual([])
    expect(await bench.store.tally('tag')).toEqual(new Map())
    expect(await bench.store.totals()).toEqual([])
  })

  it('keeps and counts letters when the caller commits, and not before', async () => {
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
    let calls = 0
    const woken = new Promise<void>((resolve) => {
      bench.store.watch(() => {
        calls += 1
        resolve()
      })
    })
    await expect
      .poll(async () => (await bench.store.health()).checks['wakeups'], { timeout: 5000 })
      .toBe('listening')
    await bench.store.within(client).add([aLetter()])
    expect(calls).toBe(0)
    await client.query('COMMIT')
    await woken
  })

  it('is by id and by key, as any capture', async () => {
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

  it('says what is wrong when the transaction has failed already', async () => {
    await client.query('SELECT nonsense').catch(() => {})
    const added = bench.store.within(client).add([aLetter()])
    await expect(added).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is what enqueue does with a client, and nothing is seen before the commit', async () => {
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
