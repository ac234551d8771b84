import type { Clock } from '../clock/clock.ts'
import { Backoff } from '../clock/retry.ts'

const failureDelay = { firstMs: 250, maxMs: 10_000 }

/**
 * Takes turn after turn until it is stopped, with a growing delay after each turn that rejects.
 * Errors of turns are reported, and never end the loop.
 */
export class PollLoop {
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>

  constructor(
    clock: Clock,
    turn: (signal: AbortSignal) => Promise<void>,
    onError?: (error: unknown) => void,
  ) {
    this.#ended = this.#run(new Backoff(clock, failureDelay), turn, onError)
  }

  /** Resolves once the current turn has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#ended
  }

  async #run(
    backoff: Backoff,
    turn: (signal: AbortSignal) => Promise<void>,
    onError?: (error: unknown) => void,
  ): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted)
      try {
        await turn(signal)
        backoff.reset()
      } catch (error) {
        if (signal.aborted) return
        reportError(onError, error)
        await backoff.wait(signal)
      }
  }
}

/**
 * Waits until all letters of a turn are stored or have failed, and returns whether all are stored.
 * Failures are reported and do not block the others. Rejects if every letter failed: then the store
 * is probably unreachable, and the turn is repeated after a delay.
 */
export async function allStored(
  storing: readonly Promise<void>[],
  onError?: (error: unknown) => void,
): Promise<boolean> {
  const failed = (await Promise.allSettled(storing)).filter((one) => one.status === 'rejected')
  const [first, ...others] = failed
  if (!first) return true
  const isAll = failed.length === storing.length
  for (const { reason } of isAll ? others : failed) reportError(onError, reason)
  if (isAll) throw first.reason
  return false
}

/** Calls the listener. Errors that it throws are ignored: they must not stop the tap. */
export function reportError(onError: ((error: unknown) => void) | undefined, error: unknown): void {
  try {
    onError?.(error)
  } catch {
    // Ignored, as documented.
  }
}
