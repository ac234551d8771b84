import { assemble } from '../assembly.ts'
import type { CaptureContext } from '../capture/context.ts'
import { ResilientExecutor } from '../capture/executor/executor.ts'
import type { ExecutorOptions } from '../capture/executor/resilience.ts'
import {
  enqueuedCapture,
  guardFunction,
  operationCapture,
  type Enqueued,
  type GuardedRun,
  type OperationInput,
} from '../capture/operation.ts'
import type { WorkflowOptions } from '../capture/workflow/options.ts'
import { WorkflowGuard } from '../capture/workflow/workflow.ts'
import { checkKeys } from '../check/keys.ts'
import { systemClock } from '../clock/clock.ts'
import { openStore } from '../connect/open.ts'
import { RedriveError } from '../errors.ts'
import { type DeadLetter } from '../letter/letter.ts'
import { hasMethods } from '../letter/reading.ts'
import {
  letterDestination,
  type Destination,
  type LetterDestinationOptions,
} from '../loops/destination.ts'
import { ObserverHub, type EventOf, type EventType, type RedriveEvent } from '../observer.ts'
import { readOptions, type QueueOptions, type QueuePolicy } from '../options/options.ts'
import { pipelineKeeper, type PipelineKeeper } from '../pipeline/dead/capture.ts'
import type { ProcessReport, ReportedLoop } from '../redelivery/process-report.ts'
import { checkHandler, type Handler, type Run } from '../redelivery/run.ts'
import type { Store } from '../store.ts'
import { keepForeign, type ForeignLetterOptions } from '../taps/capture.ts'
import type { Keep } from '../taps/tap.ts'
import { QueueActions } from './actions.ts'

export interface GuardSettings<A> extends QueuePolicy {
  /** False: once the letter is stored, the guarded call resolves with undefined. Default: true. */
  rethrow?: boolean
  /** Context of a failure of this input, such as a dedupeKey, a lane or tags. */
  context?: (input: A) => CaptureContext
}

/**
 * The dead letter queue: stores failed work, runs it again when it is due, and lets people inspect
 * and change it. Every method delegates to one of its parts.
 */
export class DeadLetterQueue extends QueueActions {
  #closing: Promise<void> | undefined

  /**
   * Opens the store, creates it if needed, and checks the options. Nothing runs before `start()`.
   */
  static async open(store: string | Store, options: QueueOptions = {}): Promise<DeadLetterQueue> {
    const settings = readOptions(options)
    const clock = options.clock ?? systemClock
    const hub = new ObserverHub()
    for (const observer of settings.observers) hub.on('*', observer)
    const opened = await openStore(store, settings, clock, hub)
    return new DeadLetterQueue(assemble(opened, settings, clock, hub, options.worker))
  }

  // capture

  /** Stores a failed operation. Resolves once the letter is stored, durably if the store is. */
  async enqueue(
    operation: OperationInput,
    error: unknown,
    context: CaptureContext = {},
  ): Promise<DeadLetter> {
    this.#checkOpen()
    return this.parts.capturer.capture(operationCapture(operation, error, context))
  }

  /** Stores many failures in few writes. Returns the ids of their letters in the same order. */
  async enqueueAll(failures: readonly Enqueued[]): Promise<string[]> {
    this.#checkOpen()
    return this.parts.capturer.captureAll(failures, enqueuedCapture)
  }

  /**
   * Stores some failures in one write. Resolves with the outcome of each, in the same order: one
   * that cannot be stored does not stop the others.
   */
  async enqueueEach(failures: readonly Enqueued[]): Promise<PromiseSettledResult<DeadLetter>[]> {
    this.#checkOpen()
    return this.parts.capturer.captureEach(failures, enqueuedCapture)
  }

  /**
   * Wraps a function: its failures are stored, and retried by calling it again with the same input.
   * The original error is rethrown once the letter is stored; with `rethrow: false` the call then
   * resolves with undefined. The function gets `run` in every call; `run.idempotencyKey` is the
   * same in the first call and in its retries.
   */
  guard<A, R>(
    queue: string,
    fn: (input: A, run: GuardedRun<A>) => Promise<R>,
    options?: GuardSettings<A> & { rethrow?: true },
  ): (input: A) => Promise<R>
  guard<A, R>(
    queue: string,
    fn: (input: A, run: GuardedRun<A>) => Promise<R>,
    options: GuardSettings<A>,
  ): (input: A) => Promise<R | undefined>
  guard<A, R>(
    queue: string,
    fn: (input: A, run: GuardedRun<A>) => Promise<R>,
    options: GuardSettings<A> = {},
  ): (input: A) => Promise<R | undefined> {
    // Checked here, because `handle` sees only the wrapper.
    checkHandler(queue, fn)
    const { rethrow = true, context, ...policy } = options
    this.handle(queue, (run) => fn(run.input as A, run as Run<A>), policy)
    return guardFunction(async (input: A, run) => fn(input, run), {
      ...this.parts.capture,
      queue,
      rethrow,
      ...(context ? { contextOf: context as (input: unknown) => CaptureContext } : {}),
    })
  }

