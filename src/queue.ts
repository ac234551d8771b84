import { hostname } from 'node:os'
import {
  Admin,
  type EditInput,
  type LetterReplayOptions,
  type RetryOptions,
  type ReviewInput,
} from './admin/admin.ts'
import { readMeasures } from './observers/alerts/measures.ts'
import { AlertMonitor } from './observers/alerts/monitor.ts'
import { Capturer } from './capture/capture.ts'
import type { CaptureContext } from './capture/context.ts'
import { ResilientExecutor } from './capture/executor/executor.ts'
import { keepForeign, type ForeignLetterOptions } from './taps/capture.ts'
import { pipelineKeeper, type PipelineKeeper } from './pipeline/dead/capture.ts'
import {
  enqueuedCapture,
  guarded,
  operationCapture,
  type Enqueued,
  type GuardedRun,
  type OperationInput,
} from './capture/operation.ts'
import type { ExecutorOptions } from './capture/executor/resilience.ts'
import { WorkflowGuard } from './capture/workflow/workflow.ts'
import type { WorkflowOptions } from './capture/workflow/options.ts'
import { checkQuery, checkSearch } from './check/filter.ts'
import { systemClock, type Clock } from './clock/clock.ts'
import { RedriveError } from './errors.ts'
import { groupsOf, type Group, type GroupQuery } from './admin/groups.ts'
import { checkKeys, keysOf } from './check/keys.ts'
import { states, type DeadLetter, type LetterSummary, type Payload } from './letter/letter.ts'
import type { LetterFilter, LetterQuery, Page } from './letter/query.ts'
import { toMs } from './letter/time.ts'
import { importOperationFile, type ImportReport } from './transfer/operation-file/import.ts'
import { exportOperationFile } from './transfer/operation-file/export.ts'
import {
  letterDestination,
  type Destination,
  type LetterDestinationOptions,
} from './loops/destination.ts'
import { ObserverHub, type EventOf, type EventType, type RedriveEvent } from './observer.ts'
import { capacityOf, openStore, type OpenedStore } from './connect/open.ts'
import {
  ownOf,
  readOptions,
  type QueueOptions,
  type QueuePolicy,
  type Settings,
} from './options/options.ts'
import { Policies } from './options/per-queue.ts'
import type { Rule } from './policy/classify.ts'
import type { GateStatus } from './redelivery/gate.ts'
import { Redelivery } from './redelivery/redelivery.ts'
import { checkHandler, type Handler, type Run } from './redelivery/run.ts'
import { announce } from './redelivery/settle.ts'
import { Sweeper } from './redelivery/sweep.ts'
import { ReplayRoutes } from './targets/replay-routes.ts'
import {
  checkStatistics,
  metricsOf,
  readHealth,
  readStatistics,
  summaryOf,
  type Health,
  type Metrics,
  type MetricsQuery,
  type SpoolStatus,
  type Statistics,
  type StatisticsOptions,
} from './admin/statistics.ts'
import type { Capacity, SearchOptions, Store } from './store.ts'
import type { Keep } from './taps/tap.ts'

export interface GuardSettings<A> extends QueuePolicy {
  /** False: once the letter is kept, the guarded call resolves with undefined instead of throwing. */
  rethrow?: boolean
  /** What to say about a failure of this input: a dedupeKey, a lane, tags. */
  context?: (input: A) => CaptureContext
}

export interface ClearOptions {
  /** How many letters match, as a safeguard: any other number is refused. */
  confirm: number
  /** Who clears, for the history. Default: operator. */
  by?: string
}

const clearKeys = keysOf<ClearOptions>({ confirm: true, by: true })

/**
 * The dead letter queue: keeps what failed, runs it again when it is due, and lets people look and act. It wires the rooms and
 * delegates; this file is the only one that knows their order.
 */
