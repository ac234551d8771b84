import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { runMailboxContract } from '../../contract/run-mailbox-contract.ts'
import { redisClusterPlace, type Place } from '../../servers/places.ts'
import { cluster, openClusterBench, openedMailboxes } from './redis-bench.ts'

describe.skipIf(cluster.missing !== undefined)('on a cluster', () => {
  runMailboxContract('redisMailbox', openClusterBench, { realTime: true })
})

describe.skipIf(cluster.missing !== undefined)('Redis mailboxes on a cluster', () => {
  const mailboxes = openedMailboxes()
  let place: Place | undefined

  afterEach(async () => {
    await mailboxes.close()
    await place?.clear()
  })

  it('are spread over all nodes, and each is found from any node', async () => {
    place = redisClusterPlace(cluster.url)
    const owners = new Set<string>()
    for (let n = 0; n < 12; n++) {
      const mailbox = await mailboxes.open({ url: cluster.url, prefix: place.name, name: `m${n}` })
      const waiting = mailbox.receive({ waitSeconds: 20 })
      await mailbox.send(n)
      const [message] = await waiting
      expect(message!.value()).toBe(n)
      owners.add((await mailbox.health()).checks['server']!)
    }
    expect(owners.size).toBeGreaterThan(1)
  })

  it('have all keys in one slot, whatever their names', async () => {
    place = redisClusterPlace(cluster.url)
    const name = '}a{b}%c'
    const mailbox = await mailboxes.open({ url: cluster.url, prefix: place.name, name })
    await mailbox.send('waits', { id: '{x}' })
    await mailbox.send('delayed', { delaySeconds: 60 })
    await mailbox.receive()
    const { server } = (await mailbox.health()).checks
    const client = createClient({ url: `redis://${server}` })
    await client.connect()
    try {
      const slots = new Set<number>()
      let count = 0
      for await (const keys of client.scanIterator({ MATCH: `*${place.name}*`, COUNT: 1000 }))
        for (const key of keys) {
          slots.add(await client.clusterKeySlot(key))
          count += 1
        }
      expect(count).toBeGreaterThan(4)
      expect(slots.size).toBe(1)
    } finally {
      client.destroy()
    }
  })
})
