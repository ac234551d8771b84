import assert from 'node:assert/strict'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { migrate } from '../../../src/stores/redis/migrate.ts'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { findsBySource, sourcedLetters } from '../sourced-letters.ts'
import { single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)(migrate.name, () => {
  let place: Place
  const client = createClient({ url: single.url })

  beforeEach(async () => {
    place = redisPlace(single.url)
    await client.connect()
  })
  afterEach(async () => {
    client.destroy()
    await place.clear()
  })

  it('indexes letters of schema 1 by their source ids', async () => {
    const open = async () => {
      const store = redisStore({ url: single.url, prefix: place.name })
      await store.open()
      return store
    }
    const tag = `{${place.name}}`
    const letters = sourcedLetters()
    const before = await open()
    await before.add(letters)
    await before.close()
    for (const { id } of letters) await client.hDel(`${tag}:l:${id}`, 's')
    for await (const keys of client.scanIterator({ MATCH: `${tag}:f:*` }))
      for (const key of keys) await client.del(key)
    await client.hSet(`${tag}:meta`, 'schema', '1')
    await client.hSet(`${tag}:l:${letters.at(-1)!.id}`, 'o', 'not an origin')
    const stores = await Promise.all([open(), open()])
    for (const store of stores) await findsBySource(store, letters)
    assert.equal(await client.hGet(`${tag}:meta`, 'schema'), '2')
    const { missing, strays } = await stores[0].fsck()
    assert.deepEqual({ missing, strays }, { missing: 0, strays: 0 })
    await Promise.all(stores.map((store) => store.close()))
  })

  it('leaves no index entry behind when a letter is removed', async () => {
    const store = redisStore({ url: single.url, prefix: place.name })
    await store.open()
    const letters = sourcedLetters()
    await store.add(letters)
    await store.remove({ ids: letters.map(({ id }) => id) })
    assert.equal(await client.exists(`{${place.name}}:f:wf_abc123`), 0)
    await store.close()
  })
})
