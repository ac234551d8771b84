import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/clock/clock.ts'
import { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { NewRecord } from '../../../src/backends/kafka/record.ts'
import { Sender } from '../../../src/backends/kafka/sender.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'
import { readValues } from './read-values.ts'

const { url, missing } = backend('kafka')

describe.skipIf(missing)('Fetcher', { timeout: 60_000 }, () => {
  let bench: PipelineBench
  let fetcher: Fetcher

  beforeEach(() => {
    bench = pipelineBench(url)
    fetcher = new Fetcher(bench.cluster)
  })

  afterEach(async () => {
    await fetcher.close()
    await bench.close()
  })

  it('answers concurrent reads', async () => {
    const topic = await bench.topic('read', 2)
    for (const partition of [0, 1])
      await bench.put(topic, [{ value: Buffer.from(`in ${partition}`), partition }])
    const partitions = Array.from({ length: 20 }, (_, n) => n % 2)
    const found = await Promise.all(
      partitions.map((partition) => fetcher.read({ topic, partition }, 0)),
    )
    expect(found.map(({ records }) => records.map(({ value }) => value.toString()))).toEqual(
      partitions.map((partition) => [`in ${partition}`]),
    )
  })

  it('distinguishes a null value from an empty value', async () => {
    const topic = await bench.topic('read')
    const sender = new Sender(bench.cluster)
    for (const value of [null, Buffer.alloc(0)]) {
      const record: NewRecord = { key: Buffer.from('key'), value, headers: new Map() }
      await sender.send({ topic, partition: 0, record })
    }
    await sender.close()
    const { records } = await fetcher.read({ topic, partition: 0 }, 0)
    const found = records.map(({ value, isNull = false }) => [value.length, isNull])
    expect(found).toEqual([
      [0, true],
      [0, false],
    ])
  })

  it('returns null headers and repeated headers as they were sent', async () => {
    const topic = await bench.topic('read')
    const headers = [
      ['a', Buffer.from('1')],
      ['none', null],
      ['a', Buffer.alloc(0)],
    ] as const
    const sender = new Sender(bench.cluster)
    const sent = new Map(headers.map(([name, value]) => [Buffer.from(name), value]))
    await sender.send({ topic, record: { value: Buffer.from('x'), headers: sent } })
    await sender.close()
    const [record] = (await fetcher.read({ topic, partition: 0 }, 0)).records
    expect(record?.headers.map(([name, value]) => [name.toString(), value])).toEqual(headers)
    expect(record).not.toHaveProperty('isAppendTime')
  })

  it('marks timestamps that the broker has written', async () => {
    const topic = await bench.topic('read', 1, { 'message.timestamp.type': 'LogAppendTime' })
    await bench.put(topic, [{ value: Buffer.from('a') }])
    const [record] = (await fetcher.read({ topic, partition: 0 }, 0)).records
    expect(record?.isAppendTime).toBe(true)
  })

  it('answers a read after a read that failed', async () => {
    const topic = await bench.topic('read')
    await bench.put(topic, [{ value: Buffer.from('a') }])
    const wrong = fetcher.read({ topic, partition: 0 }, 99)
    const right = fetcher.read({ topic, partition: 0 }, 0)
    await expect(wrong).rejects.toThrow()
    expect((await right).records).toHaveLength(1)
  })

  describe('readAll', () => {
    const closing: (() => Promise<void>)[] = []
    let topic: string

    beforeEach(async () => {
      topic = await bench.topic('all')
    })
    afterEach(async () => {
      for (const close of closing.splice(0)) await close()
    })

    /** Leaves a transaction with one record open and sends one record after it. */
    const startTransaction = async (): Promise<{ commit: () => Promise<void> }> => {
      const producer = bench.cluster.producer({ transactionalId: `${bench.name}.tx` })
      closing.push(async () => producer.close(true))
      const transaction = await producer.beginTransaction()
      const message = { topic, partition: 0, value: Buffer.from('open') }
      await transaction.send({ messages: [message], acks: -1 })
      await bench.put(topic, [{ value: Buffer.from('behind') }])
      return { commit: () => transaction.commit() }
    }

    const read = (cluster: Cluster): Promise<string[]> =>
      readValues(cluster, { topic, partition: 0 })

    it('waits for the end of a transaction and reads the records after it', async () => {
      const { commit } = await startTransaction()
      const reading = read(bench.cluster)
      await commit()
      expect(await reading).toEqual(['open', 'behind'])
    })

    it('rejects when a transaction does not end in time', async () => {
      const { commit } = await startTransaction()
      const { name: clientId } = bench
      const impatient = new Cluster({ url, clock: systemClock, timeoutMs: 3000, clientId })
      await expect(read(impatient)).rejects.toMatchObject({
        code: 'MAILBOX_UNAVAILABLE',
        message: expect.stringContaining(`hides the records of ${topic}:0`) as string,
      })
      await commit()
    })

    /** Replaces `read`: the partition has as many records as `next`, two for each request. */
    const stubRead = (next: number): number[] => {
      const reads: number[] = []
      fetcher.read = async (_, from) => {
        reads.push(from)
        return { records: [], to: Math.min(from + 2, next), stableEnd: Infinity }
      }
      return reads
    }
    const partition = { topic: 't', partition: 0 }

    it('requests the next page before it is needed, and none after the end', async () => {
      const reads = stubRead(6)
      const pages = fetcher.readAll(partition, 0, 3)
      expect((await pages.next()).value).toMatchObject({ to: 2 })
      expect(reads).toEqual([0, 2])
      expect((await pages.next()).value).toMatchObject({ to: 4 })
      expect(await pages.next()).toMatchObject({ done: true })
      expect(reads).toEqual([0, 2])
    })

    it('ends at a page without progress and requests nothing of an empty range', async () => {
      const reads = stubRead(2)
      for await (const { records } of fetcher.readAll(partition, 0, 9)) expect(records).toEqual([])
      expect(reads).toEqual([0, 2])
      expect(await fetcher.readAll(partition, 5, 5).next()).toMatchObject({ done: true })
      expect(reads).toEqual([0, 2])
    })

    it('rejects with the error of the broker', async () => {
      fetcher.read = () => Promise.reject(new Error('the broker is down'))
      await expect(fetcher.readAll(partition, 0, 9).next()).rejects.toThrow('the broker is down')
    })
  })
})
