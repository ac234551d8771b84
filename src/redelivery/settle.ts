import { sleep, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, Failure, Payload } from '../letter/letter.ts'
import {
  exhaust,
  park,
  defer,
  release,
  reschedule,
  resolve,
  withChange,
  type Change,
  type Mover,
} from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'
import type { FailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { decideAfterRun, decideDeferral, type Parking, type RunQuestion } from '../policy/decide.ts'
import type { Understood } from '../policy/judge.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'
import type { ApplyResult, Store } from '../store.ts'

export interface SettleOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  worker: string
  backoffs: Record<string, (retry: number, failure: Failure) => number>
  /** How often, or for how long, letters of a queue are retried. */
  limitsFor: (queue: string) => RetryLimits
  leaseMs: number
  maxPayloadBytes: number
}

/** What became of a run. */
export type Verdict =
  | { kind: 'resolved' }
  /** With `deferMs` the run is not counted, and the letter waits for at least so long. */
  | ({ kind: 'failed'; said?: FailedResult | undefined; deferMs?: number } & Understood)
  /** Must not run: too often already, unreadable, too late. */
  | { kind: 'unfit'; parking: Parking }
  /** Given back without being counted, with what remains of it if the run said so. */
  | { kind: 'released'; said?: FailedResult | undefined }

/** The change that a verdict asks for, by the worker that holds the lease. */
function changeFor(letter: DeadLetter, verdict: Verdict, options: SettleOptions): Change {
  const nowMs = options.clock.now()
  const by: Mover = { at: toTimestamp(nowMs), actor: options.worker, guard: 'epoch' }
  if (verdict.kind === 'resolved') return resolve(letter, by)
  if (verdict.kind === 'unfit')
    return park(letter, { ...by, note: verdict.parking.note }, verdict.parking)
  const { payload, note } = remainsOf(letter, verdict.said, options)
  const mover = note === undefined ? by : { ...by, note }
  if (verdict.kind === 'released') return release(letter, mover, { payload })
  const { judged, template } = verdict
  const to = { judged, payload }
  const question: RunQuestion = {
    letter,
    judged,
    limits: options.limitsFor(letter.queue),
    nowMs,
    random: () => options.clock.random(),
    customs: options.backoffs,
    ...(template?.backoff ? { policyOverride: template.backoff } : {}),
  }
  const deferred = decideDeferral(letter, question, verdict.deferMs)
  const next = deferred ?? decideAfterRun(question)
  if ('problem' in next && next.problem)
    options.hub.emit({ type: 'error', during: `backoff of ${letter.queue}`, error: next.problem })
  const failed = { ...to, maxRetries: next.maxRetries }
  if (next.move === 'exhaust') return exhaust(letter, mover, failed)
  if (next.move === 'park') return park(letter, mover, { ...failed, reason: next.reason })
  const { delayMs: backoffMs, policy } = next
  const retryAt = toTimestamp(nowMs + backoffMs)
  const due = { ...failed, retryAt, backoffMs, policy }
  return deferred ? defer(letter, { note: outage, ...mover }, due) : reschedule(letter, mover, due)
}

const outage = 'what it needs is down: deferred, and not counted'
const partlyDone = 'part of it is done: the next run gets what remains'
const tooLarge = 'what remains is too large to be kept: the next run gets all of it again'

/**
 * The next version of the payload, when the run said what remains, and what the history says of it. What was lost before stays
 * lost. What is too large, and larger than what the letter has, is not tried on the store: it may refuse it each time.
 */
function remainsOf(
  letter: DeadLetter,
  said: FailedResult | undefined,
  { hub, maxPayloadBytes }: SettleOptions,
): { payload?: Payload; note?: string } {
  if (said?.remaining === undefined) return {}
  const { version, restOf = version, lossy, size } = letter.payload
  const remaining = encodePayload(said.remaining)
  if (remaining.size > Math.max(maxPayloadBytes, size)) {
    const problem = `what remains of ${letter.queue} has ${remaining.size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): let it say a reference instead`
    const error = new RedriveError('TOO_LARGE', problem)
    hub.emit({ type: 'error', during: `settling of letter ${letter.id}`, error })
    return { note: tooLarge }
  }
  const payload = { ...remaining, version: version + 1, restOf, ...(lossy ? { lossy } : {}) }
  return { payload, note: said.note ?? partlyDone }
}

/**
 * Writes the result if the lease still holds, and tells the observers what became of it. While the store cannot
 * be reached it tries again for as long as the lease may hold; after that the letter is claimed anew, so an
 * unknown outcome is never taken for success.
 */
export async function settle(
  letter: DeadLetter,
  verdict: Verdict,
  options: SettleOptions,
  durationMs?: number,
): Promise<DeadLetter | undefined> {
  const change = changeFor(letter, verdict, options)
  const result = await persist(letter, change, options)
  if (result === undefined) return undefined
  if (result !== 'written') {
    options.hub.emit({ type: 'lease-lost', letter, worker: options.worker })
    return undefined
  }
  const settled = withChange(letter, change)
  announce(settled, change, options.hub, durationMs)
  return settled
}

const firstPauseMs = 50

async function persist(
  letter: DeadLetter,
  change: Change,
  options: SettleOptions,
): Promise<ApplyResult | undefined> {
  const { store, clock, hub } = options
  const giveUpAt = clock.mono() + options.leaseMs
  for (let pauseMs = firstPauseMs, tried = 0; ; pauseMs *= 2, tried++) {
    try {
      const [result] = await store.apply([change])
      if (tried === 0 || result === 'written') return result
      return await whatBecameOf(letter, change, store)
    } catch (error) {
      hub.emit({ type: 'error', during: `settling of letter ${letter.id}`, error })
      if (clock.mono() + pauseMs > giveUpAt) return undefined
      await sleep(clock, pauseMs * (0.5 + clock.random()))
    }
  }
}

/**
 * After an unknown outcome an earlier try may have been written: then the line of this run is in the history. A letter
 * that is gone tells nothing, so the outcome stays unknown.
 */
async function whatBecameOf(
  letter: DeadLetter,
  { entry }: Change,
  store: Store,
): Promise<ApplyResult | undefined> {
  const [now] = await store.get([letter.id])
  if (!now) return undefined
  const mine = now.history.some(
    ({ epoch, action, actor }) =>
      epoch === entry.epoch && action === entry.action && actor === entry.actor,
  )
  return mine ? 'written' : 'conflict'
}

/** Tells the observers which way the letter went. */
export function announce(
  letter: DeadLetter,
  change: Change,
  hub: ObserverHub,
  durationMs?: number,
): void {
  const took = durationMs === undefined ? {} : { durationMs }
  if (change.action === 'resolve') hub.emit({ type: 'resolved', letter, ...took })
  else if (change.action === 'reschedule') hub.emit({ type: 'rescheduled', letter, ...took })
  else if (change.action === 'exhaust') hub.emit({ type: 'exhausted', letter, ...took })
  else if (change.action === 'park') hub.emit({ type: 'parked', letter, ...took })
  else if (change.action === 'release') hub.emit({ type: 'released', letter })
  else if (change.action === 'replay')
    hub.emit({ type: letter.state === 'parked' ? 'parked' : 'replayed', letter })
  hub.emit({ type: 'changed', letter, change })
}
