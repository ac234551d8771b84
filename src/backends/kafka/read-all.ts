import { sleep } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'
import type { Fetcher } from './fetcher.ts'
import type { Place } from './group.ts'

type Read = Awaited<ReturnType<Fetcher['read']>>

const pauseMs = 50

/**
 * What lies in a partition, up to the end or somewhat behind it. The next records are on their way while these are seen to. What lies behind
 * a transaction that has not ended cannot be seen; it is waited for, and what does not end in time is refused: nothing is left out.
 */
export async function* readAll(
  cluster: Cluster,
  fetcher: Fetcher,
  place: Place,
  start: number,
  end: number,
): AsyncGenerator<Read> {
  const read = (from: number): Promise<Read> => {
    const reading = readOn(cluster, fetcher, place, from, end)
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

async function readOn(
  cluster: Cluster,
  fetcher: Fetcher,
  place: Place,
  from: number,
  end: number,
): Promise<Read> {
  const { clock, timeoutMs } = cluster
  const endMs = clock.mono() + timeoutMs
  for (let isStable = false; ;) {
    const found = await cluster.call(() => fetcher.read(place, from))
    if (found.to > from || isStable) return found
    // What has ended since is read once more.
    isStable = (await cluster.call(() => fetcher.stable(place))) >= end
    if (isStable) continue
    if (clock.mono() > endMs) throw hidden(cluster, place, from)
    await sleep(clock, pauseMs)
  }
}

function hidden({ place: at }: Cluster, { topic, partition }: Place, from: number): RedriveError {
  return new RedriveError(
    'MAILBOX_UNAVAILABLE',
    `kafka ${at}: a transaction is open in partition ${partition} of ${topic} from offset ${from} on, and hides what lies behind it; try again when it has ended (the broker ends those of dead senders, ours within a minute)`,
  )
}
