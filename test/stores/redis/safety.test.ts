import assert from 'node:assert/strict'
import { readdir, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { resolve } from '../../../src/letter/moves.ts'
import type { Store } from '../../../src/store.ts'
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateRedis } from '../../servers/private.ts'

describe.skipIf(lacksPrivate.redis() !== undefined)('a server of its own', () => {
  const servers: PrivateServer[] = []
  const stores: Store[] = []

  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()))
    await Promise.all(servers.splice(0).map((server) => server.remove()))
  })

  const start = async (...args: Parameters<typeof privateRedis>): Promise<PrivateServer> => {
    const server = await privateRedis(...args)
    servers.push(server)
    return server
  }

  const storeOn = (
    { url }: { url: string },
    options: Partial<RedisStoreOptions> = {},
  ): ReturnType<typeof redisStore> => {
    const store = redisStore({ url, ...options })
    stores.push(store)
    return store
  }

  const ask = async ({ url }: PrivateServer, ...command: string[]): Promise<unknown> => {
    const client = createClient({ url })
    client.on('error', () => {})
    await client.connect()
    try {
      return await client.sendCommand(command)
    } finally {
      client.destroy()
    }
  }

  it.each([
    ['that evicts', { 'maxmemory-policy': 'allkeys-lru' }, /noeviction/],
    ['without an append-only file', { appendonly: 'no' }, /appendonly/],
    ['that never syncs', { appendfsync: 'no' }, /appendfsync/],
  ])('is rejected if %s, unless allowVolatile is set', async (_what, settings, why) => {
    const server = await start(settings)
    await expect(storeOn(server).open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringMatching(why),
    })
    const store = storeOn(server, { allowVolatile: true })
    await store.open()
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
    assert.equal(store.powers.durable, !('appendonly' in settings))
    assert.deepEqual((await store.health()).problems, [])
  })

  it('is rejected in any case if it is a replica', async () => {
    const master = await start()
    const replica = await start({}, master)
    await expect(storeOn(replica, { allowVolatile: true }).open()).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringMatching(/slave|replica/),
    })
  })

  it('reports in health that it became unsafe after the store was opened', async () => {
    const server = await start()
    const store = storeOn(server)
    await store.open()
    assert.equal((await store.health()).ok, true)
    await ask(server, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    const { ok, problems } = await store.health()
    assert.equal(ok, false)
    assert.match(problems.join(), /noeviction/)
  })

  it('is checked only by INFO where CONFIG is forbidden', async () => {
    const server = await start()
    await ask(server, 'ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-config')
    const store = storeOn({ url: server.url.replace('//', '//app:pw@') })
    await store.open()
    assert.deepEqual(await store.add([aLetter()]), [{ kind: 'added' }])
    const { ok, checks } = await store.health()
    assert.equal(ok, true)
    assert.match(checks['appendfsync']!, /unknown/)
  })

  it('needs no more permissions than its docs page lists', async () => {
    const server = await start()
    const page = await readFile('docs/operating/redis.md', 'utf8')
    const [, kinds, commands] = /`(\+@hash [^`]*)` and\s`(\+info [^`]*)`/.exec(page)!
    const rights = `${kinds} ${commands}`.split(' ')
    await ask(
      server,
      'ACL',
      'SETUSER',
      'app',
      'on',
      '>pw',
      '~{redrive}*',
      '&{redrive}:wake',
      ...rights,
    )
    const store = storeOn({ url: server.url.replace('//', '//app:pw@') })
    await store.open()
    const calls: true[] = []
    store.watch(() => void calls.push(true))
    await store.add([
      aLetter({ lane: 'l', tags: ['t'], dedupeKey: 'k' }),
      aLetter({ dedupeKey: 'k' }),
    ])
    const { letters } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    await store.renew([{ id: letters[0]!.id, epoch: 1 }], 90_000)
    const by = { at: letters[0]!.updatedAt, actor: 'w', guard: 'epoch' } as const
    await store.apply([resolve(letters[0]!, by)])
    await store.records.put('kind', 'id', 1)
    assert.equal((await store.records.list('kind')).length, 1)
    assert.equal((await store.find({ state: 'resolved' })).items.length, 1)
    assert.deepEqual((await store.fsck({ repair: true })).examples, [])
    assert.equal(await store.remove({ state: 'resolved' }), 1)
    assert.ok(calls.length > 0)
  })

  it('rejects a wrong password, and the error does not contain it', async () => {
    const server = await start()
    await ask(server, 'ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '+@all')
    const failure = await storeOn({ url: server.url.replace('//', '//app:hush@') })
      .open()
      .catch((error: unknown) => error)
    assert.ok(failure instanceof Error)
    assert.equal((failure as { code?: string }).code, 'INVALID_CONFIG')
    assert.ok(!failure.message.includes('hush'))
  })

  it('rejects new letters when its memory is full, stores none partially, and lets work finish', async () => {
    const server = await start()
    const store = storeOn(server)
    await store.open()
    const letters = [aLetter({ lane: 'l', tags: ['t'] }), aLetter()]
    await store.add(letters)
    await ask(server, 'CONFIG', 'SET', 'maxmemory', '1')
    await expect(store.add([aLetter(), aLetter()])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/maxmemory/),
    })
    await expect(store.records.put('kind', 'id', 1)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    const { letters: claimed } = await store.claim({ worker: 'w', limit: 9, leaseMs: 60_000 })
    assert.equal(claimed.length, 2)
    const by = { at: claimed[0]!.updatedAt, actor: 'w', guard: 'epoch' } as const
    assert.deepEqual(await store.apply([resolve(claimed[0]!, by)]), ['written'])
    assert.deepEqual(await store.renew([{ id: claimed[1]!.id, epoch: 1 }], 90_000), [true])
    assert.equal(await store.remove({ state: 'resolved' }), 1)
    await ask(server, 'CONFIG', 'SET', 'maxmemory', '0')
    assert.deepEqual(await store.tally('state'), new Map([['retrying', 1]]))
    const { letters: _, examples, ...report } = await store.fsck()
    assert.deepEqual(
      { examples, ...report },
      {
        examples: [],
        unreadable: 0,
        missing: 0,
        strays: 0,
        counts: 0,
        repaired: false,
      },
    )
  })

  it('acknowledges with waitReplicas only what a replica has', async () => {
    const master = await start()
    const replica = await start({}, master)
    const store = storeOn(master, { waitReplicas: 1, timeoutMs: 1000 })
    await store.open()
    // The replica may still be on its way to its first copy.
    for (;;) if ((await store.add([aLetter()]).catch(() => null)) !== null) break
    await replica.kill9()
    const letter = aLetter()
    await expect(store.add([letter])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/may be permanent/),
    })
    assert.equal((await store.get([letter.id])).length, 1, 'the master has it')
    await replica.start()
    for (;;) {
      const again = await store.add([letter]).catch(() => null)
      if (again === null) continue
      assert.deepEqual(again, [{ kind: 'duplicate', of: letter.id, by: 'id', occurrences: 1 }])
      break
    }
  })

  it('is reported when it lost acknowledged writes', async () => {
    const server = await start()
    const store = storeOn(server)
    await store.open()
    for (let n = 0; n < 5; n++) await store.add([aLetter()])
    assert.equal((await store.health()).ok, true)
    const { dir } = (await ask(server, 'CONFIG', 'GET', 'dir')) as { dir: string }
    await server.kill9()
    const folder = join(dir, 'appendonlydir')
    const file = join(
      folder,
      (await readdir(folder)).find((name) => name.endsWith('.incr.aof'))!,
    )
    await truncate(file, (await stat(file)).size - 10)
    await server.start()
    const { ok, problems } = await store.health()
    assert.equal(ok, false)
    assert.match(problems.join(), /lost at least 1 acknowledged/)
    assert.deepEqual(await store.tally('state'), new Map([['pending', 4]]))
    const { examples } = await store.fsck()
    assert.deepEqual(examples, [], 'whole writes are gone, and no half ones are left')
  })

  it('is rejected when a newer Redrive has changed the keys', async () => {
    const server = await start()
    await ask(server, 'HSET', '{redrive}:meta', 'schema', '99')
    await expect(storeOn(server).open()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })
})
