import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nextTurn } from '../../../src/clock/clock.ts'
import { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { OutgoingRecord } from '../../../src/backends/kafka/sender.ts'
import {
  markOf,
  quarantinedNote,
  Replayed,
  type ReplayedOptions,
  type ReplayProgress,
} from '../../../src/pipeline/replay/replayed.ts'
import { replaysTopicOf } from '../../../src/pipeline/graph/topics.ts'
import { backend } from '../../servers/servers.ts'
import { removeTopic } from '../dead-records.ts'
import { pipelineBench, type PipelineBench } from '../pipeline-bench.ts'

const { url, missing } = backend('kafka')

const progress: ReplayProgress = {
  id: 'r1',
  sent: 2,
  quarantined: 0,
  passed: 1,
  left: 0,
  positions: [3, 4],
  ends: [5, 6],
  startedAt: '2026-01-01T00:00:00.000Z',
  done: false,
  request: '{}',
}

const gate = (): PromiseWithResolvers<void> => Promise.withResolvers()

describe.skipIf(missing)('Replayed', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let fetcher: Fetcher

  beforeEach(() => {
    bench = pipelineBench(url)
    fetcher = new Fetcher(bench.cluster)
  })

  afterEach(async () => {
    await fetcher.close()
    await removeTopic(bench.cluster, replaysTopicOf(place()))
    await bench.close()
  })

  const place = (): { cluster: string; node: string } => ({ cluster: bench.name, node: 'n1' })
  const options = (): ReplayedOptions => {
    const { cluster, admin } = bench
    return { cluster, fetcher, admin, place: place() }
  }
  const made = (): Replayed => new Replayed(options())
  const send = async (outgoing: readonly OutgoingRecord[]): Promise<void> => {
    const messages = outgoing.map(({ topic, partition = 0, record: { key, value } }) => ({
      topic,
      partition,
      key: key!,
      value: value!,
    }))
    await bench.producer.send({ messages, acks: -1 })
  }

  it('is empty as long as it has no topic', async () => {
    const replayed = made()
    await replayed.catchUp()
    expect(replayed.has(0, 0)).toBe(false)
    expect(replayed.progressOf('r1')).toBe(undefined)
  })

  it('shares marks with other processes', async () => {
    const [one, other] = [made(), made()]
    await one.create(2, 1)
    const offsets = [0, 7, 8, 32_767, 32_768, 5_000_000_000]
    for (const offset of offsets) one.add(1, offset)
    await send(one.written(progress))
    await other.catchUp()
    expect(offsets.filter((offset) => !other.has(1, offset))).toEqual([])
    expect([other.has(1, 1), other.has(0, 0), other.has(1, 32_769)]).toEqual([false, false, false])
    expect(other.progressOf('r1')).toEqual(progress)
    expect([other.lastOf(0), other.lastOf(1)]).toEqual([-1, 5_000_000_000])
    await send([markOf(place(), { partition: 0, offset: 9 }, 'letter 1')])
    await other.catchUp()
    expect([other.has(0, 9), other.has(1, 7)]).toEqual([true, true])
  })

  it('distinguishes quarantined, erased and sent records', async () => {
    const replayed = made()
    await replayed.create(1, 1)
    const mark = (offset: number, note: string): OutgoingRecord =>
      markOf(place(), { partition: 0, offset }, note)
    await send([mark(1, 'quarantined'), mark(2, 'quarantined'), mark(3, 'erased')])
    await send([mark(2, 'letter 1')])
    await replayed.catchUp()
    const offsets = [1, 2, 3, 4]
    expect(offsets.filter((offset) => replayed.has(0, offset))).toEqual([1, 2, 3])
    expect(offsets.filter((offset) => replayed.isQuarantined(0, offset))).toEqual([1])
    expect(offsets.filter((offset) => replayed.isErased(0, offset))).toEqual([3])
  })

  it('holds letters in memory only on request', async () => {
    const others = made()
    await others.create(1, 1)
    await send([markOf(place(), { partition: 0, offset: 1 }, 'letter l1')])
    const asking = new Replayed({ ...options(), withLetters: true })
    for (const one of [others, asking]) await one.catchUp()
    expect([others.has(0, 1), asking.has(0, 1)]).toEqual([true, true])
    expect([others.letters.size, [...asking.letters]]).toEqual([0, ['l1']])
  })

  it('reads one at a time, so that the last mark counts for all callers', async () => {
    const replayed = made()
    await replayed.create(1, 1)
    const at = { partition: 0, offset: 1 }
    await send([markOf(place(), at, quarantinedNote), markOf(place(), at, 'replay x')])
    const read = fetcher.read.bind(fetcher)
    const reads: number[] = []
    const [begun, halfway, ended] = [gate(), gate(), gate()]
    fetcher.read = async (from, offset) => {
      const isSecond = reads.includes(offset)
      reads.push(offset)
      if (isSecond && offset === 0) await begun.promise
      if (isSecond && offset === 1) {
        halfway.resolve()
        await ended.promise
      }
      const [record] = (await read(from, offset)).records
      return { records: [record!], to: record!.offset + 1, stableEnd: Infinity }
    }
    const [first, second] = [replayed.catchUp(), replayed.catchUp()]
    await first
    begun.resolve()
    await Promise.race([second, halfway.promise])
    await nextTurn()
    expect(replayed.isQuarantined(0, 1)).toBe(false)
    ended.resolve()
    await second
  })

  it('writes only new marks, and can undo marks', async () => {
    const replayed = made()
    replayed.add(0, 1)
    replayed.add(0, 2)
    replayed.drop(0, 2)
    expect([replayed.has(0, 1), replayed.has(0, 2)]).toEqual([true, false])
    expect(replayed.written(progress)).toHaveLength(2)
    expect(replayed.written(progress)).toHaveLength(1)
  })

  it('ignores foreign records in its topic', async () => {
    const replayed = made()
    await replayed.create(1, 1)
    const { topic } = replayed
    await bench.put(topic, [
      { key: '0:0', value: Buffer.alloc(9000, 0xff) },
      { key: 'replay:x', value: Buffer.from('{"sent":"many"}') },
      { key: 'replay:y', value: Buffer.from('nothing') },
      { key: 'other', value: Buffer.from('x') },
    ])
    await replayed.catchUp()
    expect([replayed.has(0, 32_767), replayed.has(0, 32_768)]).toEqual([true, false])
    expect([replayed.progressOf('x'), replayed.progressOf('y')]).toEqual([undefined, undefined])
  })
})
