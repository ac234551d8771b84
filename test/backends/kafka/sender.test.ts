import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { lotsOf, Sender, type Outgoing } from '../../../src/backends/kafka/sender.ts'
import { createTopic } from '../../../src/backends/kafka/topics.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'
import { asks, lossyWay } from './lossy.ts'

const { url, missing } = backend('kafka')

const outgoing = (topic: string, size: number, partition?: number): Outgoing => ({
  topic,
  written: { value: Buffer.alloc(size, 'x'), headers: new Map() },
  ...(partition === undefined ? {} : { partition }),
})

const lengths = (all: readonly Outgoing[]): number[] => [...lotsOf(all)].map(({ length }) => length)

describe('lotsOf', () => {
  const of = (count: number, partitions: number | undefined): Outgoing[] =>
    Array.from({ length: count }, (_, n) =>
      outgoing('t', 99_000, partitions === undefined ? undefined : n % partitions),
    )

  it('gives each partition as much as it takes as one', () => {
    expect(lengths(of(25, 1))).toEqual([10, 10, 5])
    expect(lengths(of(25, 2))).toEqual([20, 5])
    expect(lengths(of(45, 8))).toEqual([20, 20, 5])
  })

  it('gives as if all that has no partition came to lie in the fullest one', () => {
    expect(lengths(of(25, undefined))).toEqual([10, 10, 5])
    expect(lengths([...of(8, 1), ...of(4, undefined)])).toEqual([10, 2])
    expect(lengths([...of(8, 2), ...of(8, undefined)])).toEqual([14, 2])
  })

  it('gives what is too large alone, and all in its order', () => {
    const all = [outgoing('t', 5, 0), outgoing('t', 3_000_000, 0), outgoing('t', 5, 0)]
    expect(lengths(all)).toEqual([1, 1, 1])
    expect([...lotsOf(all)].flat()).toEqual(all)
    expect(lengths([])).toEqual([])
  })

  it('tells topics apart', () => {
    const all = Array.from({ length: 20 }, (_, n) => outgoing(n % 2 ? 'a' : 'b', 99_000, 0))
    expect(lengths(all)).toEqual([20])
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

  it('sends all but what the topic does not take', async () => {
    const topic = `${bench.name}.small`
    const configs = { 'max.message.bytes': '2000' }
    await createTopic(bench.cluster, bench.admin, { topic, partitions: 1, replicas: 1, configs })
    await expect.poll(() => bench.admin.listTopics()).toContain(topic)
    const made = sender()
    await made.open(topic)
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

  it('says that it does not know when no answer comes, and goes on after that', async () => {
    const topic = await bench.topic('lost')
    const way = await lossyWay(url)
    closing.push(() => way.close())
    const made = sender(way.url, 1000)
    await made.send(outgoing(topic, 1))
    way.lose(asks.produce)
    await expect(made.send(outgoing(topic, 2))).rejects.toMatchObject({
      code: 'MAILBOX_UNAVAILABLE',
    })
    way.heal()
    await made.send(outgoing(topic, 3))
    await made.send(outgoing(topic, 4))
    expect((await bench.read(topic)).map(({ value }) => value.length)).toEqual([1, 2, 3, 4])
  })
})
