import assert from 'node:assert/strict'
import { afterEach, describe, expect, it } from 'vitest'
import type { Store } from '../../../src/store.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateRedis } from '../../servers/private.ts'

describe.skipIf(lacksPrivate.redis() !== undefined)('a server that goes away', () => {
  let server: PrivateServer | undefined
  const stores: Store[] = []

  afterEach(async () => {
    server?.resume()
    await Promise.all(stores.splice(0).map((store) => store.close()))
    await server?.remove()
    server = undefined
  })

  const open = async (timeoutMs = 5000): Promise<Store> => {
    server ??= await privateRedis()
    const store = redisStore({ url: server.url, timeoutMs })
    stores.push(store)
    await store.open()
    return store
  }

  it('is reported immediately when it is unreachable at open', async () => {
    const store = redisStore({ url: 'redis://127.0.0.1:1' })
    stores.push(store)
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    assert.equal((await store.health()).ok, false)
  })

  it('fails every call while it is down and none afterwards, and has all stored letters', async () => {
    const store = await open()
    const letters = Array.from({ length: 20 }, () => aLetter())
    await store.add(letters)
    await server!.kill9()
    const down = { code: 'STORE_UNAVAILABLE' }
    await expect(store.add([aLetter()])).rejects.toMatchObject(down)
    await expect(store.get([letters[0]!.id])).rejects.toMatchObject(down)
    await expect(store.claim({ worker: 'w', limit: 1, leaseMs: 100 })).rejects.toMatchObject(down)
    await expect(store.tally('state')).rejects.toMatchObject(down)
    const { ok, problems } = await store.health()
    assert.equal(ok, false)
    assert.ok(problems[0]!.length > 0)
    await server!.start()
    assert.deepEqual(await store.tally('state'), new Map([['pending', 20]]))
    assert.equal((await store.health()).ok, true)
  })

  it('times out a call that is not answered', async () => {
    const store = await open(300)
    server!.pause()
    await expect(store.add([aLetter()])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/no answer within 300 ms/),
    })
    server!.resume()
    const letter = aLetter()
    await store.add([letter])
    assert.equal((await store.get([letter.id])).length, 1)
  })

  it('loses no acknowledged write when it is killed repeatedly under load', async () => {
    const store = await open()
    const acknowledged: string[] = []
    const stop = new AbortController()
    const capture = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const letter = aLetter()
        const results = await store.add([letter]).catch(() => [])
        if (results.length > 0) acknowledged.push(letter.id)
      }
    }
    const captures = Array.from({ length: 8 }, capture)
    for (let round = 0; round < 5; round++) {
      const before = acknowledged.length
      while (acknowledged.length < before + 50) await store.health()
      await server!.kill9()
      await server!.start()
    }
    stop.abort()
    await Promise.all(captures)
    const kept = await store.get(acknowledged)
    assert.equal(kept.length, acknowledged.length)
    const { examples, missing, strays, counts } = await redisStoreOf(store).fsck()
    assert.deepEqual(
      { examples, missing, strays, counts },
      { examples: [], missing: 0, strays: 0, counts: 0 },
    )
  })

  it('wakes watchers again once it is back', async () => {
    const store = await open()
    const other = await open()
    const calls: true[] = []
    other.watch(() => void calls.push(true))
    while (calls.length === 0) await store.add([aLetter()])
    await server!.kill9()
    await server!.start()
    calls.length = 0
    while (calls.length === 0) await store.add([aLetter()])
    expect(calls[0]).toBe(true)
  })
})

function redisStoreOf(store: Store): ReturnType<typeof redisStore> {
  return store as ReturnType<typeof redisStore>
}
