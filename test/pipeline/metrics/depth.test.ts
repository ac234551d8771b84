import { Admin, Producer, type MessageToProduce } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { toMessage } from '../../../src/backends/kafka/sender.ts'
import { seal } from '../../../src/pipeline/dead/envelope.ts'
import { PipelineMetrics } from '../../../src/pipeline/metrics/metrics.ts'
import { markOf } from '../../../src/pipeline/replay/replayed.ts'
import {
  DeadRecordDepth,
  type DeadPlace,
  type DeadRecordDepthOptions,
} from '../../../src/pipeline/metrics/depth.ts'
import { replaysTopicOf } from '../../../src/pipeline/graph/topics.ts'
import { kafkaPlace, makeTopics } from '../../servers/broker-places.ts'
import type { Place } from '../../servers/places.ts'
import { backend } from '../../servers/servers.ts'

const { url, missing } = backend('kafka')
const atMs = Date.UTC(2026, 5, 1)

function clusterAt(at: string, clock: Clock = systemClock): Cluster {
  return new Cluster({ url: at, clock, timeoutMs: 5000, clientId: 'test' })
}

/** An envelope of a node. */
function dead(node: string, graph = 'g'): Buffer {
  const record = {
    topic: 'in',
    partition: 0,
    offset: 0,
    timestampMs: atMs,
    key: undefined,
    value: Buffer.from('no stream'),
    headers: [],
  }
  return seal({
    record,
    isStream: false,
    cluster: 'c',
    graph,
    node,
    errorType: 'TIMEOUT',
    message: 'it was late',
    failedMs: atMs,
    firstFailedMs: atMs,
    retries: 3,
    reprocessed: 0,
    quarantined: false,
    replayable: true,
  })
}

describe('DeadRecordDepth', () => {
  it('reports an error if the cluster is unreachable', { timeout: 30_000 }, async () => {
    const nodes = [{ cluster: 'c', graph: 'g', node: 'n', topic: 'dlq.c.n' }]
    const cluster = new Cluster({
      url: '127.0.0.1:9',
      clock: systemClock,
      timeoutMs: 500,
      clientId: 'test',
    })
    const depths = new DeadRecordDepth({ cluster, nodes })
    const measureDepths = (): ReturnType<DeadRecordDepth['measure']> => depths.measure()
    const metrics = new PipelineMetrics({ clock: systemClock, measureDepths })
    try {
      expect(await measureDepths()).toMatchObject([
        { node: 'n', error: { code: 'MAILBOX_UNAVAILABLE' } },
      ])
      const text = await metrics.text()
      expect(text).not.toContain('dlq_depth')
      expect(text).toContain(
        'pipestream_scrape_errors_total{cluster="c",graph="g",node_id="n"} 1\n',
      )
    } finally {
      await depths.close()
    }
  })
})

