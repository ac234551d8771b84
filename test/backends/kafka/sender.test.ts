import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import {
  partitionForKey,
  Sender,
  splitBySize,
  toMessage,
  type OutgoingRecord,
} from '../../../src/backends/kafka/sender.ts'
import { createTopic } from '../../../src/backends/kafka/topics.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'
import { apiKeys, lossyProxy } from './lossy-proxy.ts'

const { url, missing } = backend('kafka')

const outgoing = (topic: string, size: number, partition?: number): OutgoingRecord => ({
  topic,
  record: { value: Buffer.alloc(size, 'x'), headers: new Map() },
  ...(partition === undefined ? {} : { partition }),
})

const lengths = (all: readonly OutgoingRecord[]): number[] =>
  [...splitBySize(all)].map(({ length }) => length)

describe('splitBySize', () => {
  it('splits records into requests of at most one megabyte, in order', () => {
    const all = Array.from({ length: 25 }, (_, n) => outgoing('t', 99_000, n % 3))
    expect(lengths(all)).toEqual([10, 10, 5])
    expect([...splitBySize(all)].flat()).toEqual(all)
    expect(lengths([])).toEqual([])
  })

  it('sends a record that is too large alone', () => {
    const all = [outgoing('t', 5, 0), outgoing('t', 3_000_000, 0), outgoing('t', 5, 0)]
    expect(lengths(all)).toEqual([1, 1, 1])
  })
})

/** Keys in hex with their hash by `Utils.murmur2` of the Java client 4.2.1. */
const vectors: readonly (readonly [key: string, hash: number])[] = [
  ['', 275646681],
  ['61', -1563381124],
  ['6162', 316155434],
  ['616263', 479470107],
  ['61626364', -1323649548],
  ['6b6579', -1079937367],
  ['6f726465722d3432', 501153024],
  ['4772c3bcc39f65', 1190824359],
  ['e697a5e69cac', -700811021],
  ['b9c5619afba7bc34d30643feab', -634221621],
  ['9262bf29c69a5b9d233faf27b01b8e', 1432992285],
  ['f59208740b8f6871058ff50df0404986c894b62021fb22109161', -817982621],
  ['7c815171bb60edce8bc8c1199df06481f2', -1272410830],
  ['73e83ebde336', -1075220500],
  ['1780fc103a95c98764511d281b2242791359e6d057faf6a33ceeef9e128908', -35396729],
  ['8c', -1326909658],
  ['48ee8a2b9619e33c55031737e586a2', -1945869825],
]

describe('partitionForKey', () => {
  it.each(vectors)('returns the partition of the Java producer for the key %s', (hex, hash) => {
    const key = Buffer.from(hex, 'hex')
    const positive = hash & 0x7fffffff
    for (const count of [1, 2, 3, 5, 6, 7, 12, 100])
      expect(partitionForKey(key, count)).toBe(positive % count)
    // The client takes the partition of a message modulo the number of partitions.
    const sent = toMessage({ topic: 't', record: { key, value: key, headers: new Map() } })
    expect(sent.partition).toBe(positive)
  })
})

describe.skipIf(missing)('Sender', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  const closing: (() => Promise<void> | void)[] = []

  const sender = (at = url, timeoutMs = 10_000): Sender => {
    const { name: clientId } = bench
    const made = new Sender(new Cluster({ url: at, clock: systemClock, timeoutMs, clientId }))
    closing.unshift(() => made.close())
    return made
  }

  beforeEach(() => {
    bench = pipelineBench(url)
  })

  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await bench.close()
  })

  it('sends all records but the ones that are too large for their topic', async () => {
    const topic = `${bench.name}.small`
    const configs = { 'max.message.bytes': '2000' }
    await createTopic(bench.cluster, bench.admin, { topic, partitions: 1, replicas: 1, configs })
    await expect.poll(() => bench.admin.listTopics()).toContain(topic)
    const made = sender()
    const results = await Promise.allSettled(
      [500, 5000, 501].map((size) => made.send(outgoing(topic, size))),
    )
    expect(results).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { code: 'TOO_LARGE' } },
      { status: 'fulfilled' },
    ])
    expect((await bench.read(topic)).map(({ value }) => value.length)).toEqual([500, 501])
  })

  it('rejects without an answer of the broker and continues with the next record', async () => {
    const topic = await bench.topic('lost')
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    const made = sender(proxy.url, 1000)
    await made.send(outgoing(topic, 1))
    proxy.lose(apiKeys.produce)
    await expect(made.send(outgoing(topic, 2))).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
    })
    proxy.heal()
    await made.send(outgoing(topic, 3))
    await made.send(outgoing(topic, 4))
    expect((await bench.read(topic)).map(({ value }) => value.length)).toEqual([1, 2, 3, 4])
  })

  it('relies on the client to send a batch without an answer again, so that it is stored once', async () => {
    const topic = await bench.topic('once')
    const proxy = await lossyProxy(url)
    closing.push(() => proxy.close())
    const { name: clientId } = bench
    const cluster = new Cluster({ url: proxy.url, clock: systemClock, timeoutMs: 1000, clientId })
    const producer = cluster.producer({ retries: 20, retryDelay: 50 })
    closing.unshift(() => producer.close(true))
    const send = async (text: string): Promise<void> => {
      const message = { topic, value: Buffer.from(text) }
      await producer.send({ messages: [message, { ...message }], acks: -1 })
    }
    await send('a')
    proxy.lose(apiKeys.produce)
    const late = send('b')
    await expect.poll(() => proxy.lost(), { timeout: 10_000 }).toBeGreaterThan(0)
    proxy.heal()
    await late
    await send('c')
    const values = (await bench.read(topic)).map(({ value }) => value.toString())
    expect(values).toEqual(['a', 'a', 'b', 'b', 'c', 'c'])
  })
})
