import { randomUUID } from 'node:crypto'
import type { Crew } from './crew.ts'
import type { StopPoint } from './ledger.ts'

const points: StopPoint[] = ['start', 'signal', 'settle']

/** Generous: a loaded machine is slow, and a pause that nobody takes over is void, not wrong. */
const patienceMs = 8000

/**
 * The targeted pause: a letter stops its first worker between claim and settle; when another worker has claimed
 * and settled it, the first one goes on and answers. Repeated until `wanted` such answers were seen, or time is up.
 */
export async function pauseLate(crew: Crew, wanted: number, untilMs: number): Promise<void> {
  for (let done = 0, tried = 0; done < wanted && performance.now() < untilMs; tried++)
    if (await once(crew, tried)) done++
}

/** True when a late answer was seen. Whoever stands still for a letter that is watched no more goes on by itself. */
async function once(crew: Crew, n: number): Promise<boolean> {
  const id = randomUUID()
  const watch = crew.watch(id)
  try {
    crew.ask({ id, n, point: points[n % points.length]! })
    const stop = await watch.first(({ e }) => e === 'self.stop' || e === 'settled', patienceMs)
    if (stop?.e !== 'self.stop') return false
    const { p, epoch } = stop
    const taken = await watch.first(
      (line) => line.e === 'settled' && line.as === 'resolved' && line.epoch > epoch,
      patienceMs,
    )
    if (!taken || !crew.resumeLate(p, id, epoch)) return false
    const answer = await watch.first(
      (line) =>
        line.p === p && (line.e === 'lease.lost' || line.e === 'settled') && line.epoch === epoch,
      2 * patienceMs,
    )
    return answer !== undefined
  } finally {
    watch.end()
  }
}
