import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { StoredRecord } from '../../../src/backends/kafka/record.ts'
import { seal } from '../../../src/pipeline/dead/envelope.ts'
import { lineageIn, withoutLineage } from '../../../src/pipeline/dead/lineage.ts'
import { replayNode } from '../../../src/pipeline/replay/replay.ts'
import { type ReplayReport } from '../../../src/pipeline/replay/options.ts'
import { type ReplayOptions } from '../../../src/pipeline/replay/options.ts'
import { readStream } from '../../../src/pipeline/stream.ts'
import { backend } from '../../servers/servers.ts'
import { deadBench, putOf, type Dead, type DeadBench } from '../dead-records.ts'
import { streamOf } from '../pipeline-bench.ts'

const { url, missing } = backend('kafka')
const partitions = 12

const died = {
  isStream: true,
  graph: '',
  node: 'node-1',
  errorType: 'TIMEOUT',
  message: '',
  failedMs: 0,
  firstFailedMs: 0,
  retries: 0,
  reprocessed: 0,
  quarantined: false,
  replayable: true,
}

describe.skipIf(missing)('replayNode of twelve partitions', { timeout: 60_000 }, () => {
  let bench: DeadBench

  beforeEach(async () => {
    const made = await deadBench(url)
    const settings = {
      ...made.settings,
      inputTopic: await made.topic('wide', partitions),
      dlq: { ...made.settings.dlq, topic: await made.topic('wide-dead', partitions) },
    }
    const dies: DeadBench['dies'] = (all, partition = 0) =>
      made.put(
        settings.dlq.topic,
        all.map((dead) => putOf(dead, settings, partition)),
      )
    bench = { ...made, settings, dies }
  })

  afterEach(() => bench.close())

  const replay = (more: Partial<ReplayOptions> = {}): Promise<ReplayReport> =>
    replayNode({ cluster: bench.cluster, settings: bench.settings, ...more })
  const inputs = (): Promise<StoredRecord[]> => bench.read(bench.settings.inputTopic)
  const idOf = ({ value }: StoredRecord): string => readStream(value)?.streamId ?? '?'

  /** Per partition, with three keys. */
  const die = async (each: number): Promise<string[]> => {
    const ids: string[] = []
    for (let partition = 0; partition < partitions; partition++) {
      const dead: Dead[] = Array.from({ length: each }, (_, n) => ({
        id: `${partition}-${n}`,
        key: `k${partition}-${n % 3}`,
        offset: n,
        partition,
      }))
      ids.push(...dead.map(({ id }) => id))
      await bench.dies(dead, partition)
    }
    return ids.toSorted()
  }

  it('sends each record once and in the order of its key, however often it is stopped', async () => {
    const ids = await die(30)
    let report: ReplayReport
    do {
      const stop = new AbortController()
      report = await replay({
        rate: 200,
        id: 'again',
        onProgress: () => stop.abort(),
        signal: stop.signal,
      })
    } while (!report.done)
    expect(report).toMatchObject({ sent: ids.length, passed: 0, left: 0 })
    const records = await inputs()
    expect(records.map(idOf).toSorted()).toEqual(ids)
    for (const [, ofKey] of Map.groupBy(records, ({ key }) => String(key))) {
      const order = ofKey.map((record) => Number(idOf(record).split('-')[1]))
      expect(order).toEqual(order.toSorted((a, b) => a - b))
    }
  })

  it('sends each record once with concurrent replays', async () => {
    const ids = await die(50)
    const all = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((id) => replay({ id, rate: 2000 })),
    )
    const codes = all.flatMap((one) =>
      one.status === 'rejected' ? [(one.reason as { code: string }).code] : [],
    )
    expect(codes.filter((code) => code !== 'LEASE_LOST')).toEqual([])
    await replay()
    expect((await inputs()).map(idOf).toSorted()).toEqual(ids)
  })

  it('skips foreign records, and returns unusual ones unchanged', async () => {
    const { dlq, inputTopic: topic } = bench.settings
    const headers = [
      ['name', 'one'],
      ['name', 'two'],
      ['', ''],
    ].map(([name, text]) => [Buffer.from(name!), Buffer.from(text!)] as const)
    const record = { topic, partition: 3, offset: 7, timestampMs: 0, key: undefined, headers }
    const sealed = (id: string): Buffer =>
      seal({ ...died, cluster: bench.name, record: { ...record, value: streamOf(id) } })
    const nothing = null as unknown as Buffer
    const unusual: [key: string | undefined, value: Buffer][] = [
      ['poison', Buffer.from('no envelope')],
      ['cut', sealed('cut').subarray(0, -1)],
      ['empty', Buffer.alloc(0)],
      ['erased', nothing],
      [undefined, nothing],
      [undefined, sealed('keyless')],
      // An empty key is none: all such keys are equal.
      ['', sealed('empty-key')],
      ['', sealed('empty-key-again')],
    ]
    for (const [key, value] of unusual) {
      const message = { topic: dlq.topic, partition: 5, value, timestamp: 0n }
      const messages = [key === undefined ? message : { ...message, key: Buffer.from(key) }]
      await bench.producer.send({ messages, acks: -1 })
    }
    expect(await replay()).toMatchObject({ sent: 3, left: 2, passed: 3 })
    const records = await inputs()
    expect(records.map(idOf)).toEqual(['keyless', 'empty-key', 'empty-key-again'])
    for (const sent of records) {
      expect([sent.partition, sent.key]).toEqual([3, undefined])
      expect(withoutLineage(sent.headers)).toEqual(headers)
      expect(lineageIn(sent.headers)).toMatchObject({ reprocessed: 1, firstFailedMs: 0 })
    }
    expect(await replay()).toMatchObject({ sent: 0, left: 2, passed: 6 })
  })

  it('marks sent records even in partitions that were added to the DLQ topic later', async () => {
    const topic = bench.settings.dlq.topic
    await bench.dies([{ id: 'first', offset: 0 }])
    expect(await replay()).toMatchObject({ sent: 1 })
    await bench.admin.createPartitions({ topics: [{ name: topic, count: 14, assignments: null }] })
    const count = async (): Promise<unknown> =>
      (await bench.producer.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic)
        ?.partitionsCount
    await expect.poll(count).toBe(14)
    await bench.dies([{ id: 'late', offset: 1 }], 13)
    expect(await replay()).toMatchObject({ sent: 1, passed: 1 })
    expect(await replay()).toMatchObject({ sent: 0, passed: 2 })
    expect((await inputs()).map(idOf).toSorted()).toEqual(['first', 'late'])
  })
})
