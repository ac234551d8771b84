import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Admin, Producer } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kafkaTap } from '../../src/taps/kafka.ts'
import type { ForeignLetter, Tap } from '../../src/taps/tap.ts'
import { spawn } from '../processes.ts'
import { kafkaPlace, makeTopics } from '../servers/broker-places.ts'
import type { Place } from '../servers/places.ts'
import { backend } from '../servers/servers.ts'
import { inbox } from '../taps/inbox.ts'
import { springHeaders } from '../taps/kafka-headers.ts'

const { url, missing } = backend('kafka')
const unavailable = { code: 'MAILBOX_UNAVAILABLE' }

describe.skipIf(missing)('a tap on a dead letter topic of Kafka', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let producer: Producer
  let dead: string
  let orders: string
  let groupId: string
  const taps: Tap[] = []

  beforeEach(async () => {
    place = kafkaPlace(url)
    dead = `${place.name}.orders.DLT`
    orders = `${place.name}.orders`
    groupId = `${place.name}.tap`
    const settings = { clientId: place.name, bootstrapBrokers: [url] }
    admin = new Admin(settings)
    producer = new Producer(settings)
    await makeTopics(admin, [dead], 1)
    await makeTopics(admin, [orders], 3)
  })

  afterEach(async () => {
    await Promise.all(taps.splice(0).map((tap) => tap.stop()))
    await Promise.all([admin.close(), producer.close()])
    await place.clear()
  })

  const remove = async (topic: string): Promise<void> => {
    await admin.deleteTopics({ topics: [topic] })
    await expect.poll(() => admin.listTopics()).not.toContain(topic)
  }

  const startTap = async (keep: (letter: ForeignLetter) => void): Promise<Tap> => {
    const options = { url, topics: [dead], groupId, sessionMs: 1000, timeoutMs: 2000 }
    const tap = kafkaTap({ ...options, keep: async (letter) => keep(letter) })
    taps.push(tap)
    await tap.start()
    return tap
  }

  const addDeadRecord = async (body: string): Promise<void> => {
    const headers = new Map(
      Object.entries(springHeaders(orders, 2)).map(([name, value]) => [Buffer.from(name), value]),
    )
    // Without a key, so that the record returns to its original partition.
    const message = { topic: dead, value: Buffer.from(body), headers }
    await producer.send({ messages: [message] })
  }

  const committed = async (): Promise<number> => {
    const [group] = await admin.listConsumerGroupOffsets({ groups: [groupId] })
    return Number(group?.topics[0]?.partitions[0]?.committedOffset ?? -1)
  }

  /** The number of records per partition. */
  const countByPartition = async (topic: string): Promise<number[]> => {
    const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true })
    const count = topics.get(topic)!.partitionsCount
    const partitions = Array.from({ length: count }, (_, partitionIndex) => ({
      partitionIndex,
      timestamp: -1n,
    }))
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
    return found!.partitions
      .toSorted((a, b) => a.partitionIndex - b.partitionIndex)
      .map(({ offset }) => Number(offset))
  }

  it('that was paused past its session commits nothing, and stores the same ids as its successor', async () => {
    for (const body of ['one', 'two', 'three']) await addDeadRecord(body)
    const script = join(import.meta.dirname, 'tap-process.ts')
    const child = spawn(process.execPath, [script, url, dead, groupId], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    try {
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
      const next = async (): Promise<string> => (await lines.next()).value as string
      const ids = [0, 1, 2].map((offset) => `${dead}:0:${offset}`)
      for (const id of ids) expect(await next()).toBe(`keeping ${id}`)
      child.kill('SIGSTOP')
      const kept = inbox<string>()
      await startTap(({ messageId }) => kept.put(messageId))
      for (const id of ids) expect(await kept.next()).toBe(id)
      await addDeadRecord('four')
      expect(await kept.next()).toBe(`${dead}:0:3`)
      await expect.poll(committed).toBe(4)
      child.stdin.write('continue\n')
      child.kill('SIGCONT')
      for (const id of ids) expect(await next()).toBe(`kept ${id}`)
      // The process has noticed that it was expelled once it has joined again.
      const members = async (): Promise<number> =>
        (await admin.describeGroups({ groups: [groupId] })).get(groupId)!.members.size
      await expect.poll(members).toBe(2)
      const ended = once(child, 'exit')
      child.stdin.end()
      expect(await ended).toEqual([0, null])
      expect(await committed()).toBe(4)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('fails to return a letter to a deleted topic, and returns it once the topic exists again', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap((letter) => kept.put(letter))
    await addDeadRecord('one')
    const letter = await kept.next()
    await remove(orders)
    await expect(tap.returnToSource(letter, 1)).rejects.toMatchObject(unavailable)
    expect(await admin.listTopics()).not.toContain(orders)
    await makeTopics(admin, [orders], 3)
    await expect.poll(() => tryReturn(tap, letter)).toBe(true)
    expect(await countByPartition(orders)).toEqual([0, 0, 1])
  })

  it('returns a letter to an existing partition when its own is gone', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap((letter) => kept.put(letter))
    await addDeadRecord('one')
    const letter = await kept.next()
    await remove(orders)
    await makeTopics(admin, [orders], 1)
    await expect.poll(() => tryReturn(tap, letter)).toBe(true)
    expect(await countByPartition(orders)).toEqual([1])
  })

  it('returns a letter to its partition after partitions were added and retention deleted the record', async () => {
    const kept = inbox<ForeignLetter>()
    const tap = await startTap((letter) => kept.put(letter))
    await addDeadRecord('one')
    const letter = await kept.next()
    await admin.createPartitions({ topics: [{ name: orders, count: 6, assignments: null }] })
    const partitions = [{ partition: 0, offset: 1n }]
    await admin.deleteRecords({ topics: [{ name: dead, partitions }] })
    await tap.returnToSource(letter, 1)
    await expect.poll(() => countByPartition(orders)).toEqual([0, 0, 1, 0, 0, 0])
  })
})

const tryReturn = (tap: Tap, letter: ForeignLetter): Promise<boolean> =>
  tap.returnToSource(letter, 1).then(
    () => true,
    () => false,
  )
