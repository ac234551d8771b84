import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Captured, Capturer } from '../../../src/capture/capture.ts'
import { pipelineCapture } from '../../../src/pipeline/dead/capture.ts'
import { systemClock, type Clock } from '../../../src/clock/clock.ts'
import type { DeadLetter } from '../../../src/letter/letter.ts'
import { deadStreamOf } from '../../../src/pipeline/dead/stream.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { unseal } from '../../../src/pipeline/dead/envelope.ts'
import { lineageIn, withoutLineage } from '../../../src/pipeline/dead/lineage.ts'
import { replayNode } from '../../../src/pipeline/replay/replay.ts'
import { replayHandler, type ReplayHandler } from '../../../src/pipeline/replay/handler.ts'
import { replaysTopicOf } from '../../../src/pipeline/graph/topics.ts'
import { readStream } from '../../../src/pipeline/stream.ts'
import { DeadLetterQueue } from '../../../src/queue/queue.ts'
import { memoryStore } from '../../../src/stores/memory/memory.ts'
import { aCapturer } from '../../capture/a-capturer.ts'
import { apiKeys, lossyProxy } from '../../backends/kafka/lossy-proxy.ts'
import { backend } from '../../servers/servers.ts'
import { deadBench, putOf, type Dead, type DeadBench } from '../dead-records.ts'
import { streamOf } from '../pipeline-bench.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('replayHandler', { timeout: 60_000 }, () => {
  let bench: DeadBench
  let dlq: DeadLetterQueue
  let capturer: Capturer
  let handler: ReplayHandler

  beforeEach(async () => {
    bench = await deadBench(url)
    const store = memoryStore({ clock: systemClock })
    dlq = await DeadLetterQueue.open(store, { clock: systemClock })
    capturer = aCapturer(store, systemClock)
    handler = replayHandler({ cluster: bench.cluster, settings: bench.settings })
    dlq.handle('node-1', handler)
    dlq.start()
  })

  afterEach(async () => {
    await dlq.close()
    await handler.close()
    await bench.close()
  })

  /** A dead record in its topic, and its letter. */
  const letterOf = async (dead: Dead): Promise<DeadLetter> => {
    await bench.dies([dead])
    const record = (await bench.read(bench.settings.dlq.topic)).at(-1)!
    return capturer.capture(captureOf(record))
  }

  const captureOf = (record: StoredRecord): Captured =>
    pipelineCapture(
      deadStreamOf(record, { cluster: bench.name, node: 'node-1', isQuarantine: false }),
    )

  /**
   * As after compaction: the offset exists without a record. Here the record was never committed.
   */
  const compactedAway = async (partition: number): Promise<void> => {
    const producer = bench.cluster.producer({ transactionalId: `${bench.name}.gone` })
    const transaction = await producer.beginTransaction()
    const message = { topic: bench.settings.dlq.topic, partition, value: Buffer.from('gone') }
    await transaction.send({ messages: [message], acks: -1 })
    await transaction.abort()
    await producer.close()
  }

  const run = async (id: string): Promise<DeadLetter> => {
    await dlq.retry(id)
    const letter = async (): Promise<DeadLetter | undefined> => dlq.get(id)
    const state = async (): Promise<string> => (await letter())?.state ?? ''
    await expect.poll(state, { timeout: 15_000 }).toMatch(/resolved|parked|exhausted/)
    return (await letter())!
  }

  const inputs = (): ReturnType<DeadBench['read']> => bench.read(bench.settings.inputTopic)

  it('returns the record of a letter, and a replay of the topic skips it', async () => {
    const { id } = await letterOf({ id: 'a', key: 'k', offset: 1, headers: { trace: 'abc' } })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    const [record] = await inputs()
    expect(record?.value).toEqual(streamOf('a'))
    expect(record?.key?.toString()).toBe('k')
    expect(lineageIn(record!.headers)).toMatchObject({ reprocessed: 1, replay: id })
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 0, passed: 1 })
  })

  it('sends it once, whichever copy compaction keeps for a replay', async () => {
    const dead = { id: 'twice', offset: 1 }
    const { id } = await letterOf(dead)
    await bench.dies([dead])
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    const partitions = [{ partition: 0, offset: 1n }]
    await bench.admin.deleteRecords({ topics: [{ name: bench.settings.dlq.topic, partitions }] })
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 0, passed: 1 })
    expect(await inputs()).toHaveLength(1)
    expect(await replayNode({ cluster, settings, again: true })).toMatchObject({ sent: 1 })
  })

  /**
   * The letter of a record that died twice: compaction keeps the copy after another record, and
   * removes the one of the letter.
   */
  async function letterOfTwo(): Promise<DeadLetter> {
    await compactedAway(0)
    await bench.dies([
      { id: 'other', offset: 2 },
      { id: 'twice', offset: 1 },
    ])
    const [, copy] = await bench.read(bench.settings.dlq.topic)
    return capturer.capture(captureOf({ ...copy!, offset: 0 }))
  }

  it('sends nothing if a replay has sent the last copy and compaction has removed that of the letter', async () => {
    const { id } = await letterOfTwo()
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 2 })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect(await inputs()).toHaveLength(2)
  })

  it('sends a compacted record if no replay has sent a copy', async () => {
    const { id } = await letterOfTwo()
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings, limit: 1 })).toMatchObject({ sent: 1 })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect(await inputs()).toHaveLength(2)
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 0, passed: 2 })
  })

  it('sends headers of any length, by letter and by replay', async () => {
    const headers = { long: 'x'.repeat(100_000), broken: 'one\ntwo' }
    const { id } = await letterOf({ id: 'a', offset: 1, headers })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    await bench.dies([{ id: 'b', offset: 2, headers }])
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 1, passed: 1 })
    const sent = (await inputs()).map((record) =>
      Object.fromEntries(withoutLineage(record.headers).map((pair) => pair.map(String))),
    )
    expect(sent).toEqual([headers, headers])
  })

  it('sends it once, even during a replay that has read another copy', async () => {
    const dead = { id: 'twice', offset: 1 }
    const { id } = await letterOf(dead)
    await bench.dies([{ id: 'other', offset: 2 }, dead])
    const partitions = [{ partition: 0, offset: 1n }]
    await bench.admin.deleteRecords({ topics: [{ name: bench.settings.dlq.topic, partitions }] })
    // The replay pauses before the copy, for longer than any broker timeout.
    let running: Promise<unknown> | undefined
    const timer: Clock['timer'] = (ms, fire) => {
      if (ms < 20_000 || running) return systemClock.timer(ms < 20_000 ? ms : 0, fire)
      running = run(id).finally(fire)
      return () => {}
    }
    const clock = { ...systemClock, timer }
    const cluster = new Cluster({ url, clock, timeoutMs: 10_000, clientId: bench.name })
    const replayed = await replayNode({ cluster, settings: bench.settings, rate: 0.02 })
    expect(await running).toMatchObject({ state: 'resolved' })
    expect(replayed).toMatchObject({ sent: 1, passed: 1 })
    expect(await inputs()).toHaveLength(2)
  })

  it('sends nothing that a replay is about to send, and waits for its result', async () => {
    const large = 'x'.repeat(900_000)
    // So large that they are sent one after the other, and the record of the letter is last.
    for (const offset of [1, 2])
      await bench.dies([{ id: `s${offset}`, offset, value: streamOf(`s${offset}`, large) }])
    const { id } = await letterOf({ id: 'mine', offset: 3, value: streamOf('mine', large) })
    const waits = Promise.withResolvers<void>()
    const timer: Clock['timer'] = (ms, fire) => {
      if (ms === 50) waits.resolve()
      return systemClock.timer(ms, fire)
    }
    const about = { url, clock: systemClock, timeoutMs: 10_000, clientId: bench.name }
    const { settings } = bench
    await handler.close()
    handler = replayHandler({
      cluster: new Cluster({ ...about, clock: { ...systemClock, timer } }),
      settings,
    })
    dlq.handle('node-1', handler)
    const way = await lossyProxy(url)
    way.hold(apiKeys.produce)
    const replaying = replayNode({ cluster: new Cluster({ ...about, url: way.url }), settings })
    await expect.poll(() => way.held(apiKeys.produce)).toBe(1)
    const running = run(id)
    await Promise.race([running, waits.promise])
    way.release(apiKeys.produce)
    expect(await replaying).toMatchObject({ sent: 3 })
    expect(await running).toMatchObject({ state: 'resolved' })
    way.close()
    expect(await inputs()).toHaveLength(3)
  })

  it('resolves a letter whose record was replayed with its topic', async () => {
    const { id } = await letterOf({ id: 'a', offset: 1 })
    await replayNode({ cluster: bench.cluster, settings: bench.settings })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect(await inputs()).toHaveLength(1)
  })

  it('sends an edited payload', async () => {
    const { id } = await letterOf({ id: 'a', offset: 1 })
    await dlq.edit(id, { payload: streamOf('a', 'mended'), by: 'ann', reason: 'mended' })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect((await inputs())[0]?.value).toEqual(streamOf('a', 'mended'))
  })

  it('sends a record that its topic no longer has', async () => {
    const { id } = await letterOf({ id: 'a', key: 'k', offset: 1, headers: { trace: 'abc' } })
    const partitions = [{ partition: 0, offset: 1n }]
    await bench.admin.deleteRecords({ topics: [{ name: bench.settings.dlq.topic, partitions }] })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    const [record] = await inputs()
    expect([record?.key?.toString(), record?.value]).toEqual(['k', streamOf('a')])
    expect(record?.headers.map(String)).toContain('trace,abc')
  })

  it('quarantines and parks a record at its maximum number of replays', async () => {
    const { id } = await letterOf({ id: 'a', offset: 1, reprocessed: 3 })
    const letter = await run(id)
    expect(letter).toMatchObject({ state: 'parked' })
    expect(letter.failure.message).toContain('replayed 3 times')
    expect(await inputs()).toEqual([])
    const [record] = await bench.read(bench.settings.dlq.quarantineTopic)
    expect(unseal(record!.value)?.message.quarantined).toBe(true)
  })

  it('is the replay route of dlq.replay, which parks at the limit of the node', async () => {
    const { id } = await letterOf({ id: 'a', offset: 1, reprocessed: 2 })
    expect(await dlq.replay(id, 'ann')).toMatchObject({ state: 'resolved', replays: 3 })
    const [record] = await inputs()
    expect(lineageIn(record!.headers)).toMatchObject({ reprocessed: 3, replay: id })
    const spent = await letterOf({ id: 'b', offset: 2, reprocessed: 3 })
    expect(spent).toMatchObject({ replays: 3 })
    expect(await dlq.replay(spent.id)).toMatchObject({ state: 'parked', reason: 'replay-limit' })
    expect(await inputs()).toHaveLength(1)
    expect(await bench.read(bench.settings.dlq.quarantineTopic)).toHaveLength(1)
  })

  it('quarantines once, and sends after the limit was raised', async () => {
    const { cluster, settings } = bench
    const { id } = await letterOf({ id: 'a', offset: 1, reprocessed: 3 })
    expect(await run(id)).toMatchObject({ state: 'parked' })
    expect(await run(id)).toMatchObject({ state: 'parked' })
    expect(await bench.read(settings.dlq.quarantineTopic)).toHaveLength(1)
    await handler.close()
    const raised = { ...settings, dlq: { ...settings.dlq, maxReprocessCount: 10 } }
    handler = replayHandler({ cluster, settings: raised })
    dlq.handle('node-1', handler)
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect(await inputs()).toHaveLength(1)
    expect(await replayNode({ cluster, settings: raised })).toMatchObject({ sent: 0, passed: 1 })
  })

  it('sends the record of its letter, whatever is at its offset now', async () => {
    await bench.dies([{ id: 'other', offset: 7 }])
    const [record] = await bench.read(bench.settings.dlq.topic)
    const put = putOf({ id: 'mine', offset: 1 }, bench.settings, 0)
    const before = { ...record!, key: Buffer.from(put.key!), value: put.value }
    const { id } = await capturer.capture(captureOf(before))
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect((await inputs()).map(({ value }) => value)).toEqual([streamOf('mine')])
    const { cluster, settings } = bench
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 1, passed: 0 })
  })

  it('ignores marks of another topic with the same name', async () => {
    const { cluster, settings } = bench
    const remade = async (topic: string): Promise<void> => {
      await bench.admin.deleteTopics({ topics: [topic] })
      await expect.poll(() => bench.admin.listTopics()).not.toContain(topic)
    }
    // From now on this one knows what was replayed.
    const former = await letterOf({ id: 'former', offset: 0 })
    await bench.dies([1, 2, 3].map((offset) => ({ id: `s${offset}`, offset })))
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 4 })
    expect(await run(former.id)).toMatchObject({ state: 'resolved' })
    await remade(settings.dlq.topic)
    await bench.topic('dead', 2)
    const { id } = await letterOf({ id: 'fresh', offset: 9 })
    const refused = await run(id)
    expect(refused.state).not.toBe('resolved')
    expect(refused.failure).toMatchObject({ code: 'STORE_UNSAFE' })
    await remade(replaysTopicOf(settings))
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    const ids = (await inputs()).map(({ value }) => readStream(value)?.streamId)
    expect(ids.filter((one) => one === 'fresh')).toHaveLength(1)
    expect(await replayNode({ cluster, settings })).toMatchObject({ sent: 0, passed: 1 })
  })

  it('sends edited headers, and the others unchanged', async () => {
    const headers = { tenant: 'wrong', trace: 'abc', old: 'x' }
    const { id } = await letterOf({ id: 'a', offset: 1, headers })
    const edited = { tenant: 'right', trace: 'abc', more: 'y' }
    await dlq.edit(id, { headers: edited, by: 'ann', reason: 'mended' })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    const sent = withoutLineage((await inputs())[0]!.headers).map(String)
    expect(sent.toSorted()).toEqual(['more,y', 'tenant,right', 'trace,abc'])
  })

  it('sends no letter to its own DLQ topic', async () => {
    const { settings } = bench
    await bench.put(settings.dlq.topic, [{ value: Buffer.from('no envelope'), partition: 0 }])
    const [record] = await bench.read(settings.dlq.topic)
    const { id } = await capturer.capture(captureOf(record!))
    expect((await run(id)).failure.message).toContain('no payload')
    expect(await bench.read(settings.dlq.topic)).toHaveLength(1)
    await dlq.edit(id, { payload: streamOf('a'), by: 'ann', reason: 'mended' })
    expect(await run(id)).toMatchObject({ state: 'resolved' })
    expect((await inputs()).map(({ value }) => value)).toEqual([streamOf('a')])
  })

  it('rejects letters without a payload, and foreign letters', async () => {
    const { id } = await letterOf({ id: 'a', offset: 1, replayable: false })
    expect((await run(id)).failure.message).toContain('no payload')
    const other = await dlq.enqueue({ type: 'node-1', payload: {} }, new Error('broken'))
    expect((await run(other.id)).failure.message).toContain('has no location of its dead record')
  })
})
