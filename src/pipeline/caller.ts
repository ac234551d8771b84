import { create } from '@bufbuild/protobuf'
import { Alarm } from '../clock/alarm.ts'
import { sleep, type Clock } from '../clock/clock.ts'
import { errorTypeOf, type ErrorType } from './error-type.ts'
import type { Module, ModuleCall, ModuleResult } from './modules/module.ts'
import { DocumentSchema } from './proto/redrive/pipeline/v1/stream_pb.ts'
import type { NodeSettings } from './graph/settings.ts'
import type { Incoming } from './incoming.ts'
import type { Document, PipeStream } from './stream.ts'

/** The result of all calls of a module for one record. */
export type CallResult =
  | { kind: 'processed'; document?: Document }
  /** The module reported that it cannot process this document. */
  | { kind: 'refused'; error: string; retries: number }
  | { kind: 'failed'; error: ErrorType; retries: number }

type Fetch = () => Promise<Document | undefined>

export interface CallerOptions {
  clock: Clock
  module: Module
  settings: NodeSettings
  /** Called before each retry. */
  onRetry: (streamId: string, retry: number, error: ErrorType) => void
}

/**
 * Calls a module until it succeeds. Gives up after its retries, at once if a retry cannot help, and
 * at the deadline of the record. The delay before retry n is n times the backoff, and not shorter
 * than the module asks for.
 */
export class Caller {
  readonly #options: CallerOptions
  readonly #running = new Set<TimedCall>()
  readonly #alarm: Alarm

  constructor(options: CallerOptions) {
    this.#options = options
    this.#alarm = new Alarm(options.clock, (nowMs) => this.#endLate(nowMs))
  }

  /**
   * `fetch` loads the document before each call, if it travels by reference. Returns synchronously
   * if the module does.
   */
  call(come: Incoming, signal: AbortSignal, fetch?: Fetch): CallResult | Promise<CallResult> {
    const endMs = this.#options.clock.mono() + this.#options.settings.deadlineMs
    const failed = (thrown: unknown): Promise<CallResult> =>
      this.#again(come, signal, endMs, thrown, fetch)
    let given: ReturnType<Module>
    try {
      given = this.#once(come, 1, endMs, signal, fetch)
    } catch (thrown) {
      return failed(thrown)
    }
    return isPromise(given)
      ? given.then((result) => calledOf(result, 0), failed)
      : calledOf(given, 0)
  }

  /** Cancels the timers. */
  close(): void {
    this.#alarm.off()
  }

  async #again(
    come: Incoming,
    signal: AbortSignal,
    endMs: number,
    first: unknown,
    fetch?: Fetch,
  ): Promise<CallResult> {
    const { clock, settings, onRetry } = this.#options
    const { maxRetries, retryBackoffMs } = settings.dlq
    let thrown = first
    for (let retries = 0; ;) {
      const error = errorTypeOf(thrown, clock.now())
      const pauseMs = Math.max(retryBackoffMs * (retries + 1), error.retryAfterMs ?? 0)
      const isOver = clock.mono() + pauseMs >= endMs
      if (!error.retry || retries >= maxRetries || isOver || signal.aborted)
        return { kind: 'failed', error, retries }
      retries += 1
      onRetry(come.streamId, retries, error)
      await sleep(clock, pauseMs, signal)
      if (signal.aborted) return { kind: 'failed', error, retries: retries - 1 }
      try {
        return calledOf(await this.#once(come, retries + 1, endMs, signal, fetch), retries)
      } catch (next) {
        thrown = next
      }
    }
  }

  #once(
    come: Incoming,
    attempt: number,
    endMs: number,
    signal: AbortSignal,
    fetch?: Fetch,
  ): ReturnType<Module> {
    const { module, settings } = this.#options
    const call = new TimedCall(come, settings.node, attempt, signal)
    const given = fetch
      ? fetch().then((document) => {
          call.checkTime()
          call.fetched = document
          return module(call)
        })
      : callNow(module, call)
    return isPromise(given) ? this.#inTime(call, given, endMs) : given
  }

  /** Limits the time of a call, so that a module that never answers blocks its record no longer. */
  #inTime<T>(call: TimedCall, given: Promise<T>, endMs: number): Promise<T> {
    call.startMs = this.#options.clock.mono()
    call.lapsesMs = Math.min(call.startMs + this.#options.settings.timeoutMs, endMs)
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#running.delete(call)
        call.release()
      }
      call.giveUp = reject
      this.#running.add(call)
      this.#alarm.by(call.lapsesMs)
      given.then(resolve, reject).finally(end)
    })
  }

  #endLate(nowMs: number): number {
    let nextMs = Infinity
    for (const call of this.#running)
      if (call.lapsesMs <= nowMs) {
        this.#running.delete(call)
        call.abort(new ModuleTimeout(call.lapsesMs - call.startMs))
      } else nextMs = Math.min(nextMs, call.lapsesMs)
    return nextMs
  }
}

