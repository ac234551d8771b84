import type { LetterReplayOptions, RetryOptions, ReviewInput } from './admin/admin.ts'
import type { EditInput } from './admin/edit-input.ts'
import { findGroups, type Group, type GroupQuery } from './admin/groups.ts'
import { readHealth, type Health } from './admin/health.ts'
import { formatSummary, metricsOf, type Metrics, type MetricsQuery } from './admin/metrics.ts'
import {
  checkStatistics,
  readStatistics,
  type Statistics,
  type StatisticsOptions,
} from './admin/statistics.ts'
import { assemble, type Parts } from './assembly.ts'
import type { CaptureContext } from './capture/context.ts'
import { ResilientExecutor } from './capture/executor/executor.ts'
import type { ExecutorOptions } from './capture/executor/resilience.ts'
import {
  enqueuedCapture,
  guardFunction,
  operationCapture,
  type Enqueued,
  type GuardedRun,
  type OperationInput,
} from './capture/operation.ts'
import type { WorkflowOptions } from './capture/workflow/options.ts'
import { WorkflowGuard } from './capture/workflow/workflow.ts'
import { checkQuery, checkSearch } from './check/filter.ts'
import { checkKeys, keysOf } from './check/keys.ts'
import { systemClock } from './clock/clock.ts'
import { openStore } from './connect/open.ts'
import { RedriveError } from './errors.ts'
import { states, type DeadLetter, type LetterSummary, type Payload } from './letter/letter.ts'
import type { LetterFilter, LetterQuery, Page } from './letter/query.ts'
import {
  letterDestination,
  type Destination,
  type LetterDestinationOptions,
} from './loops/destination.ts'
import { ObserverHub, type EventOf, type EventType, type RedriveEvent } from './observer.ts'
import { readOptions, type QueueOptions, type QueuePolicy } from './options/options.ts'
import { pipelineKeeper, type PipelineKeeper } from './pipeline/dead/capture.ts'
import type { LimiterStatus } from './redelivery/flow/limiter.ts'
import { checkHandler, type Handler, type Run } from './redelivery/run.ts'
import type { SearchOptions, Store } from './store.ts'
import { keepForeign, type ForeignLetterOptions } from './taps/capture.ts'
import type { Keep } from './taps/tap.ts'
import { exportOperationFile } from './transfer/operation-file/export.ts'
import { importOperationFile, type ImportReport } from './transfer/operation-file/import.ts'

export interface GuardSettings<A> extends QueuePolicy {
  /** False: once the letter is stored, the guarded call resolves with undefined. Default: true. */
  rethrow?: boolean
  /** Context of a failure of this input, such as a dedupeKey, a lane or tags. */
  context?: (input: A) => CaptureContext
}

export interface ClearOptions {
  /** The number of matching letters, as a safeguard: any other number is rejected. */
  confirm: number
  /** Name of the person who clears. Default: operator. */
  by?: string
}

const clearKeys = keysOf<ClearOptions>({ confirm: true, by: true })

/**
 * The dead letter queue: stores failed work, runs it again when it is due, and lets people inspect
 * and change it. Every method delegates to one of its parts.
 */
export class DeadLetterQueue {
  readonly #parts: Parts
  readonly #store: Store
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

  private constructor(parts: Parts) {
    this.#parts = parts
    this.#store = parts.store
  }

  // capture

  /** Stores a failed operation. Resolves once the letter is stored, durably if the store is. */
  async enqueue(
    operation: OperationInput,
    error: unknown,
    context: CaptureContext = {},
  ): Promise<DeadLetter> {
    this.#checkOpen()
    return this.#parts.capturer.capture(operationCapture(operation, error, context))
  }

