import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '../clock/clock.ts'
import { hasCode, RedriveError } from '../errors.ts'
import { idempotencyKeyOf } from '../letter/idempotency-key.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { decodePayload } from '../letter/payload.ts'
import { failedResultOf, type FailedResult } from '../letter/result.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Rule } from '../policy/classify.ts'
import { decideClaimed } from '../policy/decide.ts'
import { understand } from '../policy/judge.ts'
import type { Store } from '../store.ts'
import { Alarm } from '../clock/alarm.ts'
import { Brakes, type BrakeOptions } from './brakes.ts'
import type { GateStatus } from './gate.ts'
import { LeaseKeeper, type Held } from './leases.ts'
import {
  checkHandler,
  HandlerTimeout,
  runHandler,
  type Handler,
  type Outcome,
  type Run,
} from './run.ts'
import { settle, type SettleOptions, type Verdict } from './settle.ts'

export interface RedeliveryOptions extends SettleOptions, BrakeOptions {
  claimBatch: number
  pollMs: number
  graceMs: number
  timeoutMsFor: (queue: string) => number
  classifierRules: readonly Rule[]
}

interface Running {
  letter: DeadLetter
  held: Held
  /** Its handler has begun, and neither ended nor run out of time. */
  working: boolean
  /** Set when the run was given back: whatever it still answers is ignored. */
  givenBack: boolean
}

/**
 * OUT: claims what is due, runs it, settles it. One pump at a time turns free slots into claims. It is woken by
 * what this process knows (a slot came free, a letter falls due, a handler came), and polls for what only other
 * processes know. A slot is free again when its handler ends; the settle goes on meanwhile, so that the next claim and
 * the last settles share a write.
 */
export class Redelivery {
  readonly #options: RedeliveryOptions
  readonly #store: Store
  readonly #clock: Clock
  readonly #hub: ObserverHub
  readonly #handlers = new Map<string, Handler>()
  readonly #leases: LeaseKeeper
  readonly #brakes: Brakes
  readonly #alarm: Alarm
  readonly #running = new Set<Running>()
  readonly #settling = new Set<Promise<void>>()
  /** Letters that were taken from handlers that ignored their aborted signal and still run. Each keeps a slot. */
  readonly #stuck = new Set<DeadLetter>()
  #started = false
  /** Whether the last word was start or stop. */
  #wanted = false
  #stopping: Promise<void> | undefined
  /** Why signals abort when the queue stops: a run that ends with it is given back, not failed. */
  readonly #stopReason = new RedriveError('CLOSED', 'the queue is stopping')
  /** Whoever wakes the pump, a handler that captures for one, has nothing to do with the runs that it begins. */
  readonly #apart = AsyncLocalStorage.snapshot()
  #pumping: Promise<void> | undefined
  #pumpAgain = false
  #unwatch: (() => void) | undefined
  #idle: (() => void)[] = []

