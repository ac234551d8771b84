import assert from 'node:assert/strict'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { redisPlace, type Place } from '../../servers/places.ts'
import { findsBySource, sourcedLetters } from '../sourced-letters.ts'
import { single } from './redis-bench.ts'

describe.skipIf(single.missing !== undefined)('the schema of redisStore', () => {
  let place: Place
  let tag: string
  const client = createClient({ url: single.url })

  beforeEach(async () => {
    place = redisPlace(single.url)
    tag = `{${place.name}}`
    await client.connect()
  })
  afterEach(async () => {
    client.destroy()
    await place.clear()
  })

  const create = () => redisStore({ url: single.url, prefix: place.name })

  it.each(['1', '2'])('is refused if it has version %s, and stays as it is', async (version) => {
    await client.hSet(`${tag}:meta`, { schema: version, moves: '7' })
    await client.hSet(`${tag}:l:old`, 'r', '0123abcd["old"]')
    await assert.rejects(create().open(), {
      code: 'STORE_UNSAFE',
      message: `the keys ${tag} were written by an older Redrive, and this one cannot read them (schema ${version}): use that one, or another prefix`,
    })
    assert.deepEqual({ ...(await client.hGetAll(`${tag}:meta`)) }, { schema: version, moves: '7' })
    assert.equal(await client.hGet(`${tag}:l:old`, 'r'), '0123abcd["old"]')
  })

  it('is written once by several processes that open an empty place', async () => {
    const stores = [create(), create(), create()]
    await Promise.all(stores.map((store) => store.open()))
    assert.equal(await client.hGet(`${tag}:meta`, 'schema'), '3')
    await Promise.all(stores.map((store) => store.close()))
  })

  it('has an index by source id, with no entry left when a letter is removed', async () => {
    const store = create()
    await store.open()
    const letters = sourcedLetters()
    await store.add(letters)
    await findsBySource(store, letters)
    await store.remove({ ids: letters.map(({ id }) => id) })
    assert.equal(await client.exists(`${tag}:f:wf_abc123`), 0)
    await store.close()
  })
})