  /** Stores many failures in few writes. Returns the ids of their letters in the same order. */
  async enqueueAll(failures: readonly Enqueued[]): Promise<string[]> {
    this.#checkOpen()
    return this.#parts.capturer.captureAll(failures, enqueuedCapture)
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
      ...this.#parts.capture,
      queue,
      rethrow,
      ...(context ? { contextOf: context as (input: unknown) => CaptureContext } : {}),
    })
  }

  /**
   * Runs calls with named policies of retries, timeouts and breakers, and stores final failures.
   */
  executor(options: ExecutorOptions = {}): ResilientExecutor {
    return new ResilientExecutor(options, this.#parts.capture)
  }

  /** Runs workflows and stores the failed ones according to its strategy. */
  workflow<T = unknown>(options: WorkflowOptions<T> = {}): WorkflowGuard<T> {
    return new WorkflowGuard(options, {
      ...this.#parts.capture,
      policy: (queue, policy) => this.#parts.policies.set(queue, policy),
      handle: (queue, handler, policy) => this.handle(queue, handler, policy),
    })
  }

  /** A destination that stores the dead messages of loops as letters. */
  deadLetters(options: LetterDestinationOptions = {}): Destination {
    const { capturer, routes } = this.#parts
    return letterDestination(capturer, options, this.#store, (source) => routes.addSource(source))
  }

  /**
   * A destination that stores the dead letters of other brokers. They are parked until a person
   * acts; the handler `returnToSource(tap)` returns them to their source.
   */
  foreignLetters(options: ForeignLetterOptions = {}): Keep {
    return keepForeign(this.#parts.capturer, options)
  }

  /** A destination that stores dead records of a pipeline: `pipeline.deadLetters(dlq)`. */
  pipelineLetters(): PipelineKeeper {
    return pipelineKeeper(this.#parts.capturer, this.#parts.admin, this.#store)
  }

  // redelivery

  /**
   * Registers the handler that runs letters of this queue again, replacing an earlier one. `Input`
   * is the type of the payload; it is not checked.
   */
  handle<Input = unknown>(queue: string, handler: Handler<Input>, policy: QueuePolicy = {}): void {
    this.#parts.policies.set(queue, policy)
    this.#parts.redelivery.handle(queue, handler as Handler)
    this.#parts.routes.setHandler(queue, handler as Handler)
  }

  /**
   * Starts redelivery and alerts. Safe to call twice. Keeps the process alive until `stop`. With
   * `redeliver: false`, only alerts start.
   */
  start(): void {
    this.#checkOpen()
    const { settings, redelivery, sweeper, alerts } = this.#parts
    if (settings.redeliver) {
      redelivery.start()
      sweeper.start()
    }
    alerts?.start()
  }

  /**
   * Claims no more letters, waits up to `drainMs` (default: 10 s) for running handlers, and
   * releases the rest uncounted.
   */
  async stop(options: { drainMs?: number } = {}): Promise<void> {
    checkKeys('stop options', options, ['drainMs'])
    const { redelivery, sweeper, alerts } = this.#parts
    await Promise.all([redelivery.stop(options.drainMs ?? 10_000), sweeper.stop(), alerts?.stop()])
  }

  /** Stops, and closes the store. Safe to call twice: all calls wait for the same end. */
  close(): Promise<void> {
    this.#closing ??= this.stop()
      .then(() => this.#parts.routes.close())
      .then(() => this.#store.close())
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // inspection

  async get(id: string): Promise<DeadLetter | undefined> {
    return (await this.#store.get([id]))[0]
  }

  /** The payload as captured, before any edit. */
  original(id: string): Promise<Payload | undefined> {
    return this.#store.original(id)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query?: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery = {}): Promise<Page<DeadLetter> | Page<LetterSummary>> {
    checkQuery(query)
    return this.#store.find(query)
  }

  /**
   * Letters with all these words, best match first. Needs an OpenSearch store or the option
   * `search`.
   */
  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    checkSearch(text, options)
    if (this.#store.search) return this.#store.search(text, options)
    throw new RedriveError(
      'INVALID_CONFIG',
      `a ${this.#store.powers.kind} store has no full-text search: set the option search, as in search: 'opensearch://localhost:9200', or use find({ text })`,
    )
  }

  /** Letters grouped by cause, the most frequent first. */
  groups(query: GroupQuery = {}): Promise<Page<Group>> {
    return findGroups(this.#store, query)
  }

  /** Current counts. `by` adds counts by severity or source, for which every letter may be read. */
  async stats(options: StatisticsOptions = {}): Promise<Statistics> {
    checkStatistics(options)
    const { redelivery, settings } = this.#parts
    const { started: running, active } = redelivery
    const processor = { running, active, pollMs: settings.pollMs }
    return readStatistics(this.#store, settings.maxItems, processor, options)
  }

  /**
   * Exact counters and averages that survive restarts: over the lifetime of the store, or since an
   * earlier result that is given as `since`.
   */
  async metrics(query: MetricsQuery = {}): Promise<Metrics> {
    checkKeys('metrics query', query, ['since'])
    const metrics = metricsOf(await this.#store.totals(), query)
    const { spool } = this.#parts.store
    return spool ? { ...metrics, spool: await spool() } : metrics
  }

  /** The metrics as a string for people. */
  async getSummary(): Promise<string> {
    return formatSummary(await this.metrics())
  }

  /** State of the flow control of each queue and dependency in this process. */
  flowControl(): LimiterStatus[] {
    return this.#parts.redelivery.limiters
  }

  async health(): Promise<Health> {
    const { redelivery, alerts, store } = this.#parts
    const { started: running, active, stuck } = redelivery
    const raised = (await alerts?.raised()) ?? []
    return readHealth(this.#store, { running, active }, stuck, raised, store.spool)
  }

  // actions on one letter

  /**
   * Makes the letter due now, or at `at`; a settled letter gets a fresh retry budget. With
   * `wait: true` it resolves after the next run, in any process, with the letter after it; `signal`
   * aborts the wait.
   */
  retry(id: string, by = 'operator', options: RetryOptions = {}): Promise<DeadLetter> {
    return this.#parts.admin.retry(id, by, options)
  }

  /**
   * Publishes the letter as it is now to its source, a mailbox or a topic, with its headers and its
   * lineage, and resolves it. If the message fails there, it becomes another letter with one more
   * replay. At `maxReplays` the letter is parked with the reason `replay-limit`. The message is
   * published first and recorded then: a crash in between can publish it twice but never loses it.
   * Rejects with NO_ROUTE if the source has no address or is unknown to this process.
   */
  replay(id: string, by = 'operator', options: LetterReplayOptions = {}): Promise<DeadLetter> {
    return this.#parts.admin.replay(id, by, options)
  }

  resolve(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.resolve(id, by)
  }

  /** Reports a failed run that happened elsewhere. It counts like a run of a handler. */
  fail(id: string, error: unknown, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.fail(id, error, by)
  }

  /** Parks the letter for review. */
  park(id: string, note?: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.park(id, note, by)
  }

  review(id: string, decision: ReviewInput): Promise<DeadLetter> {
    return this.#parts.admin.review(id, decision)
  }

  edit(id: string, edit: EditInput): Promise<DeadLetter> {
    return this.#parts.admin.edit(id, edit)
  }

  undoEdit(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.undoEdit(id, by)
  }

  archive(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.archive(id, by)
  }

  restore(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.restore(id, by)
  }

  /** Removes the letter permanently and returns it. */
  remove(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#parts.admin.remove(id, by)
  }

  /**
   * Removes all matching letters that do not run. `confirm` must be their number, as a safeguard.
   */
  async clear(filter: LetterFilter, options: ClearOptions): Promise<number> {
    checkKeys('clear options', options, clearKeys)
    return this.#parts.admin.clear(filter, options.confirm, options.by ?? 'operator')
  }

  // operation files

  /**
   * Imports a JSON file of operations that another queue wrote. Importing it again adds nothing.
   */
  importOperations(text: string): Promise<ImportReport> {
    return importOperationFile(this.#store, text, this.#parts.capacity)
  }

  /** Exports all matching letters as such a file. Default: all letters, also archived ones. */
  exportOperations(filter: LetterFilter = { state: [...states] }): Promise<string> {
    return exportOperationFile(this.#store, filter)
  }

  /**
   * Adds a listener for one type of event, or for all with `*`. Returns a function to remove it.
   */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => unknown): () => void
  on(type: '*', listener: (event: RedriveEvent) => unknown): () => void
  on(type: EventType | '*', listener: (event: never) => unknown): () => void {
    return this.#parts.hub.on(type, listener as (event: RedriveEvent) => unknown)
  }

  #checkOpen(): void {
    if (this.#closing)
      throw new RedriveError('CLOSED', 'this queue is closed: call DeadLetterQueue.open() again')
  }
}
