import { Admin, ProtocolError } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { Cluster } from '../../src/kafka/cluster.ts'
import { Parts, type Holds, type Part, type PartsOptions } from '../../src/kafka/parts.ts'
import { kafkaPlace } from '../servers/broker-places.ts'
import type { Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { asks, lossyWay } from './lossy.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

describe.skipIf(missing)('Parts', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let topic: string
  const closing: (() => Promise<void> | void)[] = []

  const partsAt = (
    at: string,
    more: Partial<PartsOptions<Part & Holds>> = {},
  ): Parts<Part & Holds> => {
    const parts = new Parts<Part & Holds>({
      cluster: new Cluster({ url: at, clock: systemClock, timeoutMs: 5000, clientId: place.name }),
      groupId: `${place.name}.group`,
      topics: [topic],
      sessionMs: 6000,
      begin: (part) => Object.assign(part, { entries: new Set(), bytes: 0 }),
      arrived: ignore,
      cut: ignore,
      leaving: async () => {},
      gone: ignore,
      trouble: ignore,
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
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 })
    await expect.poll(() => admin.listTopics()).toContain(topic)
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
    await expect.poll(() => begun, { timeout: 20_000 }).toBe(2)
    const former = parts.all()
    const committed = parts.commit(former)
    await parts.group.leave()
    parts.group.join()
    await expect.poll(() => begun, { timeout: 20_000 }).toBe(4)
    const cause = new ProtocolError('UNKNOWN_MEMBER_ID')
    refusal.reject(new Error('refused', { cause }))
    await committed
    expect(former.map(({ isLost }) => isLost)).toEqual([true, true])
    expect(parts.all().map(({ isLost }) => isLost)).toEqual([false, false])
  })

  it('does not begin what was taken from it before it knew how far it is', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const slow = partsAt(way.url)
    const quick = partsAt(url)
    way.hold(asks.offsetFetch)
    slow.group.join()
    await expect.poll(() => way.held(asks.offsetFetch), { timeout: 20_000 }).toBe(1)
    way.hold(asks.joinGroup)
    await admin.removeMembersFromConsumerGroup({
      groupId: `${place.name}.group`,
      members: [{ memberId: slow.group.member.memberId }],
    })
    quick.group.join()
    await expect.poll(() => quick.all().length, { timeout: 20_000 }).toBe(2)
    await expect.poll(() => way.held(asks.joinGroup), { timeout: 20_000 }).toBe(1)
    way.release(asks.offsetFetch)
    way.release(asks.joinGroup)
    const counts = (): number[] => [slow, quick].map((parts) => parts.all().length)
    await expect.poll(counts, { timeout: 20_000 }).toEqual([1, 1])
  })

  it('is who it was until it has heard what is its own as somebody new', async () => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const one = partsAt(way.url)
    const { group } = one
    group.join()
    await expect.poll(() => one.all().length, { timeout: 20_000 }).toBe(2)
    const before = group.member
    way.hold(asks.syncGroup)
    partsAt(url).group.join()
    await expect.poll(() => way.held(asks.syncGroup), { timeout: 20_000 }).toBe(1)
    expect(group.consumer.generationId).toBeGreaterThan(before.generationId)
    expect(group.member).toEqual(before)
    way.release(asks.syncGroup)
    await expect.poll(() => one.all().length, { timeout: 20_000 }).toBe(1)
    expect(group.member.generationId).toBeGreaterThan(before.generationId)
  })
})