  /**
   * Runs calls with named policies of retries, timeouts and breakers, and stores final failures.
   */
  executor(options: ExecutorOptions = {}): ResilientExecutor {
    return new ResilientExecutor(options, this.parts.capture)
  }

  /** Runs workflows and stores the failed ones according to its strategy. */
  workflow<T = unknown>(options: WorkflowOptions<T> = {}): WorkflowGuard<T> {
    return new WorkflowGuard(options, {
      ...this.parts.capture,
      policy: (queue, policy) => this.parts.policies.set(queue, policy),
      handle: (queue, handler, policy) => this.handle(queue, handler, policy),
    })
  }

  /** A destination that stores the dead messages of loops as letters. */
  deadLetters(options: LetterDestinationOptions = {}): Destination {
    const { capturer, routes } = this.parts
    return letterDestination(capturer, options, this.parts.store, (source) =>
      routes.addSource(source),
    )
  }

  /**
   * A destination that stores the dead letters of other brokers. They are parked until a person
   * acts; the handler `returnToSource(tap)` returns them to their source.
   */
  foreignLetters(options: ForeignLetterOptions = {}): Keep {
    return keepForeign(this.parts.capturer, options)
  }

  /** A destination that stores dead records of a pipeline: `pipeline.deadLetters(dlq)`. */
  pipelineLetters(): PipelineKeeper {
    return pipelineKeeper(this.parts.capturer, this.parts.admin, this.parts.store)
  }

  // redelivery

  /**
   * Registers the handler that runs letters of this queue again, replacing an earlier one. `Input`
   * is the type of the payload; it is not checked.
   */
  handle<Input = unknown>(queue: string, handler: Handler<Input>, policy: QueuePolicy = {}): void {
    this.parts.policies.set(queue, policy)
    this.parts.redelivery.handle(queue, handler as Handler)
    this.parts.routes.setHandler(queue, handler as Handler)
  }

  /**
   * Starts redelivery, bulk actions and alerts. Safe to call twice. Keeps the process alive until
   * `stop`. With `redeliver: false`, only bulk actions and alerts start.
   */
  start(): void {
    this.#checkOpen()
    const { settings, redelivery, sweeper, heartbeats, bulkRunner, alertMonitor, outbox } =
      this.parts
    if (settings.redeliver) {
      redelivery.start()
      sweeper.start()
    } else heartbeats.start()
    bulkRunner.start()
    alertMonitor?.start()
    outbox.start()
  }

  /** Sets what the list of workers says about this process. Call it before `start`. */
  describeProcess({ kind, version }: Pick<ProcessReport, 'kind' | 'version'>): void {
    this.parts.about.kind = kind
    if (version !== undefined) this.parts.about.version = version
  }

  /**
   * Adds loops of this process to what `mailboxes` lists, with the next heartbeat. Heartbeats are
   * sent between `start` and `stop`.
   */
  reportLoops(...loops: readonly ReportedLoop[]): void {
    const wrong = loops.findIndex((loop) => !hasMethods(loop, 'status'))
    if (wrong !== -1)
      throw new RedriveError(
        'INVALID_INPUT',
        `argument ${wrong + 1} of reportLoops is no loop: give a MainLoop, an EvalLoop or a DLQConsumer`,
      )
    const { about } = this.parts
    about.loops = [...new Set([...about.loops, ...loops])]
  }

  /**
   * Claims no more letters, waits up to `drainMs` (default: 10 s) for running handlers, and
   * releases the rest uncounted.
   */
  async stop(options: { drainMs?: number } = {}): Promise<void> {
    checkKeys('stop options', options, ['drainMs'])
    const { redelivery, sweeper, heartbeats, bulkRunner, alertMonitor } = this.parts
    const { outbox, groupTracker } = this.parts
    const drained = redelivery.stop(options.drainMs ?? 10_000)
    const stopped = [sweeper.stop(), heartbeats.stop(), bulkRunner.stop(), alertMonitor?.stop()]
    await Promise.all([drained, ...stopped])
    await outbox.stop()
    await groupTracker.stop()
  }

  /** Stops, and closes the store. Safe to call twice: all calls wait for the same end. */
  close(): Promise<void> {
    this.#closing ??= this.stop()
      .then(() => this.parts.routes.close())
      .then(() => this.parts.store.close())
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * Adds a listener for one type of event, or for all with `*`. Returns a function to remove it.
   */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => unknown): () => void
  on(type: '*', listener: (event: RedriveEvent) => unknown): () => void
  on(type: EventType | '*', listener: (event: never) => unknown): () => void {
    return this.parts.hub.on(type, listener as (event: RedriveEvent) => unknown)
  }

  #checkOpen(): void {
    if (this.#closing)
      throw new RedriveError('CLOSED', 'this queue is closed: call DeadLetterQueue.open() again')
  }
}
