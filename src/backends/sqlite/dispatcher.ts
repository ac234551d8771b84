import { systemClock } from '../../clock/clock.ts'
import type { Database } from './database.ts'
import { affectsAll, breaksConnection, isFull, type ThreadError } from './errors.ts'
import type { AnyCall, Report } from './protocol.ts'
import type { FileHandler } from './serve.ts'

/** A wait for the write lock that is longer than this is added to the caller's time. */
const longWaitMs = 1000

/** The open file. Methods get it inside a transaction. */
export interface Context {
  readonly db: Database
  /** The time of the transaction. */
  nowMs: number
}

/** A long call: each step is a transaction of its own, and other batches run in between. */
export type Steps<T> = Generator<undefined, T>

export interface Method<C, A, R> {
  /**
   * Which transaction the method needs. The result of `write` is reported once it is on disk; that
   * of `write-behind` as soon as it is committed, and it is flushed soon after.
   */
  kind: 'read' | 'write' | 'write-behind'
  run(context: C, request: A): R | Steps<R>
  /** Answers without a write transaction. Undefined: the method has to be run. */
  peek?(context: C, request: A): R | undefined
}

/** What a store or mailbox defines: its file, its methods, and what happens around transactions. */
export interface Service<C extends Context> {
  methods: Readonly<Record<string, Method<C, never, unknown>>>
  open(): C
  /** True: commits do not flush, so the dispatcher does. */
  hasExplicitFlush: boolean
  /** Before a write transaction. Throws if the file must not be written to. */
  beforeWrite(context: C, isDurable: boolean): void
  beforeCommit(context: C): void
  /** After a failure: forgets what is cached about the file. */
  forget(context: C, error: unknown): void
  /** What the last transaction brought about beyond its results, if anything. */
  takeEvent(context: C): unknown
  toError(error: unknown, method: string): ThreadError
}

type Outcome = { value: unknown } | { steps: Steps<unknown> } | { error: unknown }

/**
 * Runs batches of calls in the thread. All writes of a batch are one transaction and are reported
 * after its commit; reads follow, each in a transaction of its own.
 */
export class Dispatcher<C extends Context> implements FileHandler {
  readonly #service: Service<C>
  readonly #report: (report: Report) => void
  #context: C | undefined
  #jobs: { call: AnyCall; steps: Steps<unknown> }[] = []
  #nowMs = 0
  #events: unknown[] = []
  #isUnflushed = false
  /** A flush failed, so what was committed before it may still not be on disk. */
  #isInDoubt = false

  constructor(service: Service<C>, report: (report: Report) => void) {
    this.#service = service
    this.#report = report
  }

  get isBusy(): boolean {
    return this.#jobs.length > 0
  }

  get isUnflushed(): boolean {
    return this.#isUnflushed
  }

