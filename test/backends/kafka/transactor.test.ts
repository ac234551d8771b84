import { Admin, listTransactionsV1 } from '@platformatic/kafka'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster, requestBroker } from '../../../src/backends/kafka/cluster.ts'
import {
  Group,
  listCommittedOffsets,
  type CommittedOffset,
} from '../../../src/backends/kafka/group.ts'
import type { OutgoingRecord } from '../../../src/backends/kafka/sender.ts'
import { Transactor, type TransactionOffsets } from '../../../src/backends/kafka/transactor.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import type { PrivateServer } from '../../servers/control.ts'
import { lacksPrivate, privateKafka } from '../../servers/private.ts'
import { backend } from '../../servers/servers.ts'
import { apiKeys, lossyProxy, type Lossy } from './lossy-proxy.ts'
import { readValues } from './read-values.ts'

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
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    return proxy
  }

  const outgoing = (topic: string, text: string | null, partition?: number): OutgoingRecord => {
    const key = Buffer.from('k')
    const headers = new Map<Buffer, Buffer>()
    const record = { value: text === null ? null : Buffer.from(text), headers, key }
    return { topic, record, ...(partition === undefined ? {} : { partition }) }
  }

  /** The committed values. Waits for the end of transactions. */
  const committed = (topic: string, partition = 0): Promise<string[]> =>
    readValues(clusterAt(url), { topic, partition })

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

  it('sends records to several topics, one transaction after the other', async () => {
    const tx = transactor()
    await Promise.all([
      tx.send([outgoing(one, 'a', 0), outgoing(two, 'b', 1)]),
      tx.send([outgoing(one, 'c', 0)]),
      tx.send([]),
    ])
    expect(await committed(one)).toEqual(['a', 'c'])
    expect(await committed(two, 1)).toEqual(['b'])
  })

  it('sends more records than fit into one batch', async () => {
    const large = outgoing(one, 'x'.repeat(700_000), 0)
    await transactor().send([large, large])
    expect((await committed(one)).map(({ length }) => length)).toEqual([700_000, 700_000])
  })

  it('sends tombstones', async () => {
    await transactor().send([outgoing(one, null, 0)])
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

  it('sends nothing of a transaction that fails and continues with the next one', async () => {
    const tx = transactor()
    await tx.send([outgoing(one, 'before', 0)])
    const tooLarge = outgoing(two, 'x'.repeat(2_000_000), 0)
    await expect(tx.send([outgoing(one, 'never', 0), tooLarge])).rejects.toMatchObject({
      code: 'TOO_LARGE',
    })
    await expect(tx.send([outgoing(one, 'never', 0), tooLarge])).rejects.toThrow()
    await tx.send([outgoing(one, 'after', 0)])
    expect(await committed(one)).toEqual(['before', 'after'])
  })

  it('keeps a committed transaction between two aborted ones', async () => {
    const tx = transactor()
    const tooLarge = (topic: string): OutgoingRecord => outgoing(topic, 'x'.repeat(2_000_000), 0)
    await expect(tx.send([outgoing(one, 'never', 0), tooLarge(two)])).rejects.toThrow()
    await tx.send([outgoing(one, 'between', 0)])
    // The broker writes an abort marker to the partition, although it has no records there.
    await expect(tx.send([tooLarge(one)])).rejects.toThrow()
    await tx.send([outgoing(one, 'after', 0)])
    expect(await committed(one)).toEqual(['between', 'after'])
  })

  it('loses its id to a later transactor with the same id', async () => {
    const first = transactor()
    await first.send([outgoing(one, 'first', 0)])
    const second = transactor()
    await second.open()
    const lost = { code: 'LEASE_LOST' }
    await expect(first.send([outgoing(one, 'late', 0)])).rejects.toMatchObject(lost)
    await expect(first.send([outgoing(one, 'later', 0)])).rejects.toMatchObject(lost)
    await second.send([outgoing(one, 'second', 0)])
    await expect.poll(() => committed(one)).toEqual(['first', 'second'])
  })

  it('sends once when the answer to the commit was lost', async () => {
    const proxy = await lossy()
    const tx = transactor(proxy.url, 1500)
    await tx.open()
    proxy.lose(apiKeys.endTransaction)
    const carried = tx.send([outgoing(one, 'a', 0)])
    await expect.poll(() => proxy.lost()).toBeGreaterThan(0)
    await expect.poll(() => committed(one)).toEqual(['a'])
    proxy.heal()
    await carried
    await tx.send([outgoing(one, 'b', 0)])
    expect(await committed(one)).toEqual(['a', 'b'])
  })

  it('recognizes a committed transaction after it lost its id', async () => {
    const proxy = await lossy()
    const [first, second] = [transactor(proxy.url, 1500), transactor()]
    await first.open()
    proxy.lose(apiKeys.endTransaction)
    const carried = first.send([outgoing(one, 'a', 0)])
    await expect.poll(() => committed(one)).toEqual(['a'])
    await second.open()
    proxy.heal()
    await carried
    await expect(first.send([outgoing(one, 'b', 0)])).rejects.toMatchObject({ code: 'LEASE_LOST' })
  })

  it('recognizes an aborted transaction after it lost its id', async () => {
    const proxy = await lossy()
    const [first, second] = [transactor(proxy.url, 1500), transactor()]
    await first.open()
    proxy.stop(apiKeys.endTransaction)
    const carried = first.send([outgoing(one, 'a', 0)])
    const rejected = expect(carried).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await expect.poll(() => proxy.lost()).toBeGreaterThan(0)
    await second.send([outgoing(one, 'b', 0)])
    proxy.heal()
    await rejected
    expect(await committed(one)).toEqual(['b'])
  })

  it('rejects when it is closed before the broker answers', async () => {
    const proxy = await lossy()
    const tx = transactor(proxy.url, 500)
    await tx.open()
    proxy.stop(apiKeys.endTransaction)
    const carried = tx.send([outgoing(one, 'a', 0)])
    const rejected = expect(carried).rejects.toThrow(/before the broker answered/)
    await expect.poll(() => proxy.lost()).toBeGreaterThan(0)
    await tx.close()
    await rejected
    await expect(tx.send([outgoing(one, 'b', 0)])).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('rejects when its signal aborts before the broker answers, and continues later', async () => {
    const proxy = await lossy()
    const tx = transactor(proxy.url, 500)
    await tx.open()
    proxy.stop(apiKeys.endTransaction)
    const stop = new AbortController()
    const carried = tx.send([outgoing(one, 'a', 0)], undefined, stop.signal)
    const rejected = expect(carried).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await expect.poll(() => proxy.lost()).toBeGreaterThan(0)
    stop.abort()
    await rejected
    proxy.heal()
    await tx.send([outgoing(one, 'b', 0)])
    expect((await committed(one)).at(-1)).toBe('b')
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
        onAssigned: (partitions) => (count += partitions.length),
        onRevoked: async () => {},
        onLost: ignore,
        onError: ignore,
      })
      closing.unshift(() => group.close())
      group.join()
      await expect.poll(() => count).toBe(2)
    })

    const at = (partition: number, offset: number, metadata: string): CommittedOffset => ({
      topic: one,
      partition,
      offset,
      metadata,
    })

    const withOffsets = (...offsets: CommittedOffset[]): TransactionOffsets => {
      const { membership } = group
      return { group, membership, offsets }
    }
    const stored = (...partitions: CommittedOffset[]): Promise<CommittedOffset[]> =>
      listCommittedOffsets(admin, `${place.name}.group`, partitions)

    it('commits several partitions with their metadata', async () => {
      const positions = [at(0, 5, 'x,2'), at(1, 7, '')]
      await transactor().send([outgoing(two, 'a', 0)], withOffsets(...positions))
      await expect.poll(() => stored(...positions)).toEqual(positions)
      expect(await committed(two)).toEqual(['a'])
      await transactor().send([], withOffsets(at(0, 6, 'x')))
      await expect.poll(() => stored(at(0, 0, ''))).toEqual([at(0, 6, 'x')])
    })

    it('sends nothing when the membership of the offsets is not current', async () => {
      const tx = transactor()
      const before = withOffsets(at(0, 5, ''))
      const { memberId } = group.membership
      const groupId = `${place.name}.group`
      await admin.removeMembersFromConsumerGroup({ groupId, members: [{ memberId }] })
      await expect.poll(() => count).toBe(4)
      const refused = tx.send([outgoing(two, 'a', 0)], before)
      await expect(refused).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
      await tx.send([outgoing(two, 'b', 0)], withOffsets(at(0, 1, '')))
      expect(await committed(two)).toEqual(['b'])
      await expect.poll(() => stored(at(0, 0, ''))).toEqual([at(0, 1, '')])
    })
  })
})

