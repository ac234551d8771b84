import { FetchIsolationLevels } from '@platformatic/kafka'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { clearUncommitted, fetchCommitted } from '../../../src/backends/kafka/fetch-committed.ts'
import { readTransactionEnd, type RecordBatch } from '../../../src/backends/kafka/record.ts'
import { pipelineBench, type PipelineBench } from '../../pipeline/pipeline-bench.ts'
import { backend } from '../../servers/servers.ts'

const transactional = 0x10
const control = 0x30

function batch(offset: number, attributes: number, producer = 1, type = 0): RecordBatch {
  const records = [{ key: Buffer.from([0, 0, 0, type]) }] as unknown as RecordBatch['records']
  const [firstOffset, producerId] = [BigInt(offset), BigInt(producer)]
  return { firstOffset, lastOffsetDelta: 0, attributes, producerId, records } as RecordBatch
}

const abort = (offset: number, producer = 1): RecordBatch => batch(offset, control, producer, 0)
const commit = (offset: number, producer = 1): RecordBatch => batch(offset, control, producer, 1)

/** The offsets of the batches that keep their records. */
function committed(records: RecordBatch[], ...aborted: [producer: number, first: number][]) {
  const abortedTransactions = aborted.map(([producer, first]) => ({
    producerId: BigInt(producer),
    firstOffset: BigInt(first),
  }))
  return clearUncommitted({ records, abortedTransactions })
    .filter((one) => one.records.length > 0)
    .map(({ firstOffset }) => Number(firstOffset))
}

describe('clearUncommitted', () => {
  it('clears control batches and keeps their offsets', () => {
    const batches = [batch(0, 0), batch(1, transactional), commit(2), batch(3, 0)]
    expect(committed(batches)).toEqual([0, 1, 3])
    expect(clearUncommitted({ records: batches, abortedTransactions: [] })).toHaveLength(4)
  })

  it('clears several aborted transactions of one producer', () => {
    const batches = [
      batch(0, transactional),
      abort(1),
      batch(2, transactional),
      commit(3),
      batch(4, transactional),
      abort(5),
    ]
    expect(committed(batches, [1, 4], [1, 0])).toEqual([2])
  })

  it('clears an aborted transaction that ends after the fetched range', () => {
    const batches = [batch(7, transactional), batch(8, transactional, 2), batch(9, 0)]
    expect(committed(batches, [1, 3])).toEqual([8, 9])
  })
})

describe('readTransactionEnd', () => {
  it('returns the type of the control record', () => {
    expect(readTransactionEnd(commit(0))).toBe('commit')
    expect(readTransactionEnd(abort(0))).toBe('abort')
    expect(readTransactionEnd(batch(0, transactional))).toBe(undefined)
  })
})

const { url, missing } = backend('kafka')

describe.skipIf(missing)('fetchCommitted', { timeout: 60_000 }, () => {
  let bench: PipelineBench

  beforeEach(() => {
    bench = pipelineBench(url)
  })
  afterEach(() => bench.close())

  it('is needed as long as the client returns records of aborted transactions', async () => {
    const topic = await bench.topic('aborted')
    const producer = bench.cluster.producer({ transactionalId: `${bench.name}.tx` })
    const consumer = bench.cluster.consumer({ groupId: bench.name })
    try {
      for (const outcome of ['abort', 'commit', 'abort'] as const) {
        const transaction = await producer.beginTransaction()
        const message = { topic, partition: 0, value: Buffer.from(outcome) }
        await transaction.send({ messages: [message], acks: -1 })
        await transaction[outcome]()
      }
      expect((await bench.read(topic)).map(({ value }) => value.toString())).toEqual(['commit'])
      consumer.topics.track(topic)
      const { id: topicId, partitions } = (await consumer.metadata({ topics: [topic] })).topics.get(
        topic,
      )!
      const position = { partition: 0, fetchOffset: 0n, partitionMaxBytes: 100_000 }
      const epochs = { currentLeaderEpoch: -1, lastFetchedEpoch: -1 }
      const request = {
        node: partitions[0]!.leader,
        topics: [{ topicId, partitions: [{ ...position, ...epochs }] }],
        maxWaitTime: 500,
        maxBytes: 100_000,
      }
      const valuesIn = ({ responses }: Awaited<ReturnType<typeof fetchCommitted>>): unknown[] =>
        (responses[0]?.partitions[0]?.records ?? [])
          .filter((one) => !(one.attributes & 0x20))
          .flatMap(({ records }) => records.map(({ value }) => value?.toString()))
      expect(valuesIn(await fetchCommitted(consumer, request))).toEqual(['commit'])
      const isolationLevel = FetchIsolationLevels.READ_COMMITTED
      expect(
        valuesIn(await consumer.fetch({ ...request, isolationLevel })),
        'The client filters aborted transactions now: remove src/backends/kafka/fetch-committed.ts',
      ).not.toEqual(['commit'])
    } finally {
      await Promise.all([producer.close(true), consumer.close(true)])
    }
  })
})
