import { Admin, ProtocolError } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster, type ClusterOptions } from '../../../src/backends/kafka/cluster.ts'
import {
  Parts,
  type Holds,
  type Part,
  type PartsOptions,
} from '../../../src/backends/kafka/parts.ts'
import { done } from '../../../src/backends/kafka/progress.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'
import { asks, lossyWay } from './lossy.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

describe.skipIf(missing)('Parts', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let topic: string
  const closing: (() => Promise<void> | void)[] = []

  const about = (at: string): ClusterOptions => ({
    url: at,
    clock: systemClock,
    timeoutMs: 5000,
    clientId: place.name,
  })
  /** What it knows of topics is old at once, as it is when others take long to join. */
  const forgetful = (at: string): Cluster =>
    new Cluster({ ...about(at), connection: { metadataMaxAge: 1 } })

  const partsAt = (
    at: string,
    more: Partial<PartsOptions<Part & Holds>> = {},
  ): Parts<Part & Holds> => {
    const parts = new Parts<Part & Holds>({
      cluster: new Cluster(about(at)),
      groupId: `${place.name}.group`,
      topics: [topic],
      sessionMs: 6000,
      begin: (part) => Object.assign(part, { entries: new Set(), bytes: 0 }),
      arrived: ignore,
      cut: ignore,
      leaving: async () => {},
      gone: ignore,
      onError: ignore,
      well: ignore,
      ...more,
    })
    closing.unshift(() => parts.close())
    return parts
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

  it('takes nothing from a membership for what the former one is refused', async () => {
    const refusal = Promise.withResolvers<void>()
    let begun = 0
    const parts = partsAt(url, {
      begin: (part) => {
        begun += 1
        return Object.assign(part, { entries: new Set(), bytes: 0 })
      },
      commit: () => refusal.promise,
    })
    parts.group.join()
    await expect.poll(() => begun).toBe(2)
    const former = parts.all()
    const committed = parts.commit(former)
    await parts.group.leave()
    parts.group.join()
    await expect.poll(() => begun).toBe(4)
    const cause = new ProtocolError('UNKNOWN_MEMBER_ID')
    refusal.reject(new Error('refused', { cause }))
    await committed
    expect(former.map(({ isLost }) => isLost)).toEqual([true, true])
    expect(parts.all().map(({ isLost }) => isLost)).toEqual([false, false])
  })

  it('reads partitions that are added later, whoever of the group gets them', async () => {
    const [one, other] = [partsAt(url, { lookEveryMs: 200 }), partsAt(url, { lookEveryMs: 200 })]
    const counts = (): number[] => [one, other].map((parts) => parts.all().length)
    const held = (): string =>
      [one, other]
        .flatMap((parts) => parts.all().map(({ partition }) => partition))
        .toSorted((a, b) => a - b)
        .join()
    for (const { group } of [one, other]) group.join()
    await expect.poll(counts).toEqual([1, 1])
    await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
    await expect.poll(held).toBe('0,1,2,3,4')
  })

  it('reads partitions that are added while it joins', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const parts = partsAt(way.url, { cluster: forgetful(way.url), lookEveryMs: 200 })
    way.hold(asks.syncGroup)
    parts.group.join()
    await expect.poll(() => way.held(asks.syncGroup)).toBe(1)
    await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
    way.release(asks.syncGroup)
    await expect.poll(() => parts.all().length).toBe(5)
  })

  it('does not begin what was taken from it before it knew how far it is', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const slow = partsAt(way.url)
    const quick = partsAt(url)
    way.hold(asks.offsetFetch)
    slow.group.join()
    await expect.poll(() => way.held(asks.offsetFetch)).toBe(1)
    way.hold(asks.joinGroup)
    await admin.removeMembersFromConsumerGroup({
      groupId: `${place.name}.group`,
      members: [{ memberId: slow.group.member.memberId }],
    })
    quick.group.join()
    await expect.poll(() => quick.all().length).toBe(2)
    await expect.poll(() => way.held(asks.joinGroup)).toBe(1)
    way.release(asks.offsetFetch)
    way.release(asks.joinGroup)
    const counts = (): number[] => [slow, quick].map((parts) => parts.all().length)
    await expect.poll(counts).toEqual([1, 1])
  })

  it('stays in the group when it comes back, also if it left while it was about to say that it is there', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const one = partsAt(way.url, { cluster: forgetful(way.url), sessionMs: 1000 })
    one.group.join()
    await expect.poll(() => one.all().length).toBe(2)
    way.hold(asks.metadata)
    await expect.poll(() => way.held(asks.metadata)).toBeGreaterThan(0)
    const left = one.group.leave()
    one.group.join()
    way.release(asks.metadata)
    await left
    await expect.poll(() => one.all().length).toBe(2)
    const other = partsAt(url)
    other.group.join()
    const counts = (): number[] => [one, other].map((parts) => parts.all().length)
    await expect.poll(counts).toEqual([1, 1])
  })

  it('is who it was until it has heard what is its own as somebody new', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const one = partsAt(way.url)
    const { group } = one
    group.join()
    await expect.poll(() => one.all().length).toBe(2)
    const before = group.member
    way.hold(asks.syncGroup)
    partsAt(url).group.join()
    await expect.poll(() => way.held(asks.syncGroup)).toBe(1)
    expect(group.consumer.generationId).toBeGreaterThan(before.generationId)
    expect(group.member).toEqual(before)
    way.release(asks.syncGroup)
    await expect.poll(() => one.all().length).toBe(1)
    expect(group.member.generationId).toBeGreaterThan(before.generationId)
  })

  describe('a topic that never had so much', () => {
    /** What is read is done at once. */
    const reading = (
      seen: string[],
      size = (): number => 0,
      cluster = new Cluster(about(url)),
    ): Parts<Part & Holds> => {
      const entries = Object.defineProperty({ size: 0 }, 'size', { get: size })
      const parts = partsAt(url, {
        cluster,
        begin: (part) => Object.assign(part, { entries, bytes: 0 }),
        arrived: ({ progress }, records) => {
          for (const { offset, value } of records) {
            progress.mark(offset, done)
            seen.push(value.toString())
          }
        },
      })
      parts.group.join()
      return parts
    }
    const put = async (...texts: string[]): Promise<void> => {
      const sender = new Sender(new Cluster(about(url)))
      const written = texts.map((text) => ({ value: Buffer.from(text), headers: new Map() }))
      await Promise.all(written.map((one) => sender.send({ topic, partition: 0, written: one })))
      await sender.close()
    }
    const makeAnew = async (): Promise<void> => {
      await admin.deleteTopics({ topics: [topic] })
      await expect.poll(() => admin.listTopics()).not.toContain(topic)
      await makeTopics(admin, [topic], 2)
    }

    it('is read from its beginning when it was made anew meanwhile', async () => {
      const seen: string[] = []
      const parts = reading(seen)
      await put('a', 'b', 'c')
      await expect.poll(() => seen.length).toBe(3)
      await makeAnew()
      await put('d', 'e')
      await expect.poll(() => seen).toEqual(['a', 'b', 'c', 'd', 'e'])
      await parts.commit(parts.all())
      const [first] = await parts.group.positions([{ topic, partition: 0 }])
      expect(first?.offset).toBe(2)
    })

    it('also when it has more than that by the time that it is read', async () => {
      const seen: string[] = []
      let size = 0
      const parts = reading(seen, () => size)
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      size = Infinity
      await makeAnew()
      await put('c', 'd', 'e')
      size = 0
      parts.wake()
      await expect.poll(() => seen).toEqual(['a', 'b', 'c', 'd', 'e'])
    })

    it('is where the group begins, though it was said before that we were further', async () => {
      const seen: string[] = []
      let size = 0
      const parts = reading(seen, () => size)
      const position = async (): Promise<number | undefined> =>
        (await parts.group.positions([{ topic, partition: 0 }]))[0]?.offset
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      size = Infinity
      await makeAnew()
      await parts.commit(parts.all())
      expect(await position()).toBe(2)
      size = 0
      parts.wake()
      await expect.poll(position).toBe(0)
    })

    it('is read from its end when it had more before: what is left is known', async () => {
      const seen: string[] = []
      const parts = reading(seen)
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      // As if there had been others behind these, before the broker lost them.
      const former = parts.all().find(({ partition }) => partition === 0)!
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
    it.each(wrongIds)('is not meant when a broker says that its id is %s', async (id) => {
      const cluster = new Cluster(about(url))
      const consumer = cluster.consumer.bind(cluster)
      let isWrong = false
      let told = 0
      const misled: Cluster['consumer'] = (settings) => {
        const made = consumer(settings)
        const metadata = made.metadata.bind(made)
        const wrong = async (options: Parameters<typeof metadata>[0]): Promise<unknown> => {
          const found = await metadata(options)
          if (!isWrong) return found
          told += 1
          const topics = [...found.topics].map(([name, one]) => [name, { ...one, id }] as const)
          return { ...found, topics: new Map(topics) }
        }
        return Object.assign(made, { metadata: wrong })
      }
      const seen: string[] = []
      reading(seen, undefined, Object.assign(cluster, { consumer: misled }))
      await put('a', 'b')
      await expect.poll(() => seen.length).toBe(2)
      isWrong = true
      await expect.poll(() => told).toBeGreaterThan(0)
      isWrong = false
      await put('c')
      await expect.poll(() => seen).toEqual(['a', 'b', 'c'])
    })

    it('is read from its beginning when the broker says that we were further', async () => {
      const former = reading([])
      await expect.poll(() => former.all().length).toBe(2)
      await former.group.commit([{ topic, partition: 0, offset: 100, note: '' }])
      await former.close()
      await put('a', 'b')
      const seen: string[] = []
      reading(seen)
      await expect.poll(() => seen).toEqual(['a', 'b'])
    })
  })
})
