import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import type { RedisClient } from '../../../src/backends/redis/connection.ts'
import { redisStore, type RedisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('redis')

describe.skipIf(missing).each([2, 3] as const)(
  'redisStore with a client of the application, RESP %i',
  (RESP) => {
    let place: Place
    let client: ReturnType<typeof createClient>
    let store: RedisStore

    beforeAll(() => {
      place = redisPlace(url)
    })
    afterAll(() => place.clear())
    beforeEach(async () => {
      client = createClient({ url, RESP }) as unknown as typeof client
      client.on('error', () => {})
      await client.connect()
      store = redisStore({ client, prefix: place.name, allowVolatile: true })
      await store.open()
    })
    afterEach(async () => {
      await store.close()
      client.destroy()
    })

    it('stores, finds, claims, counts and settles letters', async () => {
      const letter = aLetter({ tags: ['t'] })
      await store.add([letter])
      expect(await store.get([letter.id])).toEqual([letter])
      expect((await store.find({ tag: 't' })).items.map(({ id }) => id)).toEqual([letter.id])
      expect(await store.tally('tag')).toEqual(new Map([['t', 1]]))
      const { letters } = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
      const by = { at: toTimestamp(Date.now()), actor: 'w', guard: 'epoch' } as const
      expect(await store.apply([resolve(letters[0]!, by)])).toEqual(['written'])
      expect((await store.totals()).length).toBeGreaterThan(0)
      await store.records.put('kind', 'id', { a: 1 })
      expect(await store.records.list('kind')).toMatchObject([{ id: 'id', value: { a: 1 } }])
      expect(await store.fsck()).toMatchObject({ missing: 0, strays: 0, counts: 0 })
      expect(await store.health()).toMatchObject({ ok: true })
    })

    it('wakes watchers when another store adds a letter', async () => {
      const woken = new Promise<void>((done) => void store.watch(done))
      const other = redisStore({ url, prefix: place.name, allowVolatile: true })
      await other.open()
      const stop = new AbortController()
      const adding = (async () => {
        while (!stop.signal.aborted) await other.add([aLetter()])
      })()
      await expect(woken).resolves.toBeUndefined()
      stop.abort()
      await adding
      await other.close()
    })

    it('leaves the client open when it closes', async () => {
      await store.add([aLetter()])
      await store.close()
      expect(await client.ping()).toBe('PONG')
    })
  },
)

describe('redisStore', () => {
  const invalid = expect.objectContaining({ code: 'INVALID_CONFIG' })
  const client = createClient({ url: 'redis://localhost:1' }) as unknown as RedisClient

  it('rejects a client that is not connected', async () => {
    const store = redisStore({ client })
    await expect(store.open()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'redis localhost:1: client is not connected: await client.connect() first',
    })
    await store.close()
  })

  it('rejects a client of another kind', () => {
    const cluster = createCluster({ rootNodes: [{ url: 'redis://localhost:1' }] }) as unknown
    const open = (): unknown => redisStore({ client: cluster as RedisClient })
    expect(open).toThrow(invalid)
    expect(open).toThrow(/a client of the redis package: createClient\(…\).*, got /)
    expect(() => redisStore({ client: {} as RedisClient })).toThrow(invalid)
  })

  it('rejects url and client together, and neither of them', () => {
    expect(() => redisStore({ url: 'redis://localhost:1', client })).toThrow(invalid)
    expect(() => redisStore({})).toThrow(invalid)
  })
})
