import type { Cluster } from './cluster.ts'
import type { Fetcher } from './fetcher.ts'
import type { Place } from './group.ts'

type Read = Awaited<ReturnType<Fetcher['read']>>

/** What lies in a partition, up to the end or somewhat behind it. The next records are on their way while these are seen to. */
export async function* readAll(
  cluster: Cluster,
  fetcher: Fetcher,
  place: Place,
  start: number,
  end: number,
): AsyncGenerator<Read> {
  const read = (from: number): Promise<Read> => {
    const reading = cluster.call(() => fetcher.read(place, from))
    // It is awaited in its turn.
    reading.catch(() => {})
    return reading
  }
  let at = start
  for (let ahead = at < end ? read(at) : undefined; ahead;) {
    const found = await ahead
    // What is missing up to the end was compacted away.
    ahead = found.to > at && found.to < end ? read(found.to) : undefined
    at = found.to
    yield found
  }
}
