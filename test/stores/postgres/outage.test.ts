import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import { toTimestamp } from '../../../src/letter/time.ts'
import { postgresStore, type PostgresStore } from '../../../src/stores/postgres/postgres.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { createProxy, type Proxy } from '../../faults/proxy.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privatePostgres } from '../../servers/private.ts'
import { missing, openPostgresBench, url, type PostgresBench } from './postgres-bench.ts'

const unavailable = { code: 'STORE_UNAVAILABLE' }
const by = { at: toTimestamp(Date.UTC(2026, 0, 2)), actor: 'w', guard: 'epoch' } as const

describe.skipIf(lacksPrivate.postgres())(
  'postgresStore on a server that goes away',
  { timeout: 60_000 },
  () => {
    let server: PrivateServer
    let store: PostgresStore

    beforeAll(async () => {
      server = await privatePostgres()
      store = postgresStore({ url: server.url })
      await store.open()
    }, 60_000)
    afterAll(async () => {
      await store.close()
      await server.remove()
    })

    it('reports a stopped server, and continues once it is back', async () => {
      const kept = aLetter()
      await store.add([kept])
      await server.kill9()
      const { items } = await store
        .find({})
        .catch((error: { code: string }) => ({ items: error.code }))
      expect(items).toBe('STORE_UNAVAILABLE')
      await expect(store.add([aLetter()])).rejects.toMatchObject(unavailable)
      await expect(store.claim({ worker: 'w', limit: 1, leaseMs: 1000 })).rejects.toMatchObject(
        unavailable,
      )
      await expect(store.renew([{ id: kept.id, epoch: 1 }], 1000)).rejects.toMatchObject(
        unavailable,
      )
      await expect(store.records.put('a', 'b', 1)).rejects.toMatchObject(unavailable)
      expect(await store.health()).toMatchObject({ ok: false })
      await server.start()
      expect(await store.get([kept.id])).toEqual([kept])
      expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    })

    it('times out on a server that does not answer', async () => {
      await store.add([aLetter()])
      server.pause()
      try {
        const verbs = [
          store.add([aLetter()]),
          store.claim({ worker: 'w', limit: 1, leaseMs: 1000 }),
          store.find({}),
          store.tally('group'),
        ]
        for (const outcome of await Promise.allSettled(verbs))
          expect(outcome).toMatchObject({ status: 'rejected', reason: unavailable })
      } finally {
        server.resume()
      }
      expect(await store.add([aLetter()])).toEqual([{ kind: 'added' }])
    })
  },
)

describe.skipIf(missing)('postgresStore that loses a connection', () => {
  let bench: PostgresBench
  let proxy: Proxy
  let store: PostgresStore

  beforeEach(async () => {
    bench = await openPostgresBench()
    proxy = await createProxy(url)
    store = await bench.another({ url: proxy.through(url) })
  })
  afterEach(async () => {
    await bench.close()
    proxy.close()
  })

  it.each(['before', 'after'] as const)(
    'reports an unknown outcome when a capture is cut %s its commit, and stores the letter once',
    async (when) => {
      await store.add([aLetter()])
      const letter = aLetter({ dedupeKey: 'k' })
      proxy.cutAt('COMMIT\0', when)
      await expect(store.add([letter])).rejects.toMatchObject({
        ...unavailable,
        message: expect.stringContaining('may or may not have taken effect') as string,
      })
      const kind = when === 'before' ? 'added' : 'duplicate'
      expect(await store.add([letter])).toMatchObject([{ kind }])
      expect((await bench.store.get([letter.id]))[0]).toEqual(letter)
      const captured = (await bench.store.totals()).find(({ action }) => action === 'capture')
      expect(captured?.count).toBe(2)
    },
  )

  it('settles once when the answer to a settle is lost', async () => {
    await store.add([aLetter({ lane: 'l' })])
    const { letters } = await store.claim({ worker: 'w', limit: 1, leaseMs: 60_000 })
    proxy.cutAt('COMMIT\0', 'after')
    await expect(store.apply([resolve(letters[0]!, by)])).rejects.toMatchObject(unavailable)
    expect(await store.apply([resolve(letters[0]!, by)])).toEqual(['conflict'])
    const [after] = await bench.store.get([letters[0]!.id])
    expect(after).toMatchObject({ state: 'resolved', retries: 1 })
  })

  it('leaves no rejection unhandled when all connections are cut at any time', async () => {
    for (let round = 0; round < 12; round++) {
      const verbs = Array.from({ length: 8 }, () => [
        store.add([aLetter({ lane: 'l' })]),
        store.claim({ worker: 'w', limit: 3, leaseMs: 60_000 }),
        store.apply([resolve(aLetter(), by)]),
        store.renew([{ id: 'nobody', epoch: 1 }], 1000),
      ]).flat()
      // One round trip later than the round before: the cut falls into another step each time.
      for (let n = 0; n < round; n++) await bench.store.records.get('a', 'b')
      await proxy.set('reset')
      await proxy.seen('reset')
      await proxy.set('pass')
      for (const outcome of await Promise.allSettled<unknown>(verbs))
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(unavailable)
    }
    const { letters } = await store.claim({ worker: 'w', limit: 3, leaseMs: 60_000 })
    expect(letters.length).toBeLessThanOrEqual(1)
  })

  it('repeats a lost call once for each connection of the pool', async () => {
    const letter = aLetter()
    proxy.cutAt(letter.id, 'before')
    void proxy.seen('cut').then(() => proxy.cutAt(letter.id, 'before'))
    expect(await store.add([letter])).toEqual([{ kind: 'added' }])
    await proxy.seen('cut', 2)
  })

  it('repeats a call that was cut before its commit', async () => {
    const letter = aLetter()
    proxy.cutAt(letter.id, 'before')
    expect(await store.add([letter])).toEqual([{ kind: 'added' }])
    const by = { at: letter.updatedAt, actor: 'ada', guard: 'version' } as const
    proxy.cutAt(letter.id, 'before')
    expect(await store.apply([resolve(letter, by)])).toEqual(['written'])
    proxy.cutAt('SELECT', 'after')
    expect(await store.tally('state')).toEqual(new Map([['resolved', 1]]))
  })

  it('adds a letter once when the answer to its statement is lost', async () => {
    // Not due, so that no notification is sent.
    const letter = aLetter({ retryAt: '2999-01-01T00:00:00.000Z' })
    await store.add([aLetter({ retryAt: '2999-01-01T00:00:00.000Z', queue: letter.queue })])
    proxy.cutAfter(1)
    expect(await store.add([letter])).toEqual([{ kind: 'added' }])
    expect(await bench.store.get([letter.id])).toEqual([letter])
    expect((await bench.store.totals()).map(({ action, count }) => [action, count])).toEqual([
      ['capture', 2],
    ])
  })

  it('reports an unknown outcome when the answer to a settle is lost', async () => {
    // Not due, so that no notification is sent.
    const letter = aLetter({ retryAt: '2999-01-01T00:00:00.000Z' })
    await store.add([letter])
    const by = { at: letter.updatedAt, actor: 'ada', guard: 'version' } as const
    proxy.cutAfter(1)
    await expect(store.apply([resolve(letter, by)])).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining('may or may not have taken effect') as string,
    })
    expect((await bench.store.get([letter.id]))[0]).toMatchObject({ state: 'resolved', version: 2 })
  })
})
