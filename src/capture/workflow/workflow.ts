import type { Clock } from '../../clock/clock.ts'
import { RedriveError, type ErrorCode } from '../../errors.ts'
import { idempotencyKeyOf } from '../../letter/idempotency-key.ts'
import type { DeadLetter, ErrorCategory } from '../../letter/letter.ts'
import type { FailedResult } from '../../letter/result.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { ObserverHub } from '../../observer.ts'
import type { QueuePolicy } from '../../options/options.ts'
import { neverAgain } from '../../policy/backoff.ts'
import type { Rule } from '../../policy/classify.ts'
import { judge } from '../../policy/judge.ts'
import { keepUnlessRetried, redeliveredKey, redelivering } from '../../run-context.ts'
import type { Capturer } from '../capture.ts'
import { firstRun } from '../operation.ts'
import {
  checkStrategy,
  readWorkflowOptions,
  type Strategy,
  type WorkflowOptions,
  type WorkflowSettings,
} from './options.ts'
import { readFailure, type WorkflowFailure } from './result.ts'
import {
  copyTask,
  remainingOf,
  targetsOf,
  taskOf,
  withTargets,
  type TaskCopy,
  type WorkflowFn,
  type WorkflowRun,
  type WorkflowTask,
} from './task.ts'

/** Why a failure was not stored. */
const reasonsToSkip = [
  'disabled',
  'manual',
  'not-selected',
  'queue-full',
  'too-large',
  'store-unavailable',
  'closed',
  'inside-a-retry',
] as const
export type SkipReason = (typeof reasonsToSkip)[number]

/** Whether a failure was stored, and if not, why. */
export type Enqueuing =
  | { enqueued: true; letterId: string }
  /** `ok: false` fails the surrounding retry if its handler returns this value. */
  | { enqueued: false; why: 'inside-a-retry'; detail: string; ok: false }
  | { enqueued: false; why: Exclude<SkipReason, 'inside-a-retry'>; detail: string }

/** The result of a run. `failed` lists the targets that must run again. */
export type WorkflowResult<R = unknown> =
  | { status: 'completed'; result: R }
  | ({ status: 'failed' | 'partial'; error: unknown; failed: string[]; result?: R } & Enqueuing)

/** Counters: each failed run and each call of `enqueue` is counted once. */
export interface WorkflowCounts {
  enqueued: number
  enqueuedByHand: number
  skipped: Record<SkipReason, number>
}

/** A task with the id that its letter gets. */
type Identified = TaskCopy & { context: { id: string } }

/** A run of a letter. */
type Retry = WorkflowRun & { letter: DeadLetter; input: unknown }

/** The parts of the queue that a workflow guard needs. */
export interface WorkflowParts {
  capturer: Capturer
  hub: ObserverHub
  clock: Clock
  rules: readonly Rule[]
  /** Applies the policy of a queue before it has a handler. */
  policy: (queue: string, policy: QueuePolicy) => void
  handle: (queue: string, handler: (run: Retry) => unknown, policy: QueuePolicy) => void
}

/**
 * Runs workflows, stores those that fail, and retries them. `run` resolves with data and does not
 * throw if the workflow fails. The task is copied before it runs. The strategy at the time of the
 * failure decides which failures are stored.
 */
