import { Admin, ProtocolError } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster, type ClusterOptions } from '../../../src/backends/kafka/cluster.ts'
import {
  GroupConsumer,
  type AssignedPartition,
  type Buffered,
  type GroupConsumerOptions,
} from '../../../src/backends/kafka/group-consumer.ts'
import { listCommittedOffsets } from '../../../src/backends/kafka/group.ts'
import { done } from '../../../src/backends/kafka/progress.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { apiKeys, lossyProxy } from './lossy-proxy.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

type TestPartition = AssignedPartition & Buffered

describe.skipIf(missing)('GroupConsumer', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let topic: string
  const closing: (() => Promise<void> | void)[] = []

  const clusterOptions = (at: string): ClusterOptions => ({
    url: at,
    clock: systemClock,
    timeoutMs: 5000,
    clientId: place.name,
  })
  /** A cluster whose clients do not cache metadata. */
  const uncached = (at: string): Cluster =>
    new Cluster({ ...clusterOptions(at), connection: { metadataMaxAge: 1 } })

  const createConsumer = (
    at: string,
    more: Partial<GroupConsumerOptions<TestPartition>> = {},
  ): GroupConsumer<TestPartition> => {
    const consumer = new GroupConsumer<TestPartition>({
      cluster: new Cluster(clusterOptions(at)),
      groupId: `${place.name}.group`,
      topics: [topic],
      sessionMs: 6000,
      onAssigned: (partition) => Object.assign(partition, { entries: new Set(), bytes: 0 }),
      onRecords: ignore,
      onDeleted: ignore,
      onRevoked: async () => {},
      onLost: ignore,
      onError: ignore,
      onHealthy: ignore,
      ...more,
    })
    closing.unshift(() => consumer.close())
    return consumer
  }

  /** The broker removes the member, which then rejoins. */
  const removeMember = async ({ group }: GroupConsumer<TestPartition>): Promise<void> => {
    const { memberId } = group.membership
    const groupId = `${place.name}.group`
    await admin.removeMembersFromConsumerGroup({ groupId, members: [{ memberId }] })
  }

  beforeEach(async () => {
    place = kafkaPlace(url)
    topic = `${place.name}.one`
    admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })
    await makeTopics(admin, [topic], 2)
  })

  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await admin.close()
    await place.clear()
  })

  it('loses only the partitions of the former membership when its commit is refused', async () => {
    const refusal = Promise.withResolvers<void>()
    let assigned = 0
    const consumer = createConsumer(url, {
      onAssigned: (partition) => {
        assigned += 1
        return Object.assign(partition, { entries: new Set(), bytes: 0 })
      },
      commit: () => refusal.promise,
    })
    consumer.group.join()
    await expect.poll(() => assigned).toBe(2)
    const former = consumer.all()
    const committed = consumer.commit(former)
    await removeMember(consumer)
    await expect.poll(() => assigned).toBe(4)
    const cause = new ProtocolError('UNKNOWN_MEMBER_ID')
    refusal.reject(cause)
    await committed
    expect(former.map(({ isLost }) => isLost)).toEqual([true, true])
    expect(consumer.all().map(({ isLost }) => isLost)).toEqual([false, false])
  })

  it('reads partitions that are added later, in any member', async () => {
    const [one, other] = [
      createConsumer(url, { checkPartitionsMs: 200 }),
      createConsumer(url, { checkPartitionsMs: 200 }),
    ]
    const counts = (): number[] => [one, other].map((consumer) => consumer.all().length)
    const held = (): string =>
      [one, other]
        .flatMap((consumer) => consumer.all().map(({ partition }) => partition))
        .toSorted((a, b) => a - b)
        .join()
    for (const { group } of [one, other]) group.join()
    await expect.poll(counts).toEqual([1, 1])
    await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
    await expect.poll(held).toBe('0,1,2,3,4')
  })

  it('reads partitions that are added during a rebalance', async () => {
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    const consumer = createConsumer(proxy.url, {
      cluster: uncached(proxy.url),
      checkPartitionsMs: 200,
    })
    proxy.hold(apiKeys.syncGroup)
    consumer.group.join()
    await expect.poll(() => proxy.held(apiKeys.syncGroup)).toBe(1)
    await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
    proxy.release(apiKeys.syncGroup)
    await expect.poll(() => consumer.all().length).toBe(5)
  })

  it('does not read partitions that it lost before it knew their offsets', async () => {
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    const slow = createConsumer(proxy.url)
    const quick = createConsumer(url)
    proxy.hold(apiKeys.offsetFetch)
    slow.group.join()
    await expect.poll(() => proxy.held(apiKeys.offsetFetch)).toBe(1)
    proxy.hold(apiKeys.joinGroup)
    await removeMember(slow)
    quick.group.join()
    await expect.poll(() => quick.all().length).toBe(2)
    await expect.poll(() => proxy.held(apiKeys.joinGroup)).toBe(1)
    proxy.release(apiKeys.offsetFetch)
    proxy.release(apiKeys.joinGroup)
    const counts = (): number[] => [slow, quick].map((consumer) => consumer.all().length)
    await expect.poll(counts).toEqual([1, 1])
  })

  it('keeps its membership during a rebalance until it knows its assignment', async () => {
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    const one = createConsumer(proxy.url)
    const { group } = one
    group.join()
    await expect.poll(() => one.all().length).toBe(2)
    const before = group.membership
    proxy.hold(apiKeys.syncGroup)
    createConsumer(url).group.join()
    await expect.poll(() => proxy.held(apiKeys.syncGroup)).toBe(1)
    expect(group.consumer.generationId).toBeGreaterThan(before.generationId)
    expect(group.membership).toEqual(before)
    proxy.release(apiKeys.syncGroup)
    await expect.poll(() => one.all().length).toBe(1)
    expect(group.membership.generationId).toBeGreaterThan(before.generationId)
  })

  describe('a topic with fewer records than were read', () => {
    /** Marks all records as done. */
    const readAll = (
      seen: string[],
      size = (): number => 0,
      cluster = new Cluster(clusterOptions(url)),
    ): GroupConsumer<TestPartition> => {
      const entries = Object.defineProperty({ size: 0 }, 'size', { get: size })
      const consumer = createConsumer(url, {
        cluster,
        onAssigned: (partition) => Object.assign(partition, { entries, bytes: 0 }),
        onRecords: ({ progress }, records) => {
          for (const { offset, value } of records) {
            progress.set(offset, done)
            seen.push(value.toString())
          }
        },
      })
      consumer.group.join()
      return consumer
    }
    const put = async (...strings: string[]): Promise<void> => {
      const sender = new Sender(new Cluster(clusterOptions(url)))
      const records = strings.map((text) => ({ value: Buffer.from(text), headers: new Map() }))
      await Promise.all(records.map((one) => sender.send({ topic, partition: 0, record: one })))
      await sender.close()
    }
    const recreate = async (): Promise<void> => {
      await admin.deleteTopics({ topics: [topic] })
      await expect.poll(() => admin.listTopics()).not.toContain(topic)
      await makeTopics(admin, [topic], 2)
    }

    it('is read from the start when it was recreated', async () => {
      const seen: string[] = []
      const consumer = readAll(seen)
      await put('a', 'b', 'c')
      await expect.poll(() => seen.length).toBe(3)
      await recreate()
      await put('d', 'e')
      await expect.poll(() => seen).toEqual(['a', 'b', 'c', 'd', 'e'])
      await consumer.commit(consumer.all())
      const [first] = await listCommittedOffsets(admin, `${place.name}.group`, [
        { topic, partition: 0 },
      ])
      expect(first?.offset).toBe(2)
    })

    it('is read from the start when it was recreated and has more records again', async () => {
      const seen: string[] = []
      let size = 0
      const consumer = readAll(seen, () => size)
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      size = Infinity
      await recreate()
      await put('c', 'd', 'e')
      size = 0
      consumer.wake()
      await expect.poll(() => seen).toEqual(['a', 'b', 'c', 'd', 'e'])
    })

    it('corrects the committed offset', async () => {
      const seen: string[] = []
      let size = 0
      const consumer = readAll(seen, () => size)
      const position = async (): Promise<number | undefined> =>
        (await listCommittedOffsets(admin, `${place.name}.group`, [{ topic, partition: 0 }]))[0]
          ?.offset
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      size = Infinity
      await recreate()
      await consumer.commit(consumer.all())
      expect(await position()).toBe(2)
      size = 0
      consumer.wake()
      await expect.poll(position).toBe(0)
    })

    it('is read from its end when the broker lost the last records', async () => {
      const seen: string[] = []
      const consumer = readAll(seen)
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      // Simulates later records that the broker has lost.
      const former = consumer.all().find(({ partition }) => partition === 0)!
      former.progress.moveTo(100)
      former.position = 100
      await expect.poll(() => former.isLost).toBe(true)
      await put('c')
      await expect.poll(() => seen).toEqual(['a', 'b', 'c'])
    })

    const wrongIds = [
      '00000000-0000-0000-0000-000000000000',
      'b3a1c2d4-0000-4000-8000-000000000000',
    ]
    it.each(wrongIds)('is not assumed when a broker returns the topic id %s', async (id) => {
      const cluster = new Cluster(clusterOptions(url))
      const consumer = cluster.consumer.bind(cluster)
      let isWrong = false
      let answers = 0
      const misleading: Cluster['consumer'] = (settings) => {
        const made = consumer(settings)
        const metadata = made.metadata.bind(made)
        const wrong = async (options: Parameters<typeof metadata>[0]): Promise<unknown> => {
          const found = await metadata(options)
          if (!isWrong) return found
          answers += 1
          const topics = [...found.topics].map(([name, one]) => [name, { ...one, id }] as const)
          return { ...found, topics: new Map(topics) }
        }
        return Object.assign(made, { metadata: wrong })
      }
      const seen: string[] = []
      readAll(seen, undefined, Object.assign(cluster, { consumer: misleading }))
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      isWrong = true
      await expect.poll(() => answers).toBeGreaterThan(0)
      isWrong = false
      await put('c')
      await expect.poll(() => seen).toEqual(['a', 'b', 'c'])
    })

    it('is read from the start when the committed offset is too high', async () => {
      const former = readAll([])
      await expect.poll(() => former.all().length).toBe(2)
      await former.group.commit([{ topic, partition: 0, offset: 100, metadata: '' }])
      await former.close()
      await put('a', 'b')
      const seen: string[] = []
      readAll(seen)
      await expect.poll(() => seen).toEqual(['a', 'b'])
    })
  })
})
