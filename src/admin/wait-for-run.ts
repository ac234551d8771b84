import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { isActive, type DeadLetter } from '../letter/letter.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'

export interface WaitOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  /** How often the store is asked what other processes did. */
  pollMs: number
  signal?: AbortSignal | undefined
}

/**
 * Resolves with the letter once its next run has ended, or once somebody settled it without a run. Runs of this process are known by
 * their events, those of other processes by polling. A run that was given back before it ended does not count. Rejects with
 * LETTER_NOT_FOUND when the letter is removed, and with the reason of the signal when that aborts.
 */
export function waitForRun(letter: DeadLetter, options: WaitOptions): Promise<DeadLetter> {
  const { store, clock, hub, pollMs, signal } = options
  const entries = entriesOf(letter)
  return new Promise((resolve, reject) => {
    let cancel: () => void = () => {}
    const undo: (() => void)[] = []
    const end = (act: () => void): void => {
      cancel()
      for (const one of undo) one()
      undo.length = 0
      act()
    }
    const look = (now: DeadLetter): boolean => {
      const ended = hasEnded(now, entries)
      if (ended) end(() => resolve(now))
      return ended
    }
    const poll = async (): Promise<void> => {
      try {
        const [now] = await store.get([letter.id])
        if (!now) throw new RedriveError('LETTER_NOT_FOUND', `letter ${letter.id} was removed`)
        if (look(now)) return
      } catch (error) {
        // While the store cannot be reached, nobody knows how the run ended.
        if (!(error instanceof RedriveError && error.retryHelps)) return end(() => reject(error))
      }
      if (undo.length > 0) cancel = clock.timer(pollMs, () => void poll())
    }
    undo.push(
      hub.on('changed', (event) => {
        if ('letter' in event && event.letter?.id === letter.id) look(event.letter)
      }),
    )
    const abort = (): void => end(() => reject(signal?.reason as Error))
    signal?.addEventListener('abort', abort, { once: true })
    undo.push(() => signal?.removeEventListener('abort', abort))
    // What happened before the events were heard.
    void poll()
  })
}

/** Entries that the history ever had. */
function entriesOf({ history, historyOmitted }: DeadLetter): number {
  return history.length + historyOmitted
}

/** Settled, or failed since: rescheduled by a run or by `fail`, or deferred while what it needs is down. */
function hasEnded(now: DeadLetter, entries: number): boolean {
  if (!isActive(now.state)) return true
  const fresh = entriesOf(now) - entries
  return (
    fresh > 0 &&
    now.history.slice(-fresh).some(({ action, failure }) => failure && action !== 'occur')
  )
}
