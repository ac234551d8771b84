import { sleep, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, Payload } from '../letter/letter.ts'
import { park, release, resolve, withChange, type Change, type Mover } from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'
import type { FailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { changeAfterFailure } from '../policy/after-run.ts'
import type { Customs } from '../policy/backoff.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'
import type { ApplyResult, Store } from '../store.ts'
import type { RunResult } from './run-result.ts'

export interface SettleOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  worker: string
  backoffs: Customs
  /** Retry limits of a queue. */
  limitsFor: (queue: string) => RetryLimits
  leaseMs: number
  maxPayloadBytes: number
}

/**
 * Writes the result of a run if the lease is still valid, and emits the events. While the store is
 * unreachable it retries as long as the lease may be valid. After that the letter is claimed again,
 * so an unknown outcome never counts as success.
 */
export async function settle(
  letter: DeadLetter,
  result: RunResult,
  options: SettleOptions,
  durationMs: number,
): Promise<void> {
  const { hub, worker } = options
  const change = changeFor(letter, result, options)
  const written = await persist(letter, change, options)
  if (written === 'written') hub.emitChange(withChange(letter, change), change, durationMs)
  else if (written) hub.emit({ type: 'lease-lost', letter, worker })
}

/** The change that a result makes, by the worker that holds the lease. */
function changeFor(letter: DeadLetter, result: RunResult, options: SettleOptions): Change {
  const { clock, hub, worker, backoffs, limitsFor } = options
  const by: Mover = { at: toTimestamp(clock.now()), actor: worker, guard: 'epoch' }
  if (result.kind === 'resolved') return resolve(letter, by)
  if (result.kind === 'unfit') {
    const { reason, retries, note } = result
    return park(letter, { ...by, note }, { reason, retries })
  }
  const { payload, note } = remainingPayload(letter, result.report, options)
  const mover = note === undefined ? by : { ...by, note }
  if (result.kind === 'released') return release(letter, mover, { payload })
  const { judged, template, deferMs } = result
  const { change, problem } = changeAfterFailure({
    letter,
    by: mover,
    judged,
    limits: limitsFor(letter.queue),
    random: () => clock.random(),
    customs: backoffs,
    policyOverride: template?.backoff,
    payload,
    deferMs,
  })
  if (problem) hub.emit({ type: 'error', during: `backoff of ${letter.queue}`, error: problem })
  return change
}

const partlyDoneNote = 'part of the work is done: the next run gets the remaining input'
const tooLargeNote = 'the remaining input is too large to store: the next run gets all of it again'

/**
 * The next version of the payload if the handler returned `remaining`, and a note for the history.
 * A payload that was lossy stays so. Input above the limit is not sent to the store, which might
 * reject it at every attempt; input that is no larger than the present payload always fits.
 */
function remainingPayload(
  letter: DeadLetter,
  report: FailedResult | undefined,
  { hub, maxPayloadBytes }: SettleOptions,
): { payload?: Payload; note?: string } {
  if (report?.remaining === undefined) return {}
  const { version, restOf = version, lossy, size } = letter.payload
  const remaining = encodePayload(report.remaining)
  if (remaining.size > Math.max(maxPayloadBytes, size)) {
    const problem = `the remaining input of ${letter.queue} has ${remaining.size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): return a reference instead`
    const error = new RedriveError('TOO_LARGE', problem)
    hub.emit({ type: 'error', during: `settling of letter ${letter.id}`, error })
    return { note: tooLargeNote }
  }
  const payload = { ...remaining, version: version + 1, restOf, ...(lossy ? { lossy } : {}) }
  return { payload, note: report.note ?? partlyDoneNote }
}

const firstPauseMs = 50

/** Undefined: the outcome is unknown. */
async function persist(
  letter: DeadLetter,
  change: Change,
  options: SettleOptions,
): Promise<ApplyResult | undefined> {
  const { store, clock, hub } = options
  const giveUpMs = clock.mono() + options.leaseMs
  for (let pauseMs = firstPauseMs, failures = 0; ; pauseMs *= 2, failures++) {
    try {
      const [result] = await store.apply([change])
      if (failures === 0 || result === 'written') return result
      return await findOutcome(letter, change, store)
    } catch (error) {
      hub.emit({ type: 'error', during: `settling of letter ${letter.id}`, error })
      if (clock.mono() + pauseMs > giveUpMs) return undefined
      await sleep(clock, pauseMs * (0.5 + clock.random()))
    }
  }
}

/**
 * An earlier attempt with an unknown outcome may have been written: then the history has the entry
 * of this run. If the letter is gone, the outcome stays unknown.
 */
async function findOutcome(
  letter: DeadLetter,
  { entry }: Change,
  store: Store,
): Promise<ApplyResult | undefined> {
  const [now] = await store.get([letter.id])
  if (!now) return undefined
  const isWritten = now.history.some(
    ({ epoch, action, actor }) =>
      epoch === entry.epoch && action === entry.action && actor === entry.actor,
  )
  return isWritten ? 'written' : 'conflict'
}
