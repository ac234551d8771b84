import { sleep, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter, Payload } from '../letter/letter.ts'
import { park, release, resolve, type Change, type Mover } from '../letter/moves.ts'
import { encodePayload } from '../letter/payload.ts'
import type { FailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { changeAfterFailure } from '../policy/after-run.ts'
import type { Customs } from '../policy/backoff.ts'
import type { Redaction } from '../policy/redaction/redaction.ts'
import type { RetryLimits } from '../policy/retry-limits.ts'
import type { ApplyResult, Store } from '../store.ts'
import type { ActiveRun } from './execute.ts'
import type { RunResult } from './run-result.ts'

export interface SettleOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  worker: string
  backoffs: Customs
  /** Retry limits of a queue. */
  limitsFor: (queue: string) => RetryLimits
  /** What is hidden of the letters of a queue. Default: nothing. */
  redactionFor?: (queue: string) => Redaction | undefined
  leaseMs: number
  maxPayloadBytes: number
  /** Gets every failed run whose change was written: the letter before it. Never throws. */
  onFailedRun?: (letter: DeadLetter, change: Change) => void
}

interface Settlement {
  run: ActiveRun
  change: Change
  durationMs: number
}

/**
 * Writes the results of runs whose leases are still valid, and emits the events in the order in
 * which the runs ended. Results of one tick are one call of the store. While the store is
 * unreachable, each change is tried again as long as its lease may be valid. After that the letter
 * is claimed again, so an unknown outcome never counts as success.
 */
export class Settler {
  readonly #options: SettleOptions
  readonly #onSettled: (runs: readonly ActiveRun[]) => void
  /** Results of this tick. */
  #ended: Settlement[] = []
  #size = 0

  /** Calls `onSettled` once results are written or given up. */
  constructor(options: SettleOptions, onSettled: (runs: readonly ActiveRun[]) => void) {
    this.#options = options
    this.#onSettled = onSettled
  }

  /** Number of results that are not settled yet. */
  get size(): number {
    return this.#size
  }

  settle(run: ActiveRun, result: RunResult, durationMs: number): void {
    const change = changeFor(run.letter, result, this.#options)
    this.#size += 1
    this.#ended.push({ run, change, durationMs })
    if (this.#ended.length === 1) queueMicrotask(() => void this.#writeEnded())
  }

  async #writeEnded(): Promise<void> {
    const { store, clock, leaseMs } = this.#options
    const ended = this.#ended
    this.#ended = []
    const giveUpMs = clock.mono() + leaseMs
    let results: ApplyResult[]
    try {
      results = await store.apply(ended.map(({ change }) => change))
    } catch (error) {
      // One by one, so that a change that the store cannot write does not hold up the others.
      for (const one of ended) void this.#writeAgain(one, error, giveUpMs)
      return
    }
    this.#finish(ended, results)
  }

  async #writeAgain(one: Settlement, firstError: unknown, giveUpMs: number): Promise<void> {
    const { store, clock, hub } = this.#options
    const { run, change } = one
    let error = firstError
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
      hub.emit({ type: 'error', during: `settling of letter ${run.letter.id}`, error })
      if (clock.mono() + pauseMs > giveUpMs) return this.#finish([one], [undefined])
      await sleep(clock, pauseMs * (0.5 + clock.random()))
      try {
        const [result] = await store.apply([change])
        const outcome = result === 'written' ? result : await findOutcome(change, store)
        return this.#finish([one], [outcome])
      } catch (again) {
        error = again
      }
    }
  }

  /** Undefined: the outcome is unknown. */
  #finish(settled: readonly Settlement[], results: readonly (ApplyResult | undefined)[]): void {
    const { hub, worker, onFailedRun } = this.#options
    for (const [index, { run, change, durationMs }] of settled.entries()) {
      const result = results[index]
      if (result === 'written') {
        if (change.set.failure) onFailedRun?.(run.letter, change)
        hub.emitChangeOf(run.letter, change, durationMs)
      } else if (result) hub.emit({ type: 'lease-lost', letter: run.letter, worker })
    }
    this.#size -= settled.length
    this.#onSettled(settled.map(({ run }) => run))
  }
}

const firstPauseMs = 50

/**
 * An earlier attempt with an unknown outcome may have been written: then the history has the entry
 * of this run. If the letter is gone, the outcome stays unknown.
 */
async function findOutcome({ id, entry }: Change, store: Store): Promise<ApplyResult | undefined> {
  const [now] = await store.get([id])
  if (!now) return undefined
  const isWritten = now.history.some(
    ({ epoch, action, actor }) =>
      epoch === entry.epoch && action === entry.action && actor === entry.actor,
  )
  return isWritten ? 'written' : 'conflict'
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
 * With `redactStored` it is redacted: if that hides something, the letter is parked when it is due.
 * A payload that was lossy stays so. Input above the limit is not sent to the store, which might
 * reject it at every attempt; input that is no larger than the present payload always fits.
 */
function remainingPayload(
  letter: DeadLetter,
  report: FailedResult | undefined,
  { hub, maxPayloadBytes, redactionFor }: SettleOptions,
): { payload?: Payload; note?: string } {
  if (report?.remaining === undefined) return {}
  const { version, restOf = version, lossy, size } = letter.payload
  const redaction = redactionFor?.(letter.queue)
  const encoded = encodePayload(report.remaining)
  const remaining = redaction?.storedPayload(encoded) ?? encoded
  if (remaining.size > Math.max(maxPayloadBytes, size)) {
    const problem = `the remaining input of ${letter.queue} has ${remaining.size} bytes, the limit is ${maxPayloadBytes} (maxPayloadBytes): return a reference instead`
    const error = new RedriveError('TOO_LARGE', problem)
    hub.emit({ type: 'error', during: `settling of letter ${letter.id}`, error })
    return { note: tooLargeNote }
  }
  const payload = { ...remaining, version: version + 1, restOf, ...(lossy ? { lossy } : {}) }
  const given = redaction?.atCapture && report.note ? redaction.text(report.note) : report.note
  return { payload, note: given ?? partlyDoneNote }
}
