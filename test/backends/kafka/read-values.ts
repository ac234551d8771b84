import type { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { Fetcher } from '../../../src/backends/kafka/fetcher.ts'
import type { TopicPartition } from '../../../src/backends/kafka/record.ts'

/** The values of all committed records of a partition. */
export async function readValues(cluster: Cluster, partition: TopicPartition): Promise<string[]> {
  const fetcher = new Fetcher(cluster)
  try {
    const [bounds] = await fetcher.bounds([partition])
    const values: string[] = []
    for await (const { records } of fetcher.readAll(partition, bounds!.first, bounds!.next))
      values.push(...records.map(({ value }) => value.toString()))
    return values
  } finally {
    await fetcher.close()
  }
}
