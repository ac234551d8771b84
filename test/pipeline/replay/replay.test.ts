import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { erase } from '../../../src/pipeline/erase.ts'
import { keyOfDead, unseal } from '../../../src/pipeline/dead/envelope.ts'
import { lineageIn, withoutLineage } from '../../../src/pipeline/dead/lineage.ts'
import { replayNode } from '../../../src/pipeline/replay/replay.ts'
import { type ReplayReport } from '../../../src/pipeline/replay/options.ts'
import { type ReplayOptions } from '../../../src/pipeline/replay/options.ts'
import { markOf } from '../../../src/pipeline/replay/replayed.ts'
import { aStream, readStream, writeStream } from '../../../src/pipeline/stream.ts'
import { aFolder, redrive, type Ran } from '../../cli/run-cli.ts'
import { apiKeys, lossyProxy } from '../../backends/kafka/lossy-proxy.ts'
import { makeTopics } from '../../servers/broker-places.ts'
import { backend } from '../../servers/servers.ts'
import { deadBench, sentMs, type Dead, type DeadBench } from '../dead-records.ts'
import { streamOf } from '../pipeline-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('replayNode', { timeout: 60_000 }, () => {
  const folder = aFolder()
  let bench: DeadBench

  beforeEach(async () => {
    bench = await deadBench(url)
  })

  afterEach(() => bench.close())

  const replay = (more: Partial<ReplayOptions> = {}): Promise<ReplayReport> =>
    replayNode({ cluster: bench.cluster, settings: bench.settings, ...more })

  const inputs = (): Promise<StoredRecord[]> => bench.read(bench.settings.inputTopic)
  const idsIn = async (): Promise<string[]> =>
    (await inputs()).map(({ value }) => readStream(value)?.streamId ?? '?').toSorted()

  /** Marks a dead record as replayed, as another process. */
  const marked = async (offset: number): Promise<void> => {
    const mark = markOf(bench.settings, { partition: 0, offset }, 'by somebody')
    const { topic, partition = 0, record: written } = mark
    const { key, value } = written as { key: Buffer; value: Buffer }
    await bench.producer.send({ messages: [{ topic, partition, key, value }], acks: -1 })
  }

  const many = (count: number, more: Partial<Dead> = {}): Dead[] =>
    Array.from({ length: count }, (_, n) => ({ id: `s${n}`, key: `k${n}`, offset: n, ...more }))

  /** So slow that its pauses are longer than its work, and cannot be confused with others. */
  const slowly = 0.02

  /** Runs an action at the first pause of such a replay, instead of waiting. */
  const pausingClock = (doThis: () => Promise<unknown>): Clock => {
    let doing: Promise<unknown> | undefined
    const timer: Clock['timer'] = (ms, fire) => {
      if (ms < 20_000) return systemClock.timer(ms, fire)
      if (doing) return systemClock.timer(0, fire)
      doing = doThis().finally(fire)
      return () => {}
    }
    return { ...systemClock, timer }
  }

  it('returns dead records unchanged, with their lineage in a header', async () => {
    const headers = { trace: 'abc', 'redrive-lineage': '{"replays":1}' }
    await bench.dies([{ id: 'a', key: 'k', offset: 7, headers, reprocessed: 1 }])
    await bench.dies([{ id: 'b', offset: 8, partition: 1 }], 1)
    const report = await replay({ id: 'r1' })
    expect(report).toMatchObject({ sent: 2, quarantined: 0, passed: 0, left: 0, done: true })
    const records = await inputs()
    const [a, b] = ['a', 'b'].map((id) => records.find(({ value }) => value.equals(streamOf(id))))
    expect(a?.key?.toString()).toBe('k')
    expect(withoutLineage(a!.headers).map(String)).toEqual(['trace,abc'])
    const { inputTopic: topic } = bench.settings
    const dead = keyOfDead({ topic, partition: 0, offset: 7, timestampMs: sentMs })
    expect(lineageIn(a!.headers)).toEqual({
      reprocessed: 2,
      firstFailedMs: Date.UTC(2026, 0, 1, 12),
      dead: dead.toString(),
      replay: 'r1',
    })
    expect([b?.key, b?.partition]).toEqual([undefined, 1])
  })

  it('sends nothing twice, unless an option allows it', async () => {
    await bench.dies(many(3))
    expect(await replay()).toMatchObject({ sent: 3 })
    expect(await replay()).toMatchObject({ sent: 0, passed: 3, done: true })
    expect(await replay({ limit: 9 })).toMatchObject({ sent: 0, passed: 3 })
    await bench.dies([{ id: 'later', offset: 99 }])
    expect(await replay()).toMatchObject({ sent: 1, passed: 3 })
    expect(await inputs()).toHaveLength(4)
    expect(await replay({ again: true })).toMatchObject({ sent: 4, passed: 0 })
  })

  it('sends matching records up to the limit, and the next ones the next time', async () => {
    await bench.dies(many(5))
    await bench.dies([{ id: 'other', offset: 50, errorType: 'MODULE_UNAVAILABLE' }])
    const filter = { errorTypes: ['TIMEOUT'] }
    expect(await replay({ filter, limit: 2 })).toMatchObject({ sent: 2, done: true })
    expect(await idsIn()).toEqual(['s0', 's1'])
    expect(await replay({ filter, limit: 2 })).toMatchObject({ sent: 2, passed: 2 })
    expect(await replay({ filter })).toMatchObject({ sent: 1, passed: 5 })
    expect(await idsIn()).toEqual(['s0', 's1', 's2', 's3', 's4'])
  })

  it('counts without side effects in a dry run', async () => {
    await bench.dies(many(3))
    await bench.dies([{ id: 'spent', offset: 9, reprocessed: 3 }])
    const counts = { sent: 3, quarantined: 1, done: true, dryRun: true }
    expect(await replay({ dryRun: true })).toMatchObject(counts)
    expect(await replay({ dryRun: true })).toMatchObject(counts)
    expect(await inputs()).toEqual([])
    expect(await bench.read(bench.settings.dlq.quarantineTopic)).toEqual([])
  })

  it('counts in a dry run like a real run, also under an id that is done or was stopped', async () => {
    await bench.dies(many(3))
    const done = await replay({ id: 'done' })
    const stop = new AbortController()
    await bench.dies([
      { id: 'later', offset: 8 },
      { id: 'last', offset: 9 },
    ])
    const stopped = await replay({
      id: 'stopped',
      rate: 4,
      onProgress: () => stop.abort(),
      signal: stop.signal,
    })
    expect(stopped).toMatchObject({ sent: 1, passed: 3, done: false })
    await bench.dies([{ id: 'behind', offset: 10 }])
    expect(await replay({ id: 'done', dryRun: true })).toEqual({ ...done, dryRun: true })
    const dry = await replay({ id: 'stopped', dryRun: true })
    const real = await replay({ id: 'stopped' })
    expect(real).toMatchObject({ sent: 2, passed: 3, done: true })
    expect(dry).toEqual({ ...real, dryRun: true })
  })

  it('does nothing for a node without a DLQ topic, and creates none', async () => {
    const topic = `${bench.name}.never`
    const settings = { ...bench.settings, dlq: { ...bench.settings.dlq, topic } }
    const nothing = { sent: 0, quarantined: 0, passed: 0, left: 0, ends: [], done: true }
    expect(await replay({ settings })).toMatchObject(nothing)
    expect(await bench.admin.listTopics()).not.toContain(topic)
    const wrong = replay({ settings, target: 'no-such-topic' })
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  it('prints at the command line that there is nothing to replay, and what to check', async () => {
    const config = join(folder, 'graph.yaml')
    const node = `{ node_id: n1, module: { function: f }, dlq_config: { topic: ${bench.name}.never } }`
    const graphs = `[{ graph_id: g, nodes: [${node}] }]`
    writeFileSync(config, `cluster_id: c\nkafka: kafka://${url}\ngraphs: ${graphs}\n`)
    const run = (...args: string[]): Promise<Ran> =>
      redrive(['pipeline', 'replay', 'n1', '--config', config, ...args])
    const { out, err, exit } = await run()
    expect([exit, err]).toEqual([0, ''])
    expect(out).toContain(`from ${bench.name}.never\nThe topic does not exist`)
    expect(out).toContain('dlq_config')
    expect(JSON.parse((await run('--json')).out)).toMatchObject({ sent: 0, ends: [], done: true })
  })

  it('quarantines records at their maximum number of replays', async () => {
    await bench.dies([
      { id: 'third', key: 'k', offset: 1, reprocessed: 2 },
      { id: 'spent', key: 'k', offset: 2, reprocessed: 3 },
    ])
    expect(await replay()).toMatchObject({ sent: 1, quarantined: 1 })
    expect(await idsIn()).toEqual(['third'])
    const [record] = await bench.read(bench.settings.dlq.quarantineTopic)
    const envelope = unseal(record!.value)
    expect(envelope?.message).toMatchObject({ quarantined: true, dlqReprocessCount: 3 })
    expect(envelope?.message.quarantinedAt).toBeDefined()
    expect(Buffer.from(envelope!.value)).toEqual(streamOf('spent'))
    const { inputTopic: topic } = bench.settings
    expect(record?.key).toEqual(keyOfDead({ topic, partition: 0, offset: 2, timestampMs: sentMs }))
    expect(await replay()).toMatchObject({ sent: 0, quarantined: 0, passed: 2 })
  })

  it('sends quarantined records once after the limit was raised', async () => {
    const { settings } = bench
    await bench.dies([{ id: 'spent', offset: 2, reprocessed: 3 }])
    await bench.dies([{ id: 'spent', offset: 2, reprocessed: 3 }])
    expect(await replay()).toMatchObject({ sent: 0, quarantined: 1 })
    const raised = { ...settings, dlq: { ...settings.dlq, maxReprocessCount: 10 } }
    expect(await replay({ settings: raised })).toMatchObject({ sent: 1, quarantined: 0 })
    expect(await replay({ settings: raised })).toMatchObject({ sent: 0, passed: 2 })
    expect(await replay()).toMatchObject({ sent: 0, quarantined: 0, passed: 2 })
    expect(await idsIn()).toEqual(['spent'])
  })

  it.each([{}, { again: true }])('skips records erased while it runs, with %j', async (more) => {
    const { cluster, settings } = bench
    await bench.dies(many(3))
    const erased: Promise<unknown>[] = []
    const pausing = pausingClock(async () => {
      const key = { streamId: 's2' }
      erased.push(erase({ cluster, nodes: [settings], key, by: 'ann', reason: 'request 7' }))
      await erased[0]
    })
    const slow = new Cluster({ url, clock: pausing, timeoutMs: 10_000, clientId: bench.name })
    expect(await replay({ cluster: slow, rate: slowly, ...more })).toMatchObject({
      sent: 2,
      passed: 1,
    })
    expect(await erased[0]).toMatchObject({ records: 1 })
    expect(await idsIn()).toEqual(['s0', 's1'])
  })

  it('skips records erased while it runs, even if their node has written them again by then', async () => {
    await bench.dies(many(3))
    const clock = pausingClock(async () => {
      await bench.dies(many(3).slice(2))
      const nodes = [bench.settings]
      const key = { streamId: 's2' }
      await erase({ cluster: bench.cluster, nodes, key, by: 'ann', reason: 'asked' })
    })
    const cluster = new Cluster({ url, clock, timeoutMs: 10_000, clientId: bench.name })
    expect(await replay({ cluster, rate: slowly })).toMatchObject({ sent: 2, passed: 1 })
    expect(await idsIn()).toEqual(['s0', 's1'])
  })

  it('skips records that another process replayed while it runs', async () => {
    await bench.dies(many(3))
    const clock = pausingClock(() => marked(2))
    const cluster = new Cluster({ url, clock, timeoutMs: 10_000, clientId: bench.name })
    expect(await replay({ cluster, rate: slowly })).toMatchObject({
      sent: 2,
      passed: 1,
      done: true,
    })
    expect(await idsIn()).toEqual(['s0', 's1'])
  })

  it('resets the hops of a stream that went too far, and adds that to its history', async () => {
    const stream = aStream({ streamId: 'round', hopCount: 10, processingPath: ['a', 'b'] })
    await bench.dies([
      { id: 'round', offset: 1, errorType: 'MAX_HOPS', value: writeStream(stream) },
    ])
    await replay({ id: 'r1' })
    const [record] = await inputs()
    const sent = readStream(record!.value)
    expect(sent).toMatchObject({ hopCount: 0, processingPath: ['a', 'b'] })
    expect(sent?.metadata?.history).toMatchObject([
      { event: 'replayed', nodeId: 'node-1', message: 'hop count set from 10 to 0 by replay r1' },
    ])
  })

  it('leaves records that cannot be sent, and skips those that do not match', async () => {
    const { dlq } = bench.settings
    await bench.dies([
      { id: 'bare', offset: 1, replayable: false },
      { id: 'elsewhere', offset: 2, node: 'node-2' },
      { id: 'good', offset: 3 },
    ])
    await bench.put(dlq.topic, [{ key: 'x', value: Buffer.from('no envelope'), partition: 0 }])
    expect(await replay()).toMatchObject({ sent: 1, left: 2, passed: 1 })
    expect(await idsIn()).toEqual(['good'])
  })

  it('skips records erased later, and duplicates', async () => {
    await bench.dies([{ id: 'erased', offset: 1 }])
    await bench.dies([{ id: 'twice', offset: 2 }])
    await bench.dies([{ id: 'twice', offset: 2 }])
    await bench.erase(1)
    expect(await replay()).toMatchObject({ sent: 1, passed: 3 })
    expect(await idsIn()).toEqual(['twice'])
  })

  it('marks all copies of a sent record, whichever of them compaction keeps', async () => {
    const { dlq } = bench.settings
    await bench.dies([{ id: 'twice', offset: 2 }])
    await bench.dies([{ id: 'twice', offset: 2 }])
    expect(await replay()).toMatchObject({ sent: 1, passed: 1 })
    const first = [{ name: dlq.topic, partitions: [{ partition: 0, offset: 1n }] }]
    await bench.admin.deleteRecords({ topics: first })
    expect(await replay()).toMatchObject({ sent: 0, passed: 1 })
    expect(await idsIn()).toEqual(['twice'])
  })

  it('sends no copy of a record that another process replayed', async () => {
    await bench.dies([{ id: 'once', offset: 1 }])
    await replay()
    await bench.dies([{ id: 'twice', offset: 2 }])
    await bench.dies([{ id: 'twice', offset: 2 }])
    await marked(2)
    expect(await replay()).toMatchObject({ sent: 0, passed: 3 })
  })

  it('continues where it was stopped, and sends nothing twice', async () => {
    // A quarter of a second's worth is one transaction, so it can be stopped between two.
    const rate = 4000
    await bench.dies(many(3000))
    await bench.dies(many(2500, { partition: 1 }), 1)
    const stop = new AbortController()
    const first = await replay({ rate, onProgress: () => stop.abort(), signal: stop.signal })
    expect(first).toMatchObject({ done: false })
    expect(first.sent).toBeGreaterThan(0)
    expect(first.sent).toBeLessThan(5500)
    // Records that die later are not part of it.
    await bench.dies([{ id: 'later', offset: 9000 }])
    const crash = (): void => {
      throw new Error('the process ended')
    }
    await expect(replay({ rate, onProgress: crash })).rejects.toThrow('the process ended')
    const last = await replay()
    expect(last).toMatchObject({ id: first.id, startedAt: first.startedAt, sent: 5500, done: true })
    const ids = await idsIn()
    expect(ids).toHaveLength(5500)
    expect(ids.filter((id) => id === 'later')).toEqual([])
  })

  it('is taken over by another replay of the node', async () => {
    await bench.dies(many(1200))
    const others: Promise<ReplayReport>[] = []
    const onProgress = (): void => {
      if (others.length === 0) others.push(replay())
    }
    await expect(replay({ rate: 600, onProgress })).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(await others[0]).toMatchObject({ sent: 1200, done: true })
    expect(await idsIn()).toHaveLength(1200)
  })

  it('leaves records that are too large for the topic, and sends the others', async () => {
    const topic = `${bench.name}.small`
    const configs = [{ name: 'max.message.bytes', value: '3000' }]
    await makeTopics(bench.admin, [topic], 1, configs)
    await bench.dies([
      { id: 'one', offset: 1 },
      { id: 'large', offset: 2, value: streamOf('large', 'x'.repeat(5000)) },
      { id: 'three', offset: 3 },
    ])
    expect(await replay({ target: topic })).toMatchObject({ sent: 2, left: 1, done: true })
    expect(await bench.read(topic)).toHaveLength(2)
    expect(await replay({ target: topic })).toMatchObject({ sent: 0, left: 1, passed: 2 })
  })

  it('respects its rate limit', async () => {
    const waits: number[] = []
    const clock = {
      ...systemClock,
      timer: (ms: number, fire: () => void) => {
        if (ms < 9000) waits.push(ms)
        return systemClock.timer(ms < 9000 ? 0 : ms, fire)
      },
    }
    const cluster = new Cluster({ url, clock, timeoutMs: 10_000, clientId: bench.name })
    await bench.dies(many(100))
    await replay({ cluster, rate: 20 })
    expect(waits.reduce((sum, ms) => sum + Math.max(0, ms), 0)).toBeGreaterThan(4000)
  })

  it('rejects marks of another topic with the same name', async () => {
    await bench.dies(many(2))
    await replay({ limit: 1 })
    await marked(40_000)
    await expect(replay()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })

  it('refuses to continue in another topic with the same name, instead of waiting for records it never had', async () => {
    const { topic } = bench.settings.dlq
    await bench.dies(many(10))
    const stop = new AbortController()
    const first = await replay({ rate: 4, onProgress: () => stop.abort(), signal: stop.signal })
    expect(first).toMatchObject({ sent: 1, done: false })
    await bench.admin.deleteTopics({ topics: [topic] })
    await expect.poll(() => bench.admin.listTopics()).not.toContain(topic)
    await bench.topic('dead', 2)
    await bench.dies(many(3))
    await expect(replay()).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  })

  it('stops even while the broker does not answer whether the last transaction is committed, and continues later', async () => {
    await bench.dies(many(3))
    const way = await lossyProxy(url)
    const about = { url: way.url, clock: systemClock, timeoutMs: 1000, clientId: bench.name }
    const stop = new AbortController()
    way.stop(apiKeys.endTransaction)
    const stopped = expect(
      replay({ cluster: new Cluster(about), signal: stop.signal }),
    ).rejects.toMatchObject({ code: 'MAILBOX_UNAVAILABLE' })
    await expect.poll(() => way.lost()).toBeGreaterThan(0)
    stop.abort()
    await stopped
    way.close()
    expect(await replay()).toMatchObject({ sent: 3, done: true })
    expect(await idsIn()).toEqual(['s0', 's1', 's2'])
  })

  it('rejects invalid options', async () => {
    const moments = ['sinceMs', 'untilMs'].map((name) => ({ filter: { [name]: Number.NaN } }))
    for (const wrong of [{ limit: 0 }, { rate: 0 }, { target: 'no-such-topic' }, ...moments])
      await expect(replay(wrong)).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })
})
