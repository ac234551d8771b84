import { Admin } from '@platformatic/kafka'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import { partitionForKey } from '../../../src/backends/kafka/sender.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { java } from '../java.ts'

const { url } = backend('kafka')
const counts = [1, 2, 3, 5, 6, 7, 12]
const keys = 3000

interface Sent {
  key: string
  hash: number
  partitions: number[]
}

describe('partitionForKey and the Java producer', () => {
  const place = kafkaPlace(url)
  const topicWith = (count: number): string => `${place.name}-${count}`
  const admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })

  beforeAll(async () => {
    for (const count of counts) await makeTopics(admin, [topicWith(count)], count)
  })
  afterAll(async () => {
    await admin.close()
    await place.clear()
  })

  it('agree on the partition of every key, and a sender uses it', async () => {
    await using producer = java('kafka', join(import.meta.dirname, 'Keys.java'), [
      url,
      String(keys),
      ...counts.map(topicWith),
    ])
    const all = await producer.rest<Sent>()
    expect(all).toHaveLength(keys)
    expect(all.some(({ hash }) => hash < 0)).toBe(true)
    const ours = all.map(({ key, hash }) => {
      const bytes = Buffer.from(key, 'hex')
      return { key, hash, partitions: counts.map((count) => partitionForKey(bytes, count)) }
    })
    expect(ours).toEqual(all)

    const cluster = new Cluster({ url, clock: systemClock, timeoutMs: 20_000, clientId: 'foreign' })
    const sender = new Sender(cluster)
    const reader = new Fetcher(cluster)
    try {
      const topic = topicWith(7)
      const ends = await reader.bounds(
        Array.from({ length: 7 }, (_, partition) => ({ topic, partition })),
      )
      const some = all.filter(({ hash }) => hash < 0).slice(0, 200)
      const value = Buffer.from('ours')
      await Promise.all(
        some.map(({ key }) =>
          sender.send({
            topic,
            record: { key: Buffer.from(key, 'hex'), value, headers: new Map() },
          }),
        ),
      )
      const found = new Map<string, number>()
      for (const [partition, { next }] of ends.entries())
        for (const { key } of (await reader.read({ topic, partition }, next)).records)
          found.set(key!.toString('hex'), partition)
      const at = counts.indexOf(7)
      expect(found).toEqual(new Map(some.map(({ key, partitions }) => [key, partitions[at]!])))
    } finally {
      await sender.close()
      await reader.close()
    }
  })
})
