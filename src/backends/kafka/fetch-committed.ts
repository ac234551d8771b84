/**
 * Works around a defect of @platformatic/kafka: with isolation level READ_COMMITTED,
 * `Consumer.fetch` returns aborted records and drops committed ones when a producer has aborted
 * more than one transaction. test/backends/kafka/fetch-committed.test.ts fails as soon as the
 * client behaves: then remove this file and use `Consumer.fetch`.
 */
import { FetchIsolationLevels, fetchV13, type Consumer } from '@platformatic/kafka'
import { requestBroker } from './cluster.ts'
import { batchBits, readTransactionEnd, type RecordBatch } from './record.ts'

type FetchResponse = ReturnType<typeof fetchV13.parseResponse>
type PartitionResponse = FetchResponse['responses'][number]['partitions'][number]

export interface FetchRequest {
  node: number
  topics: Parameters<typeof fetchV13.createRequest>[6]
  maxWaitTime: number
  maxBytes: number
}

/** Id and epoch that mean no fetch session. A session allows one request at a time. */
const noSession = [0, -1] as const

/** `Consumer.fetch` for committed records. Aborted and control batches come without records. */
export async function fetchCommitted(
  consumer: Consumer,
  { node, topics, maxWaitTime, maxBytes }: FetchRequest,
): Promise<FetchResponse> {
  const isolation = FetchIsolationLevels.READ_COMMITTED
  const limits = [maxWaitTime, 1, maxBytes, isolation, ...noSession] as const
  const response = await requestBroker(consumer, node, fetchV13.api, ...limits, topics, [], '')
  for (const { partitions } of response.responses)
    for (const partition of partitions) partition.records = clearUncommitted(partition)
  return response
}

/** The broker lists the aborted transactions of a fetched range; the reader must drop them. */
export function clearUncommitted({
  records,
  abortedTransactions,
}: Pick<PartitionResponse, 'records' | 'abortedTransactions'>): RecordBatch[] {
  const aborted = (abortedTransactions ?? []).toSorted((a, b) =>
    Number(a.firstOffset - b.firstOffset),
  )
  const aborting = new Set<bigint>()
  const isCommitted = (batch: RecordBatch): boolean => {
    const lastOffset = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (aborted[0] && aborted[0].firstOffset <= lastOffset)
      aborting.add(aborted.shift()!.producerId)
    if (!(batch.attributes & batchBits.control))
      return !(batch.attributes & batchBits.transactional) || !aborting.has(batch.producerId)
    if (readTransactionEnd(batch) === 'abort') aborting.delete(batch.producerId)
    return false
  }
  return (records ?? []).map((batch) => (isCommitted(batch) ? batch : { ...batch, records: [] }))
}
