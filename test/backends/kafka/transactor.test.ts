import { Admin, type listTransactionsV1 } from '@platformatic/kafka'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { askBroker, Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Group, type Position } from '../../../src/backends/kafka/group.ts'
import type { Outgoing } from '../../../src/backends/kafka/sender.ts'
import { Transactor, type Offsets } from '../../../src/backends/kafka/transactor.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateKafka } from '../../servers/private.ts'
import { backend } from '../../servers/servers.ts'
import { asks, lossyWay, type Lossy } from './lossy.ts'
import { textsIn } from './texts-in.ts'

const { url, missing } = backend('kafka')
const ignore = (): void => {}

describe.skipIf(missing)('Transactor', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let one: string
  let two: string
  const closing: (() => Promise<void> | void)[] = []

  const clusterAt = (at: string, timeoutMs = 5000): Cluster =>
    new Cluster({ url: at, clock: systemClock, timeoutMs, clientId: place.name })

  const transactor = (at = url, timeoutMs?: number): Transactor => {
    const made = new Transactor(clusterAt(at, timeoutMs), `${place.name}.tx`)
    closing.unshift(() => made.close())
    return made
  }

  const lossy = async (): Promise<Lossy> => {
    const way = await lossyWay(url)
    closing.push(() => way.close())
    return way
  }

  const outgoing = (topic: string, text: string | null, partition?: number): Outgoing => {
    const key = Buffer.from('k')
    const headers = new Map<Buffer, Buffer>()
    const written =
      text === null ? { value: null, headers, key } : { value: Buffer.from(text), headers, key }
    return { topic, written, ...(partition === undefined ? {} : { partition }) }
  }

  /** What a reader sees that waits for the end of transactions, which the broker marks a moment after it has answered. */
  const seen = (topic: string, partition = 0): Promise<string[]> =>
    textsIn(clusterAt(url), { topic, partition })

  beforeEach(async () => {
    place = kafkaPlace(url)
    one = `${place.name}.one`
    two = `${place.name}.two`
    admin = new Admin({ clientId: place.name, bootstrapBrokers: [url] })
    await makeTopics(admin, [one, two], 2)
  })

  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await admin.close()
    await place.clear()
  })

  it('sends records to several topics at once, one transaction after the other', async () => {
    const tx = transactor()
    await Promise.all([
      tx.carry([outgoing(one, 'a', 0), outgoing(two, 'b', 1)]),
      tx.carry([outgoing(one, 'c', 0)]),
      tx.carry([]),
    ])
    expect(await seen(one)).toEqual(['a', 'c'])
    expect(await seen(two, 1)).toEqual(['b'])
  })

  it('sends more than a topic takes as one', async () => {
    const large = outgoing(one, 'x'.repeat(700_000), 0)
    await transactor().carry([large, large])
    expect((await seen(one)).map(({ length }) => length)).toEqual([700_000, 700_000])
  })

  it('sends tombstones', async () => {
    await transactor().carry([outgoing(one, null, 0)])
    const consumer = clusterAt(url).consumer({ groupId: place.name })
    closing.push(() => consumer.close(true))
    consumer.topics.track(one)
    const { topics } = await consumer.metadata({ topics: [one] })
    const { id, partitions } = topics.get(one)!
    const part = { partition: 0, fetchOffset: 0n, partitionMaxBytes: 1000 }
    const { responses } = await consumer.fetch({
      node: partitions[0]!.leader,
      topics: [
        { topicId: id, partitions: [{ ...part, currentLeaderEpoch: -1, lastFetchedEpoch: -1 }] },
      ],
    })
    const [record] = responses[0]?.partitions[0]?.records?.[0]?.records ?? []
    expect([record?.key?.toString(), record?.value]).toEqual(['k', null])
  })

  it('sends nothing of what cannot be sent whole, and goes on with the next', async () => {
    const tx = transactor()
    await tx.carry([outgoing(one, 'before', 0)])
    const tooLarge = outgoing(two, 'x'.repeat(2_000_000), 0)
    await expect(tx.carry([outgoing(one, 'never', 0), tooLarge])).rejects.toMatchObject({
      code: 'TOO_LARGE',
    })
    await expect(tx.carry([outgoing(one, 'never', 0), tooLarge])).rejects.toThrow()
    await tx.carry([outgoing(one, 'after', 0)])
    expect(await seen(one)).toEqual(['before', 'after'])
  })

  it('leaves what was committed between two that came to nothing', async () => {
    const tx = transactor()
    const tooLarge = (topic: string): Outgoing => outgoing(topic, 'x'.repeat(2_000_000), 0)
    await expect(tx.carry([outgoing(one, 'never', 0), tooLarge(two)])).rejects.toThrow()
    await tx.carry([outgoing(one, 'between', 0)])
    // The broker marks its end in the partition, though it has no records there.
    await expect(tx.carry([tooLarge(one)])).rejects.toThrow()
    await tx.carry([outgoing(one, 'after', 0)])
    expect(await seen(one)).toEqual(['between', 'after'])
  })

  it('is taken over by whoever comes later with the same id', async () => {
    const first = transactor()
    await first.carry([outgoing(one, 'first', 0)])
    const second = transactor()
    await second.open()
    const lost = { code: 'LEASE_LOST' }
    await expect(first.carry([outgoing(one, 'late', 0)])).rejects.toMatchObject(lost)
    await expect(first.carry([outgoing(one, 'later', 0)])).rejects.toMatchObject(lost)
    await second.carry([outgoing(one, 'second', 0)])
    await expect.poll(() => seen(one)).toEqual(['first', 'second'])
  })

  it('sends once what was committed while the answer was lost', async () => {
    const way = await lossy()
    const tx = transactor(way.url, 1500)
    await tx.open()
    way.lose(asks.endTransaction)
    const carried = tx.carry([outgoing(one, 'a', 0)])
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    await expect.poll(() => seen(one)).toEqual(['a'])
    way.heal()
    await carried
    await tx.carry([outgoing(one, 'b', 0)])
    expect(await seen(one)).toEqual(['a', 'b'])
  })

  it('knows what was committed when it is taken over in doubt', async () => {
    const way = await lossy()
    const [heard, unheard] = [transactor(way.url, 1500), transactor()]
    await heard.open()
    way.lose(asks.endTransaction)
    const carried = heard.carry([outgoing(one, 'a', 0)])
    await expect.poll(() => seen(one)).toEqual(['a'])
    await unheard.open()
    way.heal()
    await carried
    await expect(heard.carry([outgoing(one, 'b', 0)])).rejects.toMatchObject({ code: 'LEASE_LOST' })
  })

  it('knows what was not committed when it is taken over in doubt', async () => {
    const way = await lossy()
    const [first, second] = [transactor(way.url, 1500), transactor()]
    await first.open()
    way.stop(asks.endTransaction)
    const carried = first.carry([outgoing(one, 'a', 0)])
    const rejected = expect(carried).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    await second.carry([outgoing(one, 'b', 0)])
    way.heal()
    await rejected
    expect(await seen(one)).toEqual(['b'])
  })

  it('stays in doubt when it is closed before the broker answers', async () => {
    const way = await lossy()
    const tx = transactor(way.url, 500)
    await tx.open()
    way.stop(asks.endTransaction)
    const carried = tx.carry([outgoing(one, 'a', 0)])
    const rejected = expect(carried).rejects.toThrow(/before the broker said/)
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    await tx.close()
    await rejected
    await expect(tx.carry([outgoing(one, 'b', 0)])).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('stays in doubt when nobody waits for the answer any more, and goes on later', async () => {
    const way = await lossy()
    const tx = transactor(way.url, 500)
    await tx.open()
    way.stop(asks.endTransaction)
    const stop = new AbortController()
    const carried = tx.carry([outgoing(one, 'a', 0)], undefined, stop.signal)
    const rejected = expect(carried).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    stop.abort()
    await rejected
    way.heal()
    await tx.carry([outgoing(one, 'b', 0)])
    expect((await seen(one)).at(-1)).toBe('b')
  })

  describe('with the offsets of a group', () => {
    let group: Group
    let count: number

    beforeEach(async () => {
      count = 0
      group = new Group({
        cluster: clusterAt(url),
        groupId: `${place.name}.group`,
        topics: [one],
        sessionMs: 6000,
        assigned: (places) => (count += places.length),
        revoked: async () => {},
        lost: ignore,
        onError: ignore,
      })
      closing.unshift(() => group.close())
      group.join()
      await expect.poll(() => count).toBe(2)
    })

    const at = (partition: number, offset: number, note: string) => ({
      topic: one,
      partition,
      offset,
      note,
    })

    const offsets = (...positions: Position[]): Offsets => {
      const { member } = group
      return { group, member, positions }
    }

    it('commits several partitions with their notes', async () => {
      const positions = [at(0, 5, 'x,2'), at(1, 7, '')]
      await transactor().carry([outgoing(two, 'a', 0)], offsets(...positions))
      await expect.poll(() => group.positions(positions)).toEqual(positions)
      expect(await seen(two)).toEqual(['a'])
      await transactor().carry([], offsets(at(0, 6, 'x')))
      await expect.poll(() => group.positions([at(0, 0, '')])).toEqual([at(0, 6, 'x')])
    })

    it('sends nothing when we were somebody else in the group as the offsets were ours', async () => {
      const tx = transactor()
      const before = offsets(at(0, 5, ''))
      await group.leave()
      group.join()
      await expect.poll(() => count).toBe(4)
      const refused = tx.carry([outgoing(two, 'a', 0)], before)
      await expect(refused).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
      await tx.carry([outgoing(two, 'b', 0)], offsets(at(0, 1, '')))
      expect(await seen(two)).toEqual(['b'])
      await expect.poll(() => group.positions([at(0, 0, '')])).toEqual([at(0, 1, '')])
    })
  })
})