export class DeadLetterQueue {
  readonly #store: Store
  readonly #settings: Settings
  readonly #policies: Policies
  readonly #capacity: Capacity | undefined
  readonly #hub: ObserverHub
  readonly #spool: (() => Promise<SpoolStatus>) | undefined
  readonly #capturer: Capturer
  /** The parts that guards, executors and workflows need to capture. */
  readonly #captureParts: {
    capturer: Capturer
    hub: ObserverHub
    clock: Clock
    rules: readonly Rule[]
  }
  readonly #redelivery: Redelivery
  readonly #sweeper: Sweeper
  readonly #alerts: AlertMonitor | undefined
  readonly #admin: Admin
  readonly #routes: ReplayRoutes
  #closing: Promise<void> | undefined

  /** Opens the store, creating it when it is not there, and checks the options. Nothing runs before `start()`. */
  static async open(store: string | Store, options: QueueOptions = {}): Promise<DeadLetterQueue> {
    const settings = readOptions(options)
    const clock = options.clock ?? systemClock
    const hub = new ObserverHub()
    for (const observer of settings.observers) hub.on('*', observer)
    const opened = await openStore(store, settings, clock, hub)
    return new DeadLetterQueue(opened, settings, clock, hub, options.worker)
  }

  private constructor(
    store: OpenedStore,
    settings: Settings,
    clock: Clock,
    hub: ObserverHub,
    worker?: string,
  ) {
    this.#store = store
    this.#spool = store.spool
    this.#settings = settings
    this.#policies = new Policies(settings)
    this.#hub = hub
    const { rules: classifierRules, backoffs } = settings
    this.#capacity = capacityOf(settings)
    const limitsFor = (queue: string): Settings => this.#policies.of(queue)
    const judging = { store, clock, hub: this.#hub, classifierRules, backoffs, limitsFor }
    this.#capturer = new Capturer({
      ...judging,
      maxPayloadBytes: settings.maxPayloadBytes,
      capacity: this.#capacity,
      enabled: settings.capture,
      app: { host: hostname(), pid: process.pid, ...settings.app },
      rulesFor: (queue) => this.#policies.of(queue),
    })
    this.#captureParts = { capturer: this.#capturer, hub, clock, rules: classifierRules }
    const named = worker ?? `${hostname()}-${process.pid}-${clock.id().slice(-8)}`
    this.#redelivery = new Redelivery({
      ...settings,
      ...judging,
      worker: named,
      timeoutMsFor: (queue) => this.#policies.of(queue).timeoutMs,
      brakesFor: (queue) => this.#policies.of(queue),
      brakesOf: (dependency) => ownOf(settings.dependencies, dependency) ?? {},
      workersFor: (queues) => this.#sweeper.workersFor(queues),
    })
    this.#sweeper = new Sweeper({
      ...judging,
      worker: named,
      sweepMs: settings.sweepMs,
      queues: () => this.#redelivery.queues,
      retentionFor: (queue) => this.#policies.of(queue).retention,
    })
    this.#alerts = settings.alerts
      ? new AlertMonitor({
          store,
          clock,
          hub,
          rules: settings.alerts,
          everyMs: settings.alertEveryMs,
          measure: () => readMeasures(store, settings.maxItems),
        })
      : undefined
    this.#routes = new ReplayRoutes({ ...settings, clock })
    this.#admin = new Admin({
      ...judging,
      pollMs: settings.pollMs,
      publish: (letter, to) => this.#routes.publish(letter, to),
      maxPayloadBytes: settings.maxPayloadBytes,
      announce: (letter, change) => announce(letter, change, this.#hub),
    })
    this.#hub.on('captured', (event) => this.#expect(event))
    this.#hub.on('changed', (event) => this.#expect(event))
  }

  /** What this process learns of due times wakes the redelivery; what others write is found by polling. */
  #expect(event: RedriveEvent): void {
    if ('letter' in event && event.letter.state === 'pending' && event.letter.retryAt)
      this.#redelivery.expect(toMs(event.letter.retryAt))
  }

  // in

  /** Keeps a failed operation. When it resolves, the letter is in the store, durable if the store is. */
  async enqueue(
    operation: OperationInput,
    error: unknown,
    context: CaptureContext = {},
  ): Promise<DeadLetter> {
    this.#mustBeOpen()
    return this.#capturer.capture(operationCapture(operation, error, context))
  }

  /** Keeps many at once, in few writes; answers with the ids of their letters in the order given. */
  async enqueueAll(failures: readonly Enqueued[]): Promise<string[]> {
    this.#mustBeOpen()
    return this.#capturer.captureAll(failures, enqueuedCapture)
  }

  /**
   * Wraps a function: its failures are kept, and retried by calling it again with the same input. The original
   * error is rethrown once the letter is stored; with `rethrow: false`, the call then resolves with undefined. The function gets
   * `run` in every call; `run.idempotencyKey` is the same in the first call and in its retries.
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
    // Around it stands a function of ours, which would pass for a handler.
    checkHandler(queue, fn)
    const { rethrow = true, context, ...policy } = options
    this.handle(queue, (run) => fn(run.input as A, run as Run<A>), policy)
    return guarded(async (input: A, run) => fn(input, run), {
      ...this.#captureParts,
      queue,
      rethrow,
      ...(context ? { contextOf: context as (input: unknown) => CaptureContext } : {}),
    })
  }

  /** Makes calls by named policies, with retries, timeouts and breakers, and keeps the ones that fail for good. */
  executor(options: ExecutorOptions = {}): ResilientExecutor {
    return new ResilientExecutor(options, this.#captureParts)
  }

  /** Runs workflows and keeps the ones that fail, as its strategy says. */
  workflow<T = unknown>(options: WorkflowOptions<T> = {}): WorkflowGuard<T> {
    return new WorkflowGuard(options, {
      ...this.#captureParts,
      policy: (queue, policy) => this.#policies.set(queue, policy),
      handle: (queue, handler, policy) => this.handle(queue, handler, policy),
    })
  }

  /** Where loops keep their dead messages as letters. */
  deadLetters(options: LetterDestinationOptions = {}): Destination {
    return letterDestination(this.#capturer, options, this.#store, (source) =>
      this.#routes.addSource(source),
    )
  }

  /** Where taps keep the dead letters of other brokers. They are parked until somebody acts; `sendBack(tap)` is how to run them. */
  foreignLetters(options: ForeignLetterOptions = {}): Keep {
    return keepForeign(this.#capturer, options)
  }

  /** Where a pipeline keeps its dead records as letters: `pipeline.deadLetters(dlq)`. */
  pipelineLetters(): PipelineKeeper {
    return pipelineKeeper(this.#capturer, this.#admin, this.#store)
  }

  // back

  /**
   * Registers the handler that runs letters of this queue again; a later one for the same queue replaces it. `Input` is the type of
   * the payload, as the caller knows it.
   */
  handle<Input = unknown>(queue: string, handler: Handler<Input>, policy: QueuePolicy = {}): void {
    this.#policies.set(queue, policy)
    this.#redelivery.handle(queue, handler as Handler)
    this.#routes.setHandler(queue, handler as Handler)
  }

  /** Starts to redeliver what is due. Safe twice. Keeps the process alive until `stop`. With `redeliver: false`, only alerts start. */
  start(): void {
    this.#mustBeOpen()
    if (this.#settings.redeliver) {
      this.#redelivery.start()
      this.#sweeper.start()
    }
    this.#alerts?.start()
  }

  /** Takes no more letters, waits up to `drainMs` (10 s) for running handlers, and gives the rest back uncounted. */
  async stop(options: { drainMs?: number } = {}): Promise<void> {
    checkKeys('stop options', options, ['drainMs'])
    const drainMs = options.drainMs ?? 10_000
    await Promise.all([this.#redelivery.stop(drainMs), this.#sweeper.stop(), this.#alerts?.stop()])
  }

  /** Stops, and closes the store. Safe twice: all calls wait for the same end. */
  close(): Promise<void> {
    this.#closing ??= this.stop()
      .then(() => this.#routes.close())
      .then(() => this.#store.close())
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // look

  async get(id: string): Promise<DeadLetter | undefined> {
    return (await this.#store.get([id]))[0]
  }

  /** The payload as it was captured, whatever edits came later. */
  original(id: string): Promise<Payload | undefined> {
    return this.#store.original(id)
  }

  find(query: LetterQuery & { payload: true }): Promise<Page<DeadLetter>>
  find(query?: LetterQuery): Promise<Page<LetterSummary>>
  async find(query: LetterQuery = {}): Promise<Page<DeadLetter> | Page<LetterSummary>> {
    checkQuery(query)
    return this.#store.find(query)
  }

  /** Letters that have all these words, best first: with an OpenSearch store, or with the option `search`. */
  async search(text: string, options: SearchOptions = {}): Promise<LetterSummary[]> {
    checkSearch(text, options)
    if (this.#store.search) return this.#store.search(text, options)
    throw new RedriveError(
      'INVALID_CONFIG',
      `a ${this.#store.powers.kind} store has no full text: set the option search, as in search: 'opensearch://localhost:9200', or use find({ text })`,
    )
  }

  /** Letters by cause, the most frequent first. */
  groups(query: GroupQuery = {}): Promise<Page<Group>> {
    return groupsOf(this.#store, query)
  }

  /** How things stand. `by` adds counts by severity or by kind of source, for which every letter may be read. */
  async stats(options: StatisticsOptions = {}): Promise<Statistics> {
    checkStatistics(options)
    const { started: running, active } = this.#redelivery
    const processor = { running, active, pollMs: this.#settings.pollMs }
    return readStatistics(this.#store, this.#settings.maxItems, processor, options)
  }

  /**
   * Counters and averages, exact, and kept across restarts: over the lifetime of the store, or with `since`, an earlier result,
   * of what happened after it.
   */
  async metrics(query: MetricsQuery = {}): Promise<Metrics> {
    checkKeys('metrics query', query, ['since'])
    const metrics = metricsOf(await this.#store.totals(), query)
    return this.#spool ? { ...metrics, spool: await this.#spool() } : metrics
  }

  /** The metrics as text. */
  async getSummary(): Promise<string> {
    return summaryOf(await this.metrics())
  }

  /** How the brakes stand before each queue and each dependency, in this process. */
  brakes(): GateStatus[] {
    return this.#redelivery.gates
  }

  async health(): Promise<Health> {
    const { started: running, active, stuck } = this.#redelivery
    const alerts = (await this.#alerts?.raised()) ?? []
    return readHealth(this.#store, { running, active }, stuck, alerts, this.#spool)
  }

  // act on one

  /**
   * Due now, or at `at`, with a fresh retry budget if it was settled. With `wait: true` it resolves once the next run has ended, in
   * whichever process, with the letter as it stands then; `signal` ends the waiting.
   */
  retry(id: string, by = 'operator', options: RetryOptions = {}): Promise<DeadLetter> {
    return this.#admin.retry(id, by, options)
  }

  /**
   * Publishes the letter as it is now to where it came from, a mailbox or a topic, with its headers and an account of its past, and resolves
   * it. When the message dies again it becomes another letter, with one more replay. At `maxReplays` it is parked instead, for the reason
   * `replay-limit`. The message is published durably first, and recorded then: a crash in between can publish twice, and never loses. A source without an address, or one that this
   * process does not know, rejects with NO_ROUTE.
   */
  replay(id: string, by = 'operator', options: LetterReplayOptions = {}): Promise<DeadLetter> {
    return this.#admin.replay(id, by, options)
  }

  resolve(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.resolve(id, by)
  }

  /** Says that a run of it, somewhere else, failed: counted and rescheduled like any other. */
  fail(id: string, error: unknown, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.fail(id, error, by)
  }

  /** Puts it aside for review. */
  park(id: string, note?: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.park(id, note, by)
  }

  review(id: string, decision: ReviewInput): Promise<DeadLetter> {
    return this.#admin.review(id, decision)
  }

  edit(id: string, edit: EditInput): Promise<DeadLetter> {
    return this.#admin.edit(id, edit)
  }

  undoEdit(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.undoEdit(id, by)
  }

  archive(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.archive(id, by)
  }

  restore(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.restore(id, by)
  }

  /** Removes it for ever and answers with what it was. */
  remove(id: string, by = 'operator'): Promise<DeadLetter> {
    return this.#admin.remove(id, by)
  }

  /** Removes every letter that matches and is not running. To prevent accidents, `confirm` must be the number of them. */
  async clear(filter: LetterFilter, options: ClearOptions): Promise<number> {
    checkKeys('clear options', options, clearKeys)
    return this.#admin.clear(filter, options.confirm, options.by ?? 'operator')
  }

  // in and out as a file

  /** Takes in a JSON file of operations that another queue wrote. Doing it twice adds nothing the second time. */
  importOperations(text: string): Promise<ImportReport> {
    return importOperationFile(this.#store, text, this.#capacity)
  }

  /** All letters that match, archived ones too unless the filter says otherwise, as such a file. */
  exportOperations(filter: LetterFilter = { state: [...states] }): Promise<string> {
    return exportOperationFile(this.#store, filter)
  }

  /** Hears one type of event, or all with `*`. Returns a function that stops it. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => unknown): () => void
  on(type: '*', listener: (event: RedriveEvent) => unknown): () => void
  on(type: EventType | '*', listener: (event: never) => unknown): () => void {
    return this.#hub.on(type, listener as (event: RedriveEvent) => unknown)
  }

  #mustBeOpen(): void {
    if (this.#closing) throw new RedriveError('CLOSED', 'the queue is closed: open it again')
  }
}
