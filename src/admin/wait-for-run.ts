import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { isActive, type DeadLetter } from '../letter/letter.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'

export interface WaitOptions {
  store: Pick<Store, 'get'>
  clock: Clock
  hub: Pick<ObserverHub, 'on'>
  /** Interval of polling for changes by other processes. */
  pollMs: number
  signal?: AbortSignal | undefined
}

/**
 * Resolves with the letter after its next run, or after someone settled it without a run. Runs of
 * this process are known by events, those of other processes by polling. A released run does not
 * count. Rejects with LETTER_NOT_FOUND if the letter is removed, and with the reason of an aborted
 * signal.
 */
export function waitForRun(letter: DeadLetter, options: WaitOptions): Promise<DeadLetter> {
  const { store, clock, hub, pollMs, signal } = options
  const entries = countEntries(letter)
  return new Promise((resolve, reject) => {
    let cancel: () => void = () => {}
    const cleanups: (() => void)[] = []
    const end = (act: () => void): void => {
      cancel()
      for (const cleanup of cleanups) cleanup()
      cleanups.length = 0
      act()
    }
    const check = (now: DeadLetter): boolean => {
      const ended = hasEnded(now, entries)
      if (ended) end(() => resolve(now))
      return ended
    }
    const poll = async (): Promise<void> => {
      try {
        const [now] = await store.get([letter.id])
        if (!now) throw new RedriveError('LETTER_NOT_FOUND', `letter ${letter.id} was removed`)
        if (check(now)) return
      } catch (error) {
        // The store is unreachable, so the result is unknown: keep polling.
        if (!(error instanceof RedriveError && error.retryHelps)) return end(() => reject(error))
      }
      if (cleanups.length > 0) cancel = clock.timer(pollMs, () => void poll())
    }
    cleanups.push(
      hub.on('changed', (event) => {
        if ('letter' in event && event.letter?.id === letter.id) check(event.letter)
      }),
    )
    const abort = (): void => end(() => reject(signal!.reason as Error))
    signal?.addEventListener('abort', abort)
    cleanups.push(() => signal?.removeEventListener('abort', abort))
    // Finds changes from before the listener was added.
    void poll()
  })
}

/** Number of entries that the history ever had. */
function countEntries({ history, historyOmitted }: DeadLetter): number {
  return history.length + historyOmitted
}

/** Whether the letter has settled or failed since: rescheduled by a run or `fail`, or deferred. */
function hasEnded(now: DeadLetter, entries: number): boolean {
  if (!isActive(now.state)) return true
  const fresh = countEntries(now) - entries
  return (
    fresh > 0 &&
    now.history.slice(-fresh).some(({ action, failure }) => failure && action !== 'occur')
  )
}
