import { Client, Pool } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { postgresPlace, type Place } from '../../servers/places.ts'
import { missing, url } from './postgres-bench.ts'

describe.skipIf(missing)('postgresStore with a pool of the application', () => {
  let pool: Pool
  let place: Place
  let store: PostgresStore

  beforeAll(() => {
    place = postgresPlace(url)
  })
  afterAll(() => place.clear())
  beforeEach(async () => {
    pool = new Pool({ connectionString: url, max: 3 })
    store = postgresStore({ pool, schema: place.name })
    await store.open()
  })
  afterEach(async () => {
    await store.close()
    await pool.end()
  })

  it('stores, claims and settles letters, many at once', async () => {
    const letters = Array.from({ length: 20 }, (_, n) => aLetter({ lane: `l${n}`, tags: ['t'] }))
    await Promise.all(letters.map((letter) => store.add([letter])))
    const claims = await Promise.all(
      [1, 2].map((n) => store.claim({ worker: `w${n}`, limit: 10, leaseMs: 60_000 })),
    )
    const claimed = claims.flatMap((claim) => claim.letters)
    const by = { at: toTimestamp(Date.now()), actor: 'w', guard: 'epoch' } as const
    const results = await Promise.all(claimed.map((letter) => store.apply([resolve(letter, by)])))
    expect(results.flat()).toEqual(letters.map(() => 'written'))
    expect(pool.totalCount).toBeLessThanOrEqual(3)
  })

  it('warns of nothing that pg deprecates', async () => {
    const warnings: string[] = []
    const note = (warning: Error): void => void warnings.push(warning.message)
    process.on('warning', note)
    await store.add([aLetter({ dedupeKey: 'k', lane: 'l', tags: ['t'] })])
    await new Promise((done) => setImmediate(done))
    process.off('warning', note)
    expect(warnings.filter((message) => message.includes('client.query()'))).toEqual([])
  })

  it('wakes watchers when another store adds a letter, over one more connection', async () => {
    let wake = (): void => {}
    store.watch(() => wake())
    await expect.poll(async () => (await store.health()).checks['wakeups']).toBe('listening')
    const woken = new Promise<void>((done) => (wake = done))
    const other = postgresStore({ pool, schema: place.name })
    await other.open()
    await other.add([aLetter()])
    await woken
    await other.close()
  })

  it('leaves the pool open when it closes, and its sessions as they were', async () => {
    const show = `SELECT current_setting('statement_timeout'), current_setting('jit'), current_setting('idle_in_transaction_session_timeout')`
    const settings = async (): Promise<unknown> => (await pool.query(show)).rows
    const fresh = new Client({ connectionString: url })
    await fresh.connect()
    const defaults = (await fresh.query(show)).rows
    await fresh.end()
    await store.add([aLetter()])
    await store.close()
    expect(await Promise.all([settings(), settings(), settings()])).toEqual([
      defaults,
      defaults,
      defaults,
    ])
  })

  it('captures within a transaction of the application on the same pool', async () => {
    const client = await pool.connect()
    const letter = aLetter()
    await client.query('BEGIN')
    await store.within(client).add([letter])
    await client.query('COMMIT')
    client.release()
    expect(await store.get([letter.id])).toEqual([letter])
  })

  it('fails when no connection becomes free, instead of waiting forever', async () => {
    const clients = await Promise.all([1, 2, 3].map(() => pool.connect()))
    await expect(store.totals()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('raise max of the pool'),
    })
    for (const client of clients) client.release()
    await store.totals()
  })

  it.each([
    [
      'a Client',
      () => new Client(),
      'pool must be a Pool of pg (node-postgres): new Pool(…), got a Client',
    ],
    ['a string', () => url, 'got string'],
    ['a pool of one connection', () => new Pool({ max: 1 }), 'set its max to 2 or more'],
    [
      'a pool with binary results',
      () => new Pool(Object.assign({ max: 2 }, { binary: true })),
      'binary: true',
    ],
  ])('rejects %s', (_, create, message) => {
    const open = (): unknown => postgresStore({ pool: create() as Pool })
    expect(open).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        message: expect.stringContaining(message),
      }),
    )
  })

  it('rejects url and pool together, neither of them, and a poolSize for the pool', () => {
    const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
    expect(() => postgresStore({ url, pool })).toThrow(invalid)
    expect(() => postgresStore({})).toThrow(invalid)
    expect(() => postgresStore({ pool, poolSize: 4 })).toThrow(invalid)
  })
})
