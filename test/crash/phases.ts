/** What goes wrong at a time: mostly processes, mostly the server and the ways to it, or nothing. */
export type Phase = 'processes' | 'server' | 'quiet'

interface Stretch {
  phase: Phase
  ms: number
}

/** Faults come for a while, then there is quiet for a while, so that both kinds of time are seen. */
const withoutServer: Stretch[] = [
  { phase: 'processes', ms: 5000 },
  { phase: 'quiet', ms: 1000 },
]

/** A process that hears nothing any more must live long enough to notice it, so both kinds of fault take turns. */
const withServer: Stretch[] = [
  { phase: 'server', ms: 9000 },
  { phase: 'processes', ms: 4000 },
  { phase: 'quiet', ms: 2000 },
]

/** The phase after so much of a run, over and over. */
export function phaseAt(elapsedMs: number, onServer: boolean): Phase {
  const round = onServer ? withServer : withoutServer
  let left = elapsedMs % round.reduce((sum, { ms }) => sum + ms, 0)
  for (const { phase, ms } of round) {
    if (left < ms) return phase
    left -= ms
  }
  return 'quiet'
}
