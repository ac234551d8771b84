import { AsyncLocalStorage } from 'node:async_hooks'
import { Alarm } from '../clock/alarm.ts'
import type { Clock } from '../clock/clock.ts'
import { Deadlines } from '../clock/deadlines.ts'
import { endsWithin } from '../clock/ends-within.ts'
import { Lifecycle } from '../clock/lifecycle.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { toMs, type Timestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'
import { execute, type ActiveRun, type ExecuteContext, type ExecuteOptions } from './execute.ts'
import { FlowControl, type FlowControlOptions } from './flow/flow-control.ts'
import type { LimiterStatus } from './flow/limiter.ts'
import { LeaseKeeper, type HeldLease } from './leases.ts'
import { checkHandler, type Handler } from './run.ts'
import { Settler, type SettleOptions } from './settler.ts'
import type { WorkerRegistry } from './worker-registry.ts'

export interface RedeliveryOptions extends SettleOptions, FlowControlOptions, ExecuteOptions {
  claimBatch: number
  pollMs: number
  /** Names of the queues from which nothing is claimed at present. */
  pausedQueues: () => Promise<ReadonlySet<string>>
}

/**
 * Claims due letters, runs them and settles the results. One pump at a time turns free slots into
 * claims. Events of this process wake the pump (a free slot, a due letter, a new handler); changes
 * by other processes are found by polling. A slot is freed when its handler returns. Settling
 * continues in the background so that the next claim can share a transaction with it.
 *
 * While runs are shorter than claims, one batch is claimed ahead, so that this process and the
 * store do not wait for each other. Letters that arrive before slots are free wait for them, at
 * most for the time between two polls: then they are released for other workers.
 */
export class Redelivery {
  readonly #options: RedeliveryOptions
  readonly #store: Store
  readonly #clock: Clock
  readonly #hub: ObserverHub
  readonly #registry: WorkerRegistry
  readonly #handlers = new Map<string, Handler>()
  readonly #context: ExecuteContext
  readonly #leases: LeaseKeeper
  readonly #settler: Settler
  readonly #flow: FlowControl
  readonly #alarm: Alarm
  readonly #lifecycle: Lifecycle<[drainMs: number]>
  readonly #running = new Set<ActiveRun>()
  /** Letters that were claimed ahead and wait for a slot. */
  readonly #waiting = new Set<ActiveRun>()
  #waitingSinceMs = 0
  /** Average duration of the latest runs. Infinity: no run has ended yet. */
  #runMs = Infinity
  /** Duration of the latest claim. */
  #claimMs = 0
  /** Letters that were taken from handlers which ignore their signal. Each occupies a slot. */
  readonly #stuck = new Set<DeadLetter>()
  /**
   * Snapshot of the async context at construction: runs must not inherit the context of whoever
   * woke the pump, for example a handler that captured a letter.
   */
  readonly #inOwnContext = AsyncLocalStorage.snapshot()
  #pumping: Promise<void> | undefined
  #pumpAgain = false
  #unwatch: (() => void) | undefined
  #onIdle: (() => void)[] = []

