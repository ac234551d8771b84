import { sleep, type Clock } from '../clock/clock.ts'

/** The pause after the first failure in a row; each one doubles it. */
const firstPauseMs = 250
const longestPauseMs = 10_000

export interface Reading {
  /** Resolves once the turn that was under way has ended. */
  stop(): Promise<void>
}

/** Takes turn after turn until it is stopped. After one that rejects it pauses, longer each time. */
export function reading(
  clock: Clock,
  turn: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void = () => {},
): Reading {
  const stopping = new AbortController()
  const { signal } = stopping
  const run = async (): Promise<void> => {
    let pauseMs = firstPauseMs
    while (!signal.aborted)
      try {
        await turn(signal)
        pauseMs = firstPauseMs
      } catch (error) {
        if (signal.aborted) return
        tell(onError, error)
        await sleep(clock, pauseMs * (0.5 + clock.random() / 2), signal)
        pauseMs = Math.min(2 * pauseMs, longestPauseMs)
      }
  }
  const ended = run()
  return {
    stop: async () => {
      stopping.abort()
      await ended
    },
  }
}

/**
 * Waits for all letters of a turn, and says whether all were kept. Those that failed are told, and do not hold up the others. It rejects
 * when every one failed: then it is rather the store that is away, and the turn is taken again after a pause.
 */
export async function allCarried(
  carrying: readonly Promise<void>[],
  onError: (error: unknown) => void = () => {},
): Promise<boolean> {
  const failed = (await Promise.allSettled(carrying)).filter((one) => one.status === 'rejected')
  const [first, ...others] = failed
  if (!first) return true
  const isAll = failed.length === carrying.length
  for (const { reason } of isAll ? others : failed) tell(onError, reason)
  if (isAll) throw first.reason
  return false
}

/** What a listener throws is its own. */
function tell(onError: (error: unknown) => void, error: unknown): void {
  try {
    onError(error)
  } catch {
    // Its own, as said above.
  }
}
