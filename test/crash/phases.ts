/** Which faults happen: mostly of processes, mostly of the server and its connections, or none. */
export type Phase = 'processes' | 'server' | 'quiet'

interface Stretch {
  phase: Phase
  ms: number
}

/** Faults alternate with quiet times. */
const withoutServer: Stretch[] = [
  { phase: 'processes', ms: 5000 },
  { phase: 'quiet', ms: 1000 },
]

/** The two kinds of faults alternate: a disconnected process must live long enough to notice it. */
const withServer: Stretch[] = [
  { phase: 'server', ms: 9000 },
  { phase: 'processes', ms: 4000 },
  { phase: 'quiet', ms: 2000 },
]

/** The phase at a time of the run. The rounds repeat. */
export function phaseAt(elapsedMs: number, onServer: boolean): Phase {
  const round = onServer ? withServer : withoutServer
  let left = elapsedMs % round.reduce((sum, { ms }) => sum + ms, 0)
  for (const { phase, ms } of round) {
    if (left < ms) return phase
    left -= ms
  }
  return 'quiet'
}