  constructor(options: RedeliveryOptions) {
    this.#options = options
    this.#store = options.store
    this.#clock = options.clock
    this.#hub = options.hub
    this.#registry = options.registry
    const onStuck = (run: ActiveRun): void => this.#reportStuck(run)
    const deadlines = new Deadlines(options.clock)
    this.#context = { ...options, handlers: this.#handlers, deadlines, onStuck }
    const onError = (error: unknown): void => this.#reportError('renewal of leases', error)
    this.#leases = new LeaseKeeper({ ...options, onError })
    this.#settler = new Settler(options, (runs) => this.#finish(runs))
    this.#flow = new FlowControl(options)
    this.#alarm = new Alarm(options.clock, () => this.#pump())
    this.#lifecycle = new Lifecycle({
      start: () => {
        this.#unwatch = this.#store.watch(() => this.#pump())
        this.#pump()
      },
      stop: (drainMs) => this.#drain(drainMs),
    })
    this.#hub.setDueListener((at) => this.#wakeAt(at))
  }

  get started(): boolean {
    return this.#lifecycle.started
  }

  /** Number of handlers that run now. */
  get active(): number {
    return this.#running.size
  }

  /** Whether stuck handlers occupy all slots, and a description of the problem for people. */
  get stuck(): { all: boolean; problems: string[] } {
    const { maxConcurrent } = this.#options
    const count = this.#stuck.size
    const queues = [...new Set([...this.#stuck].map(({ queue }) => queue))].join(', ')
    const problem = `${count} of ${maxConcurrent} slots (maxConcurrent) are blocked by handlers of ${queues} that timed out but ignore run.signal. Make the handlers stop when the signal aborts; restart this process to free the slots.`
    return { all: count >= maxConcurrent, problems: count > 0 ? [problem] : [] }
  }

  /** State of the flow control of each queue and dependency. */
  get limiters(): LimiterStatus[] {
    return this.#flow.status()
  }

  handle(queue: string, handler: Handler): void {
    checkHandler(queue, handler)
    this.#handlers.set(queue, handler)
    this.#registry.addQueue(queue)
    this.#pump()
  }

  start(): void {
    this.#lifecycle.start()
  }

  /** Claims again now, because queues were paused or resumed. */
  wake(): void {
    this.#pump()
  }

  /**
   * Stops claiming and waits for running handlers. After `drainMs` the signals of the rest abort;
   * after the grace period their letters are released, uncounted, for another worker.
   */
  stop(drainMs: number): Promise<void> {
    return this.#lifecycle.stop(drainMs)
  }

  async #drain(drainMs: number): Promise<void> {
    this.#unwatch?.()
    await this.#pumping
    // Only now: a claim in progress sets the alarm when it ends.
    this.#alarm.off()
    this.#releaseWaiting()
    if (!(await this.#isIdleWithin(drainMs))) {
      const reason = new RedriveError('CLOSED', 'the queue is stopping')
      for (const { lease } of this.#running) lease.controller.abort(reason)
      const graceMs = Math.min(this.#options.graceMs, drainMs)
      if (!(await this.#isIdleWithin(graceMs))) this.#releaseAll()
    }
    await this.#whenIdle()
  }

  #wakeAt(at: Timestamp): void {
    if (this.started) this.#alarm.within(toMs(at) - this.#clock.now())
  }

  #pump(): void {
    if (!this.started) return
    if (this.#waiting.size > 0) this.#inOwnContext(() => this.#startWaiting())
    this.#pumpAgain = true
    this.#pumping ??= this.#inOwnContext(() => this.#pumpUntilIdle()).finally(() => {
      this.#pumping = undefined
      if (this.#pumpAgain) this.#pump()
    })
  }

  async #pumpUntilIdle(): Promise<void> {
    // Wait one microtask so that runs which end in the same tick share a claim.
    await Promise.resolve()
    while (this.#pumpAgain && this.started) {
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

  /** Jitter keeps processes from polling at the same time. */
  #pollPause(): number {
    return this.#options.pollMs * (0.8 + 0.4 * this.#clock.random())
  }

  /** Slots in which no handler runs. Negative if stuck handlers exceed the slots. */
  #emptySlots(): number {
    return this.#options.maxConcurrent - this.#running.size - this.#stuck.size
  }

  /** Empty slots that no waiting letter will take. */
  #freeSlots(): number {
    return this.#emptySlots() - this.#waiting.size
  }

  /** How many letters may be claimed now. Queues with a limit are never claimed ahead. */
  #claimable(capacity: number): number {
    const { maxConcurrent, claimBatch } = this.#options
    if (this.#settler.size > 2 * maxConcurrent) return 0
    const mayClaimAhead =
      capacity === Infinity && this.#waiting.size === 0 && this.#runMs <= this.#claimMs
    const free = mayClaimAhead ? maxConcurrent : this.#freeSlots()
    return Math.min(free, claimBatch, capacity)
  }

  async #claimOnce(): Promise<void> {
    const { worker, leaseMs, pollMs } = this.#options
    let pauseMs = this.#pollPause()
    const paused = await this.#options.pausedQueues()
    const handled = [...this.#handlers.keys()].filter((queue) => !paused.has(queue))
    this.#releasePaused(paused)
    if (this.#waiting.size > 0 && this.#clock.mono() - this.#waitingSinceMs >= pollMs)
      this.#releaseWaiting()
    for (const { queues, capacity } of this.#flow.groups(handled)) {
      const limit = this.#claimable(capacity())
      if (limit <= 0) continue
      const requestedMs = this.#clock.mono()
      const claim = await this.#store.claim({ worker, limit, leaseMs, queues })
      const claimedMs = this.#clock.mono()
      this.#claimMs = claimedMs - requestedMs
      this.#waitingSinceMs = claimedMs
      for (const letter of claim.letters) this.#hold(letter, requestedMs + leaseMs)
      this.#startWaiting()
      const mayHaveMore = claim.letters.length === limit
      if (mayHaveMore && this.#claimable(capacity()) > 0) this.#pumpAgain = true
      // The clock of a store may be behind ours: then polling finds what is due next.
      const dueInMs = claim.nextDueAt ? toMs(claim.nextDueAt) - this.#clock.now() : 0
      if (dueInMs > 0) pauseMs = Math.min(pauseMs, dueInMs)
    }
    pauseMs = Math.min(pauseMs, this.#flow.waitMs(handled))
    if (this.#freeSlots() > 0) this.#alarm.within(Math.max(1, pauseMs))
    else if (this.#waiting.size > 0) this.#alarm.within(pollMs)
  }

  /** Holds the lease of a claimed letter, which waits for a slot. */
  #hold(letter: DeadLetter, leaseEndsMs: number): void {
    const { id, epoch } = letter
    const { worker } = this.#options
    const controller = new AbortController()
    const lease: HeldLease = { id, epoch, worker, leaseEndsMs, controller }
    this.#leases.hold(lease)
    this.#waiting.add({ letter, lease, handling: undefined, isReleased: false })
  }

  /** Starts letters that wait, as long as there are slots. */
  #startWaiting(): void {
    for (const run of this.#waiting) {
      if (this.#emptySlots() <= 0) return
      this.#waiting.delete(run)
      this.#running.add(run)
      void this.#run(run)
    }
  }

  /** Releases letters that wait. Runs take longer than expected, or the queue stops. */
  #releaseWaiting(): void {
    for (const run of this.#waiting) this.#settler.settle(run, { kind: 'released' }, 0)
    this.#waiting.clear()
    this.#runMs = Infinity
  }

  /** Releases letters that wait although their queue was paused meanwhile. */
  #releasePaused(paused: ReadonlySet<string>): void {
    for (const run of this.#waiting) {
      if (!paused.has(run.letter.queue)) continue
      this.#waiting.delete(run)
      this.#settler.settle(run, { kind: 'released' }, 0)
    }
  }

  /** Executes a run, lets the flow control learn from it, frees the slot and settles the letter. */
  async #run(run: ActiveRun): Promise<void> {
    const startedMs = this.#clock.mono()
    this.#flow.begin(run.letter, startedMs)
    const executed = await execute(run, this.#context)
    const endedMs = this.#clock.mono()
    this.#runMs = averageOf(this.#runMs, endedMs - startedMs)
    const result = this.#flow.end(run.letter, executed, endedMs)
    if (run.isReleased) return
    this.#running.delete(run)
    this.#settler.settle(run, result, endedMs - startedMs)
    this.#pump()
  }

  #finish(runs: readonly ActiveRun[]): void {
    for (const { lease } of runs) this.#leases.drop(lease)
    if (this.#isIdle()) for (const notify of this.#onIdle.splice(0)) notify()
    this.#pump()
  }

  /**
   * A handler that still runs after its letter was taken away occupies its slot until it returns.
   */
  #holdSlot({ letter, handling }: ActiveRun): void {
    if (!handling) return
    this.#stuck.add(letter)
    void handling.finally(() => {
      this.#stuck.delete(letter)
      this.#pump()
    })
  }

  #reportStuck(run: ActiveRun): void {
    this.#holdSlot(run)
    this.#hub.emit({ type: 'stuck', letter: run.letter, overdueMs: this.#options.graceMs })
  }

  #releaseAll(): void {
    for (const run of this.#running) {
      this.#holdSlot(run)
      run.isReleased = true
      this.#settler.settle(run, { kind: 'released' }, 0)
    }
    this.#running.clear()
  }

  #isIdle(): boolean {
    return this.#running.size === 0 && this.#waiting.size === 0 && this.#settler.size === 0
  }

  async #isIdleWithin(ms: number): Promise<boolean> {
    return this.#isIdle() || endsWithin(this.#clock, this.#whenIdle(), ms)
  }

  async #whenIdle(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  #reportError(during: string, error: unknown): void {
    this.#hub.emit({ type: 'error', during, error })
  }
}

/** The average of recent runs: each weighs a tenth less than the one after it. */
function averageOf(average: number, durationMs: number): number {
  return average === Infinity ? durationMs : 0.9 * average + 0.1 * durationMs
}
