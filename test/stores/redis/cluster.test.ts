import assert from 'node:assert/strict'
import { createClient } from 'redis'
import { describe, it } from 'vitest'
import { redisStore } from '../../../src/stores/redis/redis.ts'
import { aLetter } from '../../../src/testing/index.ts'
import { checksOf, runStoreContract } from '../../contract/run-store-contract.ts'
import { runStoreModel } from '../../contract/run-store-model.ts'
import { atDepth } from '../../depth.ts'
import { redisClusterPlace, type Place } from '../../servers/places.ts'
import { cluster, openClusterBench } from './redis-bench.ts'

describe.skipIf(cluster.missing !== undefined)('on a cluster', () => {
  // Opening is different, and connections of watchers. All keys of a store are on one node.
  runStoreContract('redisStore', () => openClusterBench(), {
    inShort: checksOf('lifecycle', 'lanes', 'dependencies', 'watch'),
  })
  runStoreModel('redisStore', openClusterBench, { numRuns: atDepth(3, 20) })

  it('finds the node that owns its slot, whichever node is given', async () => {
    const places: Place[] = []
    const owners = new Set<string>()
    try {
      while (owners.size < 2 && places.length < 12) {
        const place = redisClusterPlace(cluster.url)
        places.push(place)
        const store = redisStore({ url: cluster.url, prefix: place.name })
        await store.open()
        const letter = aLetter()
        await store.add([letter])
        assert.equal((await store.get([letter.id])).length, 1)
        owners.add((await store.health()).checks['server']!)
        await store.close()
      }
      assert.ok(owners.size > 1, 'prefixes spread over the nodes')
    } finally {
      for (const { clear } of places) await clear()
    }
  })

  it('has all keys of a store in one slot', async () => {
    const bench = await openClusterBench()
    try {
      const others = { lane: 'l', tags: ['t'], dedupeKey: 'k', tenant: 'x', dependsOn: ['nobody'] }
      await bench.store.add([aLetter(others), aLetter({ queue: '{braces}', state: 'parked' })])
      await bench.store.records.put('kind', 'id', 1)
      const { server } = (await bench.store.health()).checks
      const client = createClient({ url: `redis://${server}` })
      await client.connect()
      try {
        const slots = new Set<number>()
        for await (const keys of client.scanIterator({ MATCH: `*${bench.prefix}*`, COUNT: 1000 }))
          for (const key of keys) slots.add(await client.clusterKeySlot(key))
        assert.equal(slots.size, 1)
      } finally {
        client.destroy()
      }
    } finally {
      await bench.close()
    }
  })
})