class TimedCall implements ModuleCall {
  readonly node: string
  readonly attempt: number
  fetched: Document | undefined
  startMs = 0
  lapsesMs = 0
  giveUp: (error: Error) => void = () => {}
  readonly #come: Incoming
  readonly #gone: AbortSignal
  #controller: AbortController | undefined
  #leave: (() => void) | undefined
  /** Why nobody waits for the result any more. */
  #why: Error | undefined
  #isOver = false

  constructor(come: Incoming, node: string, attempt: number, gone: AbortSignal) {
    this.#come = come
    this.node = node
    this.attempt = attempt
    this.#gone = gone
  }

  get stream(): PipeStream {
    return this.#come.stream
  }

  get document(): Document | undefined {
    const { content } = this.#come.stream
    return content.case === 'document' ? content.value : this.fetched
  }

  /**
   * Created on demand: many modules do not use the signal, and it costs as much as the rest of a
   * call.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      const why: unknown = this.#why ?? (this.#gone.aborted ? this.#gone.reason : undefined)
      if (why !== undefined) this.#controller.abort(why)
      else if (!this.#isOver) {
        this.#leave = () => this.abort(this.#gone.reason as Error)
        this.#gone.addEventListener('abort', this.#leave)
      }
    }
    return this.#controller.signal
  }

  /** Throws if nobody waits for the result any more. */
  checkTime(): void {
    if (this.#why) throw this.#why
    this.#gone.throwIfAborted()
  }

  abort(error: Error): void {
    this.#why = error
    this.release()
    this.#controller?.abort(error)
    this.giveUp(error)
  }

  release(): void {
    this.#isOver = true
    if (this.#leave) this.#gone.removeEventListener('abort', this.#leave)
  }
}

/** A module that returns synchronously is done at once. */
function callNow(module: Module, call: TimedCall): ReturnType<Module> {
  let given: ReturnType<Module>
  try {
    given = module(call)
  } finally {
    if (!isPromise(given)) call.release()
  }
  return given
}

/** Accepts any thenable. */
export function isPromise<T>(given: T | Promise<T>): given is Promise<T> {
  return typeof (given as Promise<T> | undefined)?.then === 'function'
}

class ModuleTimeout extends Error {
  constructor(ms: number) {
    super(`the module did not answer within ${Math.round(ms)} ms`)
    this.name = 'TimeoutError'
  }
}

const processed: CallResult = { kind: 'processed' }

/** An unknown result is a failure of the module. */
function calledOf(result: ModuleResult | void, retries: number): CallResult {
  if (!result) return processed
  try {
    if (!result.success) return { kind: 'refused', error: String(result.error), retries }
    if (!result.document) return processed
    return { kind: 'processed', document: create(DocumentSchema, result.document) }
  } catch (thrown) {
    return { kind: 'failed', error: errorTypeOf(thrown), retries }
  }
}
