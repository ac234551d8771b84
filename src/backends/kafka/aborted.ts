import type { Consumer } from '@platformatic/kafka'
import { attribute } from './batch.ts'

type FetchResponse = Awaited<ReturnType<Consumer['fetch']>>
export type FetchedPartition = FetchResponse['responses'][number]['partitions'][number]
export type Batch = NonNullable<FetchedPartition['records']>[number]

const { transactional, control } = attribute

/** How a transaction ended, by the mark that the broker wrote into the partition. Undefined: this is no such mark. */
export function endIn({ attributes, records }: Batch): 'commit' | 'abort' | undefined {
  if (!(attributes & control)) return undefined
  const kind = records[0]?.key?.readInt16BE(2)
  return kind === 1 ? 'commit' : kind === 0 ? 'abort' : undefined
}

/**
 * What was sent in transactions that came to nothing is left out; the broker's own marks are, too. The broker names such transactions, and
 * it is for the reader to leave their records out.
 */
export function validBatches({ records, abortedTransactions }: FetchedPartition): Batch[] {
  const batches = records ?? []
  const aborted = (abortedTransactions ?? []).toSorted((a, b) =>
    Number(a.firstOffset - b.firstOffset),
  )
  if (aborted.length === 0) return batches.filter(({ attributes }) => !(attributes & control))
  const open = new Set<bigint>()
  let next = 0
  return batches.filter((batch) => {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (next < aborted.length && aborted[next]!.firstOffset <= last)
      open.add(aborted[next++]!.producerId)
    if (batch.attributes & control) {
      if (endIn(batch) === 'abort') open.delete(batch.producerId)
      return false
    }
    return !(batch.attributes & transactional) || !open.has(batch.producerId)
  })
}
