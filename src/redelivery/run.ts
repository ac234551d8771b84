import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import type { ReplayOutcome } from '../letter/result.ts'

/** One run of a letter, as its handler sees it. */
export interface Run<Input = unknown> {
  letter: DeadLetter
  /** The decoded payload. Each run gets its own copy. */
  input: Input
  /** 1 for the first run after capture. */
  attempt: number
  /** Aborts on timeout, when the lease is lost, and when the queue stops. */
  signal: AbortSignal
  /**
   * The same for the guarded call and all runs of its letter, until the payload is edited or the
   * letter is replayed. Pass it to every operation that must not happen twice.
   */
  idempotencyKey: string
  /** Fencing token of this run. A store that rejects smaller tokens is safe from paused workers. */
  epoch: number
}

/**
 * Runs a letter again. Returning resolves the letter; throwing, or returning `{ ok: false, error
 * }`, is a failure. With `remaining` next to the error, the next run gets that as its input, unless
 * it is too large to be stored.
 */
export type Handler<Input = unknown> = (run: Run<Input>) => unknown

/**
 * Publishes a letter to its source again, as it is now. Resolves once the broker has the message,
 * durably if it can. If the broker deduplicates, publishing twice gives one message. `maxReplays`
 * applies unless the route has its own limit.
 */
export type ReplayRoute = (
  letter: DeadLetter,
  limits: { maxReplays: number },
) => Promise<ReplayOutcome>

/** A handler that publishes letters to their source. `dlq.replay` calls its `replay`. */
export type ReplayingHandler = Handler & { readonly replay: ReplayRoute }

/** Rejects a handler that is not a function: each letter would use up its retries on it. */
export function checkHandler(queue: string, handler: unknown): void {
  if (typeof handler !== 'function')
    throw new RedriveError('INVALID_INPUT', `the handler of ${queue} must be a function`)
}
