import { randomUUID } from 'node:crypto'
import type { ProcessGroup } from './process-group.ts'
import type { StopPoint } from './ledger.ts'

const points: StopPoint[] = ['start', 'signal', 'settle']

/** Generous for a busy machine. A pause without a takeover is not counted. */
const patienceMs = 8000

/**
 * The targeted pause: a letter stops its first worker between claim and settle. When another worker
 * has claimed and settled it, the first one resumes and sends its late result. Repeats until
 * `wanted` late results were seen or the time is up.
 */
export async function pauseLate(
  processes: ProcessGroup,
  wanted: number,
  untilMs: number,
): Promise<void> {
  for (let done = 0, tried = 0; done < wanted && performance.now() < untilMs; tried++)
    if (await pauseOnce(processes, tried)) done++
}

/** True when a late result was seen. A worker stopped for an unwatched letter is resumed. */
async function pauseOnce(processes: ProcessGroup, n: number): Promise<boolean> {
  const id = randomUUID()
  const watch = processes.watch(id)
  try {
    processes.ask({ id, n, point: points[n % points.length]! })
    const stop = await watch.first(({ e }) => e === 'self.stop' || e === 'settled', patienceMs)
    if (stop?.e !== 'self.stop') return false
    const { p, epoch } = stop
    const taken = await watch.first(
      (line) => line.e === 'settled' && line.as === 'resolved' && line.epoch > epoch,
      patienceMs,
    )
    if (!taken || !processes.resumeLate(p, id, epoch)) return false
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
