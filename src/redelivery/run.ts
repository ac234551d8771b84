import type { ReplayOutcome } from '../letter/result.ts'
import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { insideRedelivery } from '../run-context.ts'

/** One redelivery, as its handler sees it. */
export interface Run<Input = unknown> {
  letter: DeadLetter
  /** The payload, decoded. Each run gets its own copy. */
  input: Input
  /** 1 for the first run after capture. */
  attempt: number
  /** Aborts on timeout, when the lease is lost, and when the queue stops. */
  signal: AbortSignal
  /**
   * The same for the guarded call and every run of its letter, until the payload is edited or the letter is replayed. Pass
   * it on to whatever must not happen twice.
   */
  idempotencyKey: string
  /** The fencing token of this run. A store of yours that refuses smaller ones is safe from paused workers. */
  epoch: number
}

/**
 * Runs a letter again. Returning means resolved; throwing, or returning `{ ok: false, error }`, means failed. With
 * `remaining` beside the error, the next run gets that as its input, unless it is too large to be kept.
 */
export type Handler<Input = unknown> = (run: Run<Input>) => unknown

/** What became of a replay: the broker has the message, or the letter was replayed as often as it may be. */
/**
 * Publishes a letter to its source again, as it is now. Resolves once the broker has the message, durably if it can; done twice it is
 * one message, where the broker deduplicates. `maxReplays` applies unless the route has a limit of its own.
 */
export type ReplayRoute = (
  letter: DeadLetter,
  limits: { maxReplays: number },
) => Promise<ReplayOutcome>

/** A handler whose runs publish letters to their source again: `dlq.replay` uses its `replay` for the letters of its queue. */
export type ReplayingHandler = Handler & { readonly replay: ReplayRoute }

/** Refused when it is given, since letters would spend their retries on it. */
export function checkHandler(queue: string, handler: unknown): void {
  if (typeof handler !== 'function')
    throw new RedriveError('INVALID_INPUT', `the handler of ${queue} must be a function`)
}

export type Outcome =
  | { kind: 'done'; value: unknown }
  | { kind: 'failed'; error: unknown }
  /** The time was up. `late` settles when the handler ends after all. */
  | { kind: 'timed-out'; late: Promise<unknown> }

export class HandlerTimeout extends Error {
  constructor(timeoutMs: number) {
    super(`the handler did not end within ${timeoutMs} ms (timeoutMs)`)
    this.name = 'TimeoutError'
  }
}

/**
 * Runs the handler within its time. When the time is up its signal aborts, and it has `graceMs` to end: work
 * that ends well within the grace counts as done, since running it again would do it twice.
 */
export async function runHandler(
  handler: Handler,
  run: Run,
  limits: { clock: Clock; timeoutMs: number; graceMs: number; controller: AbortController },
): Promise<Outcome> {
  const { clock, timeoutMs, graceMs, controller } = limits
  const work: Promise<Outcome> = insideRedelivery(run.letter, async () => handler(run)).then(
    (value): Outcome => ({ kind: 'done', value }),
    (error: unknown): Outcome => ({ kind: 'failed', error }),
  )
  let cancel: () => void = () => {}
  const after = (ms: number): Promise<undefined> =>
    new Promise((resolve) => {
      cancel = clock.timer(ms, () => resolve(undefined))
    })
  const inTime = await Promise.race([work, after(timeoutMs)])
  cancel()
  if (inTime) return inTime
  const timeout = new HandlerTimeout(timeoutMs)
  controller.abort(timeout)
  const inGrace = await Promise.race([work, after(graceMs)])
  cancel()
  if (!inGrace) return { kind: 'timed-out', late: work }
  return inGrace.kind === 'done' ? inGrace : { kind: 'failed', error: timeout }
}
