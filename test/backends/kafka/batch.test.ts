import { createRecordsBatch, NumericMap, Reader, readRecordsBatch } from '@platformatic/kafka'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batchOf } from '../../../src/backends/kafka/batch.ts'

const bytes = fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some))
const nothing = null as unknown as Buffer
const start = 1_700_000_000_000n

const record = fc.record({
  topic: fc.constant('t'),
  partition: fc.constant(0),
  key: fc.oneof(bytes, fc.constant(nothing)),
  value: fc.oneof(bytes, fc.constant(nothing)),
  headers: fc
    .array(fc.tuple(bytes, fc.oneof(bytes, fc.constant(nothing))), { maxLength: 4 })
    .map((all) => new Map(all)),
  // Times further apart than that are written wrongly by the client.
  timestamp: fc.oneof(fc.constant(start), fc.bigInt({ min: start, max: start + 2n ** 30n })),
})

const sender = fc.record({
  producerId: fc.bigInt({ min: -1n, max: 2n ** 62n }),
  producerEpoch: fc.integer({ min: 0, max: 0x7fff }),
  firstSequence: fc.integer({ min: 0, max: 0x7fffffff }),
  isTransactional: fc.boolean(),
})

describe('batchOf', () => {
  it('gives the bytes that the client gives', () => {
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 150 }), sender, (records, sent) => {
        const { producerId, producerEpoch, firstSequence, isTransactional } = sent
        // The client writes into what it is given.
        const theirs = createRecordsBatch(
          records.map((one) => ({ ...one })),
          {
            producerId,
            producerEpoch,
            sequences: new NumericMap([['t:0', firstSequence]]),
            ...(isTransactional ? { transactionalId: 'tx' } : {}),
          },
        )
        expect(batchOf(records, sent).equals(theirs.buffer)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('gives large values as they are', () => {
    const values = [0, 63, 64, 8191, 8192, 1_048_575, 1_048_576].map((size) =>
      Buffer.alloc(size, 7),
    )
    const records = values.map((value) => ({ topic: 't', value, timestamp: 5n }))
    const sent = { producerId: 1n, producerEpoch: 0, firstSequence: 3, isTransactional: false }
    const read = readRecordsBatch(Reader.from(batchOf(records, sent)))
    expect(read.records.map(({ value }) => value?.length)).toEqual(
      values.map(({ length }) => length),
    )
    expect(read).toMatchObject({ firstSequence: 3, producerId: 1n, lastOffsetDelta: 6 })
  })

  it('keeps times however far apart, and lets what has none have that of the first', () => {
    const value = Buffer.from('v')
    const records = [
      { topic: 't', value, timestamp: 7n },
      { topic: 't', value },
      { topic: 't', value, timestamp: 4n },
      { topic: 't', value, timestamp: start },
      { topic: 't', value, timestamp: 0n },
    ]
    const sent = { producerId: 1n, producerEpoch: 0, firstSequence: 0, isTransactional: false }
    const read = readRecordsBatch(Reader.from(batchOf(records, sent)))
    expect(read).toMatchObject({ firstTimestamp: 7n, maxTimestamp: start })
    expect(read.records.map(({ timestampDelta }) => timestampDelta)).toEqual([
      0n,
      0n,
      -3n,
      start - 7n,
      -7n,
    ])
  })
})
