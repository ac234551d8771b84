import { AsyncLocalStorage } from 'node:async_hooks'
import { Alarm } from '../clock/alarm.ts'
import type { Clock } from '../clock/clock.ts'
import { endsWithin } from '../clock/ends-within.ts'
import { Lifecycle } from '../clock/lifecycle.ts'
import { RedriveError } from '../errors.ts'
import type { DeadLetter } from '../letter/letter.ts'
import { toMs } from '../letter/time.ts'
import type { ObserverHub, RedriveEvent } from '../observer.ts'
import type { Store } from '../store.ts'
import { execute, type ActiveRun, type ExecuteContext, type ExecuteOptions } from './execute.ts'
import { FlowControl, type FlowControlOptions } from './flow/flow-control.ts'
import type { LimiterStatus } from './flow/limiter.ts'
import { LeaseKeeper, type HeldLease } from './leases.ts'
import { checkHandler, type Handler } from './run.ts'
import { settle, type SettleOptions } from './settle.ts'
import type { WorkerRegistry } from './worker-registry.ts'

export interface RedeliveryOptions extends SettleOptions, FlowControlOptions, ExecuteOptions {
  claimBatch: number
  pollMs: number
}

/**
 * Claims due letters, runs them and settles the results. One pump at a time turns free slots into
 * claims. Events of this process wake the pump (a free slot, a due letter, a new handler); changes
 * by other processes are found by polling. A slot is freed when its handler returns. Settling
 * continues in the background so that the next claim can share a transaction with it.
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
  readonly #flow: FlowControl
  readonly #alarm: Alarm
  readonly #lifecycle: Lifecycle<[drainMs: number]>
  readonly #running = new Set<ActiveRun>()
  readonly #settling = new Set<Promise<void>>()
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
    this.#context = { ...options, handlers: this.#handlers, onStuck }
    const onError = (error: unknown): void => this.#reportError('renewal of leases', error)
    this.#leases = new LeaseKeeper({ ...options, onError })
    this.#flow = new FlowControl(options)
    this.#alarm = new Alarm(options.clock, () => this.#pump())
    this.#lifecycle = new Lifecycle({
      start: () => {
        this.#unwatch = this.#store.watch(() => this.#pump())
        this.#pump()
      },
      stop: (drainMs) => this.#drain(drainMs),
    })
    // Every change by this process is an event: the only way that it learns of due times.
    this.#hub.on('captured', (event) => this.#wakeWhenDue(event))
    this.#hub.on('changed', (event) => this.#wakeWhenDue(event))
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
    if (!(await this.#isIdleWithin(drainMs))) {
      const reason = new RedriveError('CLOSED', 'the queue is stopping')
      for (const { lease } of this.#running) lease.controller.abort(reason)
      const graceMs = Math.min(this.#options.graceMs, drainMs)
      if (!(await this.#isIdleWithin(graceMs))) await this.#releaseAll()
    }
    await Promise.allSettled(this.#settling)
  }

  #wakeWhenDue(event: RedriveEvent): void {
    if (!this.started || !('letter' in event)) return
    const { state, retryAt } = event.letter ?? {}
    if (state === 'pending' && retryAt) this.#alarm.within(toMs(retryAt) - this.#clock.now())
  }

  #pump(): void {
    if (!this.started) return
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

  #freeSlots(): number {
    const { maxConcurrent, claimBatch } = this.#options
    if (this.#settling.size > 2 * maxConcurrent) return 0
    const occupied = this.#running.size + Math.min(this.#stuck.size, maxConcurrent)
    return Math.min(maxConcurrent - occupied, claimBatch)
  }

  async #claimOnce(): Promise<void> {
    const handled = [...this.#handlers.keys()]
    const { worker, leaseMs } = this.#options
    let pauseMs = this.#pollPause()
    for (const { queues, capacity } of this.#flow.groups(handled)) {
      const limit = Math.min(this.#freeSlots(), capacity())
      if (limit <= 0) continue
      const requestedMs = this.#clock.mono()
      const claim = await this.#store.claim({ worker, limit, leaseMs, queues })
      for (const letter of claim.letters) this.#begin(letter, requestedMs + leaseMs)
      const mayHaveMore = claim.letters.length === limit
      if (mayHaveMore && this.#freeSlots() > 0 && capacity() > 0) this.#pumpAgain = true
      // The clock of a store may be behind ours: then polling finds what is due next.
      const dueInMs = claim.nextDueAt ? toMs(claim.nextDueAt) - this.#clock.now() : 0
      if (dueInMs > 0) pauseMs = Math.min(pauseMs, dueInMs)
    }
    pauseMs = Math.min(pauseMs, this.#flow.waitMs(handled))
    if (this.#freeSlots() > 0) this.#alarm.within(Math.max(1, pauseMs))
  }

  #begin(letter: DeadLetter, leaseEndsMs: number): void {
    const { id, epoch } = letter
    const { worker } = this.#options
    const controller = new AbortController()
    const lease: HeldLease = { id, epoch, worker, leaseEndsMs, controller }
    const run: ActiveRun = { letter, lease, handling: undefined, isReleased: false }
    this.#running.add(run)
    this.#leases.hold(lease)
    this.#flow.begin(letter)
    void this.#run(run)
  }

  /** Executes a run, lets the flow control learn from it, frees the slot and settles the letter. */
  async #run(run: ActiveRun): Promise<void> {
    const { letter, lease } = run
    const startedMs = this.#clock.mono()
    const executed = await execute(run, this.#context)
    const durationMs = this.#clock.mono() - startedMs
    const result = this.#flow.end(letter, executed)
    if (run.isReleased) return
    this.#running.delete(run)
    const settling = settle(letter, result, this.#options, durationMs).finally(() => {
      this.#leases.drop(lease)
      this.#settling.delete(settling)
      if (this.#isIdle()) for (const notify of this.#onIdle.splice(0)) notify()
      this.#pump()
    })
    this.#settling.add(settling)
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

  async #releaseAll(): Promise<void> {
    const runs = [...this.#running]
    for (const run of runs) {
      this.#running.delete(run)
      this.#holdSlot(run)
      run.isReleased = true
    }
    await Promise.all(
      runs.map(async ({ letter, lease }) => {
        await settle(letter, { kind: 'released' }, this.#options, 0)
        this.#leases.drop(lease)
      }),
    )
  }

  #isIdle(): boolean {
    return this.#running.size === 0 && this.#settling.size === 0
  }

  async #isIdleWithin(ms: number): Promise<boolean> {
    if (this.#isIdle()) return true
    const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve))
    return endsWithin(this.#clock, idle, ms)
  }

  #reportError(during: string, error: unknown): void {
    this.#hub.emit({ type: 'error', during, error })
  }
}