export class WorkflowGuard<T = unknown> {
  readonly #parts: WorkflowParts
  readonly #settings: WorkflowSettings<T>
  readonly #counts: WorkflowCounts = {
    enqueued: 0,
    enqueuedByHand: 0,
    skipped: Object.fromEntries(reasonsToSkip.map((why) => [why, 0])) as WorkflowCounts['skipped'],
  }
  #strategy: Strategy
  /**
   * The function for retries: the handler of the options, otherwise the last function given to
   * `run`.
   */
  #retryFunction: WorkflowFn<T> | undefined
  /**
   * For tasks whose last failure was not stored: the id reserved for the letter. `enqueue` uses it.
   */
  readonly #reservedIds = new WeakMap<WorkflowTask<T>, string>()

  constructor(options: WorkflowOptions<T>, parts: WorkflowParts) {
    this.#parts = parts
    this.#settings = readWorkflowOptions(options)
    const { name, strategy, handler, policy } = this.#settings
    this.#strategy = strategy
    if (handler) this.#retryWith(handler)
    else parts.policy(name, policy)
  }

  get strategy(): Strategy {
    return this.#strategy
  }

  /** Changes the strategy, also for runs in progress. */
  setStrategy(strategy: Strategy): void {
    this.#strategy = checkStrategy(strategy)
  }

  /** How many failures were stored or skipped, and why, since this guard was created. */
  counts(): WorkflowCounts {
    return { ...this.#counts, skipped: { ...this.#counts.skipped } }
  }

  /**
   * Runs the task with `fn`, or with the handler of the options. Retries use the handler; without
   * one, the last `fn`. Throws only if the task is invalid, or if there is neither `fn` nor a
   * handler.
   */
  async run<R = unknown>(task: WorkflowTask<T>, fn?: WorkflowFn<T, R>): Promise<WorkflowResult<R>> {
    const copy = this.#copyTask(task)
    const work = fn ?? (this.#settings.handler as WorkflowFn<T, R> | undefined)
    if (typeof work !== 'function')
      throw new RedriveError(
        'INVALID_INPUT',
        `workflow ${this.#settings.name} has no handler: give one to workflow() or a function to run()`,
      )
    if (!this.#settings.handler && redelivering() === undefined) this.#retryWith(work)
    const { targets } = copy.source
    let result: R
    try {
      result = await work(task, firstRun(task, this.#keyOf(copy)))
    } catch (error) {
      const failure: WorkflowFailure = { status: 'failed', error, failed: [...targets] }
      return { ...failure, ...(await this.#storeByStrategy(task, copy, failure)) }
    }
    const failure = this.#read(result, targets)
    if (!failure) return { status: 'completed', result }
    return { ...failure, result, ...(await this.#storeByStrategy(task, copy, failure)) }
  }

  /**
   * Stores a failed task explicitly, whatever its category, under every strategy except `disabled`.
   */
  async enqueue(task: WorkflowTask<T>, error: unknown): Promise<Enqueuing> {
    const copy = this.#copyTask(task, this.#reservedIds.get(task))
    if (this.#strategy === 'disabled') return this.#skip('disabled', details.disabled)
    const failure = { error, failed: copy.source.targets }
    const enqueuing = await this.#store(copy, failure, 'enqueuedByHand')
    if (enqueuing.enqueued) this.#reservedIds.delete(task)
    return enqueuing
  }

  /**
   * The task as its letter would store it. The id is chosen before the first run: the idempotency
   * key derives from it.
   */
  #copyTask(task: WorkflowTask<T>, id = this.#parts.clock.id()): Identified {
    const copy = copyTask(this.#settings.name, task)
    return { ...copy, context: { ...copy.context, id } }
  }

  #keyOf({ payload, context: { id } }: Identified): string {
    const again = redeliveredKey(this.#settings.name, () => payload)
    return again ?? idempotencyKeyOf({ id, payload, replays: 0 })
  }

  #retryWith(work: WorkflowFn<T>): void {
    const isFirst = this.#retryFunction === undefined
    this.#retryFunction = work
    const { name, policy } = this.#settings
    if (isFirst) this.#parts.handle(name, (run) => this.#retry(run), policy)
  }

  /** One retry: the same task with the remaining targets. */
  async #retry(run: Retry): Promise<unknown> {
    const { letter } = run
    const task = taskOf(letter, run.input) as WorkflowTask<T>
    const targets = [...(task.targets ?? [])]
    const returned = await this.#retryFunction?.(task, run)
    const failure = this.#read(returned, targets)
    if (!failure) return returned
    const { error, failed } = failure
    const again: FailedResult = { ok: false, error }
    if (failed.length === targets.length) return again
    const atFirst = letter.source.kind === 'workflow' ? letter.source.targets.length : 0
    const of = Math.max(atFirst, targets.length)
    const note = `${failed.length} of ${of} targets ${failed.length === 1 ? 'is' : 'are'} left`
    return { ...again, remaining: remainingOf(letter, failed), note }
  }

  #read(returned: unknown, targets: readonly string[]): WorkflowFailure | undefined {
    const isPermanent = (error: unknown): boolean => neverAgain.has(this.#categoryOf(error))
    return readFailure(returned, { targets, isPermanent })
  }

  #categoryOf(error: unknown): ErrorCategory {
    const { clock, rules } = this.#parts
    return judge(error, this.#settings.name, toTimestamp(clock.now()), rules).category
  }

  /**
   * Applies the strategy to a failed run. Inside a retry the failure belongs to the retried letter,
   * unless its handler succeeds all the same: then the failure is counted by its own outcome.
   */
  async #storeByStrategy(
    task: WorkflowTask<T>,
    copy: Identified,
    failure: WorkflowFailure,
  ): Promise<Enqueuing> {
    // Decided before the first await: the strategy may have changed when a retry ends.
    const skipReason = this.#reasonToSkip(failure)
    const byStrategy = async (): Promise<Enqueuing> =>
      skipReason ? this.#skip(...skipReason) : this.#store(copy, failure, 'enqueued')
    const letterId = redelivering()
    if (letterId === undefined) {
      const enqueuing = await byStrategy()
      if (!enqueuing.enqueued) this.#reservedIds.set(task, copy.context.id)
      return enqueuing
    }
    await keepUnlessRetried(this.#settings.name, () => {
      this.#counts.skipped['inside-a-retry']--
      return byStrategy()
    })
    return {
      ...this.#skip(
        'inside-a-retry',
        `the failure belongs to letter ${letterId}, which is being retried`,
      ),
      ok: false,
    }
  }

  /** Why the strategy skips a failure; undefined if it stores the failure. */
  #reasonToSkip({ error }: WorkflowFailure): StrategySkip | undefined {
    const strategy = this.#strategy
    if (strategy === 'disabled' || strategy === 'manual') return [strategy, details[strategy]]
    if (strategy === 'automatic') return undefined
    const category = this.#categoryOf(error)
    const { select } = this.#settings
    if (select.has(category)) return undefined
    const selected = [...select].join(', ')
    return [
      'not-selected',
      `the category is ${category}, and the selective strategy stores ${selected}`,
    ]
  }

  async #store(
    copy: TaskCopy,
    failure: Pick<WorkflowFailure, 'error' | 'failed'>,
    counted: 'enqueued' | 'enqueuedByHand',
  ): Promise<Enqueuing> {
    try {
      const { id } = await this.#capture(copy, failure)
      this.#counts[counted]++
      return { enqueued: true, letterId: id }
    } catch (error) {
      this.#parts.hub.emit({ type: 'error', during: `capture of ${this.#settings.name}`, error })
      if (!(error instanceof RedriveError)) return this.#skip('store-unavailable', details.unknown)
      return this.#skip(reasonsByCode[error.code] ?? 'store-unavailable', error.message)
    }
  }

  /**
   * Captures the letter. An open letter of the same task counts the failure as an occurrence and
   * keeps its own payload, which may have fewer targets by now; targets that it will not run get a
   * further letter.
   */
  async #capture(
    copy: TaskCopy,
    { error, failed }: Pick<WorkflowFailure, 'error' | 'failed'>,
  ): Promise<DeadLetter> {
    const { source } = copy
    const { dedupeKey = source.taskId, ...context } = copy.context
    let missing = failed
    for (let nth = 1; ; nth++) {
      const narrowed = missing.length < source.targets.length
      const letter = await this.#parts.capturer.capture({
        queue: this.#settings.name,
        source,
        payload: narrowed ? withTargets(copy.payload, missing) : copy.payload,
        thrown: error,
        context: { ...context, ...keyOf(dedupeKey, nth) },
      })
      if (letter.occurrences === 1) return letter
      const covered = new Set(targetsOf(letter))
      missing = missing.filter((target) => !covered.has(target))
      if (missing.length === 0) return letter
    }
  }

  #skip<W extends SkipReason>(why: W, detail: string): { enqueued: false; why: W; detail: string } {
    this.#counts.skipped[why]++
    return { enqueued: false, why, detail }
  }
}

type StrategySkip = ['disabled' | 'manual' | 'not-selected', detail: string]

/** Maximum number of letters of one task that are matched with each other. */
const maxLettersPerTask = 20

function keyOf(dedupeKey: string, nth: number): { dedupeKey?: string } {
  if (nth === 1) return { dedupeKey }
  return nth <= maxLettersPerTask ? { dedupeKey: JSON.stringify([dedupeKey, nth]) } : {}
}

const details = {
  disabled: 'the strategy is disabled: no failure is stored',
  manual: 'the strategy is manual: store the failure with enqueue(task, error)',
  unknown: 'the store failed to write the letter: see the error event',
}

const reasonsByCode: Partial<Record<ErrorCode, Exclude<SkipReason, 'inside-a-retry'>>> = {
  QUEUE_FULL: 'queue-full',
  TOO_LARGE: 'too-large',
  CLOSED: 'closed',
  CAPTURE_DISABLED: 'disabled',
}