describe.skipIf(lacksPrivate.kafka())('Transactor that the broker forgets', () => {
  let server: PrivateServer
  let cluster: Cluster
  let admin: Admin

  beforeAll(async () => {
    server = await privateKafka({
      'transactional.id.expiration.ms': '1500',
      'transaction.remove.expired.transaction.cleanup.interval.ms': '200',
    })
    cluster = new Cluster({
      url: server.url,
      clock: systemClock,
      timeoutMs: 10_000,
      clientId: 'forgotten',
    })
    admin = cluster.admin()
    await makeTopics(admin, ['one'])
  }, 120_000)

  afterAll(async () => {
    await admin.close()
    await server.remove()
  })

  const outgoing: Outgoing = {
    topic: 'one',
    partition: 0,
    written: { value: Buffer.from('a'), headers: new Map() },
  }

  /** There is one broker: it knows all ids. */
  const ids = async (): Promise<string[]> => {
    const [node = -1] = (await admin.metadata({ topics: [] })).brokers.keys()
    const asked: Parameters<typeof listTransactionsV1.createRequest> = [[], [], -1n, null]
    const known = await askBroker<
      typeof asked,
      ReturnType<typeof listTransactionsV1.parseResponse>
    >(admin, node, 'ListTransactions', asked)
    return known.transactionStates.map(({ transactionalId }) => transactionalId)
  }

  const forgets = (id: string): Promise<void> =>
    expect.poll(ids, { timeout: 30_000, interval: 200 }).not.toContain(id)

  it('goes on', { timeout: 90_000 }, async () => {
    const tx = new Transactor(cluster, 'idle')
    await tx.carry([outgoing])
    await forgets('idle')
    // The first one may hear of it; it can be done again.
    await tx.carry([outgoing]).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
      return tx.carry([outgoing])
    })
    await tx.close()
  })

  it('stays lost to whoever came later with the same id', { timeout: 90_000 }, async () => {
    const [first, second] = [new Transactor(cluster, 'taken'), new Transactor(cluster, 'taken')]
    await first.carry([outgoing])
    await forgets('taken')
    await second.carry([outgoing])
    await expect(first.carry([outgoing])).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await Promise.all([first.close(), second.close()])
  })
})