describe.skipIf(lacksPrivate.kafka())('Transactor whose id has expired on the broker', () => {
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

  const outgoing: OutgoingRecord = {
    topic: 'one',
    partition: 0,
    record: { value: Buffer.from('a'), headers: new Map() },
  }

  /** The transactional ids that the only broker knows. */
  const ids = async (): Promise<string[]> => {
    const [node = -1] = (await admin.metadata({ topics: [] })).brokers.keys()
    const known = await requestBroker(admin, node, listTransactionsV1.api, [], [], -1n, null)
    return known.transactionStates.map(({ transactionalId }) => transactionalId)
  }

  const expires = (id: string): Promise<void> =>
    expect.poll(ids, { timeout: 30_000, interval: 200 }).not.toContain(id)

  it('continues', { timeout: 90_000 }, async () => {
    const tx = new Transactor(cluster, 'idle')
    await tx.send([outgoing])
    await expires('idle')
    // The first send may fail and can be repeated.
    await tx.send([outgoing]).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
      return tx.send([outgoing])
    })
    await tx.close()
  })

  it('loses its id to a later transactor with the same id', { timeout: 90_000 }, async () => {
    const [first, second] = [new Transactor(cluster, 'taken'), new Transactor(cluster, 'taken')]
    await first.send([outgoing])
    await expires('taken')
    await second.send([outgoing])
    await expect(first.send([outgoing])).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await Promise.all([first.close(), second.close()])
  })
})
