import type { Cluster } from '../../../src/backends/kafka/cluster.ts'
import { readerOf } from '../../../src/backends/kafka/fetcher.ts'
import type { Place } from '../../../src/backends/kafka/group.ts'
import { readAll } from '../../../src/backends/kafka/read-all.ts'

/** What lies in a partition, up to the end of what was sent. */
export async function textsIn(cluster: Cluster, place: Place): Promise<string[]> {
  const fetcher = readerOf(cluster)
  try {
    const [bounds] = await fetcher.bounds([place])
    const texts: string[] = []
    for await (const { records } of readAll(cluster, fetcher, place, bounds!.first, bounds!.next))
      texts.push(...records.map(({ value }) => value.toString()))
    return texts
  } finally {
    await fetcher.close()
  }
}