  constructor(options: RedeliveryOptions) {
    this.#options = options
    this.#store = options.store
    this.#clock = options.clock
    this.#hub = options.hub
    this.#leases = new LeaseKeeper({
      ...options,
      onError: (error) => this.#reportError('renewal of leases', error),
    })
    this.#brakes = new Brakes(options)
    this.#alarm = new Alarm(options.clock, () => this.#pump())
  }

  get started(): boolean {
    return this.#started
  }

  /** How many handlers run now. */
  get active(): number {
    return this.#running.size
  }

  /** How many slots handlers keep that ran out of time and ignore it, and in words what to do about them. */
  get stuck(): { all: boolean; problems: string[] } {
    const { maxConcurrent } = this.#options
    const count = this.#stuck.size
    const queues = [...new Set([...this.#stuck].map(({ queue }) => queue))].join(', ')
    const problem = `${count} of ${maxConcurrent} slots (maxConcurrent) are kept by handlers of ${queues} that ran out of time and ignore run.signal: let them end when it aborts, and restart this process`
    return { all: count >= maxConcurrent, problems: count > 0 ? [problem] : [] }
  }

  get queues(): string[] {
    return [...this.#handlers.keys()]
  }

  /** How the gates of this process stand. */
  get gates(): GateStatus[] {
    return this.#brakes.status()
  }

  handle(queue: string, handler: Handler): void {
    checkHandler(queue, handler)
    this.#handlers.set(queue, handler)
    this.#pump()
  }

  /** Begins, or goes on once a stop that is under way has ended. */
  start(): void {
    this.#wanted = true
    if (this.#started || this.#stopping) return
    this.#started = true
    this.#unwatch = this.#store.watch(() => this.#pump())
    this.#pump()
  }

  /**
   * Stops claiming and waits for what runs. What still runs after `drainMs` has its signal aborted, and after
   * the grace is given back, uncounted, for another worker. All calls while it stops wait for the same end.
   */
  stop(drainMs: number): Promise<void> {
    this.#wanted = false
    if (!this.#started) return this.#stopping ?? Promise.resolve()
    this.#started = false
    this.#stopping = this.#windDown(drainMs).finally(() => {
      this.#stopping = undefined
      if (this.#wanted) this.start()
    })
    return this.#stopping
  }

  async #windDown(drainMs: number): Promise<void> {
    this.#unwatch?.()
    await this.#pumping
    // Not before: a claim that is under way asks to be woken when it has ended.
    this.#alarm.off()
    if (!(await this.#emptyWithin(drainMs))) {
      for (const { held } of this.#running) held.controller.abort(this.#stopReason)
      if (!(await this.#emptyWithin(Math.min(this.#options.graceMs, drainMs))))
        await this.#giveBackAll()
    }
    await Promise.allSettled(this.#settling)
  }

  /** A letter falls due at this moment: be awake then. */
  expect(dueMs: number): void {
    if (this.#started) this.#alarm.within(dueMs - this.#clock.now())
  }

  #pump(): void {
    if (!this.#started) return
    this.#pumpAgain = true
    this.#pumping ??= this.#apart(() => this.#pumpUntilIdle()).finally(() => {
      this.#pumping = undefined
      if (this.#pumpAgain && this.#started) this.#pump()
    })
  }

  async #pumpUntilIdle(): Promise<void> {
    // Of runs that end together the first one asks. What it asks for should be enough for all of them.
    await Promise.resolve()
    while (this.#pumpAgain && this.#started) {
      this.#pumpAgain = false
      try {
        await this.#claimOnce()
      } catch (error) {
        this.#reportError('claiming', error)
        this.#alarm.within(this.#pollPause())
        return
      }
    }
  }

  /** Polls a little apart from other processes, so that they do not all ask at once. */
  #pollPause(): number {
    return this.#options.pollMs * (0.8 + 0.4 * this.#clock.random())
  }

  #free(): number {
    const { maxConcurrent, claimBatch } = this.#options
    const unsettled = this.#settling.size > 2 * maxConcurrent
    return unsettled
      ? 0
      : Math.min(
          maxConcurrent - this.#running.size - Math.min(this.#stuck.size, maxConcurrent),
          claimBatch,
        )
  }

  async #claimOnce(): Promise<void> {
    const handled = this.queues
    let pauseMs = this.#pollPause()
    for (const { queues, room } of this.#brakes.groups(handled)) {
      const free = Math.min(this.#free(), room())
      if (free <= 0) continue
      const { worker, leaseMs } = this.#options
      const askedMs = this.#clock.mono()
      const claim = await this.#store.claim({ worker, limit: free, leaseMs, queues })
      for (const letter of claim.letters) this.#begin(letter, askedMs + leaseMs)
      const maybeMore = claim.letters.length === free
      if (maybeMore && this.#free() > 0 && room() > 0) this.#pumpAgain = true
      // A store with a clock of its own may be behind ours: what it calls due next, the poll then finds.
      const dueInMs = claim.nextDueAt ? toMs(claim.nextDueAt) - this.#clock.now() : 0
      if (dueInMs > 0) pauseMs = Math.min(pauseMs, dueInMs)
    }
    pauseMs = Math.min(pauseMs, this.#brakes.waitMs(handled))
    if (this.#free() > 0) this.#alarm.within(Math.max(1, pauseMs))
  }

  #begin(letter: DeadLetter, leaseEndsMs: number): void {
    const controller = new AbortController()
    const { worker } = this.#options
    const { id, epoch } = letter
    const held: Held = { id, epoch, worker, leaseEndsMs, controller }
    const running: Running = { letter, held, working: false, givenBack: false }
    this.#running.add(running)
    this.#leases.hold(held)
    this.#brakes.begin(letter)
    void this.#redeliver(running)
  }

  /** The life of a run: fit to run? decode, run, settle. */
  async #redeliver(running: Running): Promise<void> {
    const { letter, held } = running
    const startedMs = this.#clock.mono()
    const outcome = await this.#outcome(running)
    const durationMs = this.#clock.mono() - startedMs
    const verdict = this.#brakes.end(letter, outcome)
    if (running.givenBack) return
    this.#running.delete(running)
    const done = this.#settle(letter, verdict, durationMs).finally(() => {
      this.#leases.letGo(held)
      this.#settling.delete(done)
      if (this.#settling.size === 0 && this.#running.size === 0)
        for (const tell of this.#idle.splice(0)) tell()
      this.#pump()
    })
    this.#settling.add(done)
    this.#pump()
  }

  async #outcome(running: Running): Promise<Verdict> {
    const { letter, held } = running
    // The answer to the claim took longer than the lease: someone else may run it by now.
    if (this.#clock.mono() >= held.leaseEndsMs) return { kind: 'released' }
    const fitness = decideClaimed(letter, this.#clock.now())
    if (fitness.move === 'park') return { kind: 'unfit', parking: fitness }
    const handler = this.#handlers.get(letter.queue)
    if (!handler) return { kind: 'released' }
    let input: unknown
    try {
      input = decodePayload(letter.payload)
    } catch (error) {
      const note = `the payload cannot be decoded as ${letter.payload.contentType}: ${String(error)}`
      return {
        kind: 'unfit',
        parking: { move: 'park', reason: 'malformed', retries: letter.retries - 1, note },
      }
    }
    this.#hub.emit({ type: 'started', letter, worker: this.#options.worker })
    const run: Run = {
      letter,
      input,
      attempt: letter.retries,
      signal: held.controller.signal,
      idempotencyKey: idempotencyKeyOf(letter),
      epoch: letter.epoch,
    }
    const timeoutMs = this.#options.timeoutMsFor(letter.queue)
    const { clock, graceMs } = this.#options
    running.working = true
    const outcome = await runHandler(handler, run, {
      clock,
      timeoutMs,
      graceMs,
      controller: held.controller,
    })
    running.working = false
    // It was given back, and its handler has ended only now.
    if (outcome.kind !== 'timed-out' && this.#stuck.delete(letter)) this.#pump()
    return this.#verdictOf(outcome, letter, timeoutMs, held.controller.signal)
  }

  #verdictOf(
    outcome: Outcome,
    letter: DeadLetter,
    timeoutMs: number,
    { reason }: AbortSignal,
  ): Verdict {
    if (outcome.kind === 'timed-out') {
      this.#stuck.add(letter)
      this.#hub.emit({ type: 'stuck', letter, overdueMs: this.#options.graceMs })
      void outcome.late.finally(() => {
        this.#stuck.delete(letter)
        this.#pump()
      })
      return this.#failed(letter, new HandlerTimeout(timeoutMs))
    }
    const failed = outcome.kind === 'failed' ? outcome : failedResultOf(outcome.value)
    if (!failed) return { kind: 'resolved' }
    const said = 'ok' in failed ? failed : undefined
    // What ends because we asked it to says nothing about what it needs.
    const isOurs = reason === this.#stopReason || isLoss(reason, failed.error)
    return isOurs ? { kind: 'released', said } : this.#failed(letter, failed.error, said)
  }

  #failed(letter: DeadLetter, error: unknown, said?: FailedResult): Verdict {
    const at = toTimestamp(this.#clock.now())
    const report = (problem: string): void =>
      this.#reportError(`classifying ${letter.queue}`, problem)
    const understood = understand(error, letter.queue, at, this.#options.classifierRules, report)
    return { kind: 'failed', ...understood, said }
  }

  async #settle(letter: DeadLetter, verdict: Verdict, durationMs: number): Promise<void> {
    const settled = await settle(letter, verdict, this.#options, durationMs)
    if (settled?.retryAt) this.expect(toMs(settled.retryAt))
  }

  async #giveBackAll(): Promise<void> {
    const left = [...this.#running]
    for (const running of left) {
      this.#running.delete(running)
      if (running.working) this.#stuck.add(running.letter)
      running.givenBack = true
    }
    await Promise.all(
      left.map(async ({ letter, held }) => {
        await this.#settle(letter, { kind: 'released' }, 0)
        this.#leases.letGo(held)
      }),
    )
  }

  /** True when nothing runs or settles any more, within the time given. */
  async #emptyWithin(ms: number): Promise<boolean> {
    if (this.#running.size === 0 && this.#settling.size === 0) return true
    let cancel = (): void => {}
    const timeUp = new Promise<boolean>((resolve) => {
      cancel = this.#clock.timer(ms, () => resolve(false))
    })
    const empty = new Promise<boolean>((resolve) => this.#idle.push(() => resolve(true)))
    const result = await Promise.race([empty, timeUp])
    cancel()
    return result
  }

  #reportError(during: string, error: unknown): void {
    this.#hub.emit({ type: 'error', during, error })
  }
}

/** Whether a handler failed only because it was told that its lease is lost. */
function isLoss(reason: unknown, error: unknown): boolean {
  if (!hasCode(reason, 'LEASE_LOST')) return false
  return error === reason || (error instanceof Error && error.name === 'AbortError')
}