describe.skipIf(missing)('DeadRecordDepth on Kafka', { timeout: 60_000 }, () => {
  let place: Place
  let admin: Admin
  let producer: Producer
  let node: DeadPlace
  const opened: DeadRecordDepth[] = []

  const make = (topic: string): Promise<void> => makeTopics(admin, [topic], 2)

  beforeEach(async () => {
    place = kafkaPlace(url)
    const settings = { clientId: place.name, bootstrapBrokers: [url] }
    admin = new Admin(settings)
    producer = new Producer({ ...settings, idempotent: true, transactionalId: place.name })
    node = { cluster: place.name, graph: 'g', node: 'n', topic: `${place.name}.dlq` }
    await make(node.topic)
  })

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((depths) => depths.close()))
    const replays = replaysTopicOf(node)
    if ((await admin.listTopics()).includes(replays))
      await admin.deleteTopics({ topics: [replays] })
    await Promise.all([admin.close(), producer.close()])
    await place.clear()
  })

  const open = (more: Partial<DeadRecordDepthOptions> = {}): DeadRecordDepth => {
    const depths = new DeadRecordDepth({ cluster: clusterAt(url), nodes: [node], ...more })
    opened.push(depths)
    return depths
  }

  const write = async (...records: Partial<MessageToProduce>[]): Promise<void> => {
    const transaction = await producer.beginTransaction()
    const messages = records.map((record) => ({
      topic: node.topic,
      partition: 0,
      value: dead('n'),
      ...record,
    }))
    await transaction.send({ messages, acks: -1 })
    await transaction.commit()
  }
  /** Marks a record of partition 0 as replayed. */
  const replay = async (offset: number): Promise<void> => {
    await write(toMessage(markOf(node, { partition: 0, offset }, 'by a test')))
  }
  const key = (text: string): { key: Buffer } => ({ key: Buffer.from(text) })
  const erased = (text: string): Partial<MessageToProduce> => ({
    ...key(text),
    // The client accepts null for no value; its types do not.
    value: null as unknown as Buffer,
  })

  it('counts dead records, without transaction markers', async () => {
    const depths = open()
    await expect(depths.measure()).resolves.toEqual([{ ...node, depth: 0, oldestMs: undefined }])
    await write({ ...key('a'), timestamp: BigInt(atMs + 1000) })
    await write({ ...key('b'), timestamp: BigInt(atMs), partition: 1 })
    await write({ ...key('c'), timestamp: BigInt(atMs + 2000) })
    await expect.poll(() => depths.measure()).toEqual([{ ...node, depth: 3, oldestMs: atMs }])
    expect(await open().measure()).toEqual([{ ...node, depth: 3, oldestMs: atMs }])
  })

  it('counts each record with an empty key', async () => {
    await write(key(''), key(''), key('a'))
    await expect.poll(() => open().measure()).toMatchObject([{ depth: 3 }])
  })

  it('counts a duplicate record once, and an erased one not at all', async () => {
    const depths = open()
    await write(key('a'), key('b'), key('a'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 2 }])
    await write(erased('a'), erased('never there'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 1 }])
    expect(await open().measure()).toMatchObject([{ depth: 1 }])
  })

  it('does not count a replayed record, replayed before or after it was read', async () => {
    await make(replaysTopicOf(node))
    const depths = open()
    await replay(0)
    await write(
      { ...key('a'), timestamp: BigInt(atMs) },
      { ...key('b'), timestamp: BigInt(atMs + 1000) },
      { ...key('c'), timestamp: BigInt(atMs + 2000) },
    )
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 2, oldestMs: atMs + 1000 }])
    await replay(1)
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 1, oldestMs: atMs + 2000 }])
    await replay(2)
    await expect.poll(() => depths.measure()).toEqual([{ ...node, depth: 0, oldestMs: undefined }])
  })

  it('does not count another copy of a replayed or erased record', async () => {
    await make(replaysTopicOf(node))
    const depths = open()
    await write(key('a'), key('b'), key('c'))
    await replay(0)
    await write(erased('b'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 1 }])
    await write(key('a'), key('b'), key('d'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 2 }])
    expect(await open().measure()).toMatchObject([{ depth: 2 }])
  })

  it('does not count records that the topic no longer has', async () => {
    const depths = open()
    await write(key('a'), key('b'), key('c'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 3 }])
    const partitions = [{ partition: 0, offset: 2n }]
    await admin.deleteRecords({ topics: [{ name: node.topic, partitions }] })
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 1 }])
  })

  it('reports an error for a node without its topic, and counts the others', async () => {
    const lost = { ...node, node: 'lost', topic: `${place.name}.nowhere` }
    const depths = open({ nodes: [lost, node] })
    await write(key('a'))
    await expect
      .poll(() => depths.measure())
      .toMatchObject([
        { node: 'lost', error: { code: 'MAILBOX_UNAVAILABLE' } },
        { node: 'n', depth: 1 },
      ])
  })

  it('distinguishes nodes that share a topic, and counts records without a node as its own', async () => {
    const other = { ...node, node: 'other' }
    const namesake = { ...node, graph: 'h' }
    const depths = open({ nodes: [node, other, namesake] })
    await write(
      key('a'),
      { ...key('b'), value: dead('other') },
      { ...key('c'), value: dead('other') },
      { ...key('d'), value: dead('n', 'h') },
      { ...key('e'), value: dead('n', '') },
      { value: Buffer.from('no envelope at all') },
      { value: Buffer.from('and another') },
    )
    await expect
      .poll(() => depths.measure())
      .toMatchObject([
        { node: 'n', graph: 'g', depth: 4 },
        { node: 'other', graph: 'g', depth: 4 },
        { node: 'n', graph: 'h', depth: 4 },
      ])
  })

  it('counts by offsets above its memory limit, until there is room', async () => {
    await make(replaysTopicOf(node))
    const depths = open({ maxHeld: 2 })
    await write(key('a'), key('b'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 2 }])
    // Two records and the marker of their transaction.
    await write(key('c'), key('d'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 2 + 3 }])
    await replay(0)
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 3 }])
  })

  it('reports an error until it has read to the end, and continues where it was', async () => {
    // Each call of this clock takes a second.
    let ms = 0
    const clock: Clock = { ...systemClock, mono: () => (ms += 1000) }
    await write(key('a'))
    await write({ ...key('b'), partition: 1 })
    const seen = open()
    await expect.poll(() => seen.measure()).toMatchObject([{ depth: 2 }])
    const depths = open({ cluster: clusterAt(url, clock), longestMs: 3500 })
    const [first] = await depths.measure()
    expect(first).toMatchObject({ error: { message: expect.stringContaining('not enough time') } })
    expect(await depths.measure()).toMatchObject([{ depth: 2 }])
  })

  it('restarts when the topic was recreated', async () => {
    const depths = open()
    await write(key('a'), key('b'), key('c'))
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 3 }])
    await admin.deleteTopics({ topics: [node.topic] })
    await expect.poll(() => admin.listTopics()).not.toContain(node.topic)
    await make(node.topic)
    await expect.poll(() => depths.measure()).toMatchObject([{ depth: 0 }])
  })

  it('gives concurrent calls one answer', async () => {
    const depths = open()
    const first = depths.measure()
    expect(depths.measure()).toBe(first)
    await first
  })
})