  run(nowMs: number, calls: AnyCall[]): void {
    this.#nowMs = nowMs
    const reads = calls.filter((call) => this.#method(call).kind === 'read')
    const writes = calls.filter((call) => this.#method(call).kind !== 'read')
    if (writes.length > 0)
      this.#send(writes, this.#peek(writes) ?? this.#write(writes), reads.length === 0)
    if (reads.length > 0)
      this.#send(
        reads,
        reads.map((call) => this.#runAlone(call)),
        true,
      )
  }

  /** Takes one step of the oldest long call. */
  step(): void {
    const job = this.#jobs.shift()
    if (!job) return
    const outcomes = this.#attempt([job.call], () => [advance(job.steps)])
    this.#send([job.call], Array.isArray(outcomes) ? outcomes : [outcomes], false)
  }

  flush(): void {
    this.#isUnflushed = false
    try {
      if (this.#context) this.#flush(this.#context)
    } catch {
      // The connection cannot be trusted any more; what was not flushed may be lost.
      this.close()
    }
  }

  close(): void {
    const context = this.#context
    this.#context = undefined
    try {
      context?.db.close()
    } catch {
      // A broken connection cannot be closed properly; the file is as the last commit left it.
    }
  }

  /** Answers all writes of a batch by peeking, or none. */
  #peek(calls: AnyCall[]): Outcome[] | undefined {
    if (calls.some((call) => !this.#method(call).peek)) return undefined
    const outcomes = this.#attempt(
      calls,
      (context) =>
        calls.map((call) => ({ value: this.#method(call).peek!(context, call[2] as never) })),
      'read',
    )
    if (!Array.isArray(outcomes)) return undefined
    return outcomes.some((one) => 'value' in one && one.value === undefined) ? undefined : outcomes
  }

  /** When a transaction fails, nothing of it stays, and each call is tried in one of its own. */
  #write(calls: AnyCall[]): Outcome[] {
    const outcomes = this.#attempt(calls, (context) =>
      calls.map((call) => this.#start(context, call)),
    )
    if (Array.isArray(outcomes)) return outcomes
    const { error } = outcomes
    const isFinal = affectsAll(error) || (calls.length === 1 && !isFull(error))
    return calls.map((call) => (isFinal ? outcomes : this.#runAlone(call)))
  }

  #runAlone(call: AnyCall): Outcome {
    const outcomes = this.#attempt([call], (context) => [this.#start(context, call)])
    return Array.isArray(outcomes) ? outcomes[0]! : outcomes
  }

  /** Runs `work` in a transaction. Returns the error if anything fails. */
  #attempt(
    calls: AnyCall[],
    work: (context: C) => Outcome[],
    kind: 'read' | 'write' = this.#method(calls[0]!).kind === 'read' ? 'read' : 'write',
  ): Outcome[] | { error: unknown } {
    try {
      const context = (this.#context ??= this.#service.open())
      const isDurable = calls.some((call) => this.#method(call).kind === 'write')
      if (kind === 'write') this.#service.beforeWrite(context, isDurable)
      this.#begin(context, kind)
      const outcomes = work(context)
      if (kind === 'write') this.#service.beforeCommit(context)
      context.db.commit()
      this.#collectEvent(context)
      if (kind === 'write' && this.#service.hasExplicitFlush) {
        this.#isUnflushed = true
        if (isDurable) this.#flush(context)
      }
      return outcomes
    } catch (error) {
      this.#recover(error)
      return { error }
    }
  }

  #begin(context: C, kind: 'read' | 'write'): void {
    const startMs = systemClock.mono()
    context.db.begin(kind)
    const waitedMs = systemClock.mono() - startMs
    context.nowMs = Math.floor(this.#nowMs + (waitedMs > longWaitMs ? waitedMs : 0))
  }

  #recover(error: unknown): void {
    const context = this.#context
    if (!context) return
    context.db.rollback()
    this.#service.forget(context, error)
    if (breaksConnection(error)) this.close()
  }

  #flush({ db }: C): void {
    const isRepeated = this.#isInDoubt
    this.#isInDoubt = true
    if (isRepeated) db.flushAgain()
    else db.flush()
    this.#isInDoubt = false
    this.#isUnflushed = false
  }

  #collectEvent(context: C): void {
    const event = this.#service.takeEvent(context)
    if (event !== undefined) this.#events.push(event)
  }

  #start(context: C, call: AnyCall): Outcome {
    const result = this.#method(call).run(context, call[2] as never)
    return isSteps(result) ? advance(result) : { value: result }
  }

  #method([, name]: AnyCall): Method<C, never, unknown> {
    return this.#service.methods[name]!
  }

  #send(calls: AnyCall[], outcomes: Outcome[], isDone: boolean): void {
    const report: Report = { results: [], errors: [], events: this.#events.splice(0), isDone }
    for (const [at, call] of calls.entries()) {
      const [id, method] = call
      const outcome = outcomes[at]!
      if ('steps' in outcome) this.#jobs.push({ call, steps: outcome.steps })
      else if ('error' in outcome)
        report.errors.push([id, this.#service.toError(outcome.error, method)])
      else report.results.push([id, outcome.value])
    }
    const { results, errors, events } = report
    if (isDone || results.length + errors.length + events.length > 0) this.#report(report)
  }
}

function advance(steps: Steps<unknown>): Outcome {
  const { done, value } = steps.next()
  return done ? { value } : { steps }
}

function isSteps(result: unknown): result is Steps<unknown> {
  return (
    typeof result === 'object' && result !== null && Symbol.iterator in result && 'next' in result
  )
}
