import { describe, expect, it } from 'vitest'
import {
  endIn,
  validBatches,
  type Batch,
  type FetchedPartition,
} from '../../../src/backends/kafka/aborted.ts'

const inTransaction = 0x10
const mark = 0x30

function batch(offset: number, attributes: number, producer = 1, kind = 0): Batch {
  const key = Buffer.from([0, 0, 0, kind])
  const records = [{ key }] as unknown as Batch['records']
  const [firstOffset, producerId] = [BigInt(offset), BigInt(producer)]
  return { firstOffset, lastOffsetDelta: 0, attributes, producerId, records } as Batch
}

const abort = (offset: number, producer = 1): Batch => batch(offset, mark, producer, 0)
const commit = (offset: number, producer = 1): Batch => batch(offset, mark, producer, 1)

function valid(batches: Batch[], ...aborted: [producer: number, first: number][]): number[] {
  const abortedTransactions = aborted.map(([producer, first]) => ({
    producerId: BigInt(producer),
    firstOffset: BigInt(first),
  }))
  const found = { records: batches, abortedTransactions } as unknown as FetchedPartition
  return validBatches(found).map(({ firstOffset }) => Number(firstOffset))
}

describe('validBatches', () => {
  it('leaves out the marks of the broker', () => {
    expect(valid([batch(0, 0), batch(1, inTransaction), commit(2), batch(3, 0)])).toEqual([0, 1, 3])
  })

  it('leaves out several transactions of one sender that came to nothing', () => {
    const batches = [
      batch(0, inTransaction),
      abort(1),
      batch(2, inTransaction),
      commit(3),
      batch(4, inTransaction),
      abort(5),
    ]
    expect(valid(batches, [1, 4], [1, 0])).toEqual([2])
  })

  it('leaves out a transaction that ends later than what is read', () => {
    const batches = [batch(7, inTransaction), batch(8, inTransaction, 2), batch(9, 0)]
    expect(valid(batches, [1, 3])).toEqual([8, 9])
  })
})

describe('endIn', () => {
  it('tells how a transaction ended', () => {
    expect([endIn(commit(0)), endIn(abort(0)), endIn(batch(0, inTransaction))]).toEqual([
      'commit',
      'abort',
      undefined,
    ])
  })
})
