import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import type { Timestamp } from '../letter/time.ts'
import { optionalFunction } from './check-options.ts'
import type { Heartbeat } from './heartbeat.ts'
import { checkRequestLoop, type RequestLoopOptions } from './request-loop-options.ts'
import { RequestLoop } from './request-loop.ts'
import type { Flow, Runnable, RunOptions, ShutdownOptions } from './runnable.ts'
import type { ProcessContext } from './work.ts'

/** The reply to a request. It succeeded if there is no `error`. */
export interface LoopResult<Output = unknown> {
  requestId?: string
  output?: Output
  error?: string
  completedAt: Timestamp
}

export interface MainLoopOptions<Request, Output> extends RequestLoopOptions {
  /** For people. Default: the name of the mailbox. */
  name?: string
  /**
   * Processes one request. Returning means success; throwing, or returning `{ ok: false, error }`,
   * means failure.
   */
  process?: (request: Request, context: ProcessContext) => Promise<Output> | Output
}

const ownKeys = keysOf<Omit<MainLoopOptions<unknown, unknown>, keyof RequestLoopOptions>>({
  name: true,
  process: true,
})

/**
 * Processes requests of a mailbox and replies to them. Pass `process`, or override it in a
 * subclass. Delivery is at least once, so the work must be idempotent.
 */
export class MainLoop<Request = unknown, Output = unknown> implements Runnable {
  readonly name: string
  readonly flow: Flow
  readonly #loop: RequestLoop
  readonly #process: MainLoopOptions<Request, Output>['process']

  constructor(given: MainLoopOptions<Request, Output>) {
    checkRequestLoop('MainLoop', given, ownKeys, { adapter: 'process' })
    const { name, process, ...options } = given
    optionalFunction('MainLoop', 'process', process)
    this.name = name ?? options.requests.name
    this.#process = process
    if (!process && this.process === MainLoop.prototype.process)
      throw new RedriveError(
        'INVALID_CONFIG',
        `MainLoop ${this.name} needs the option process, a function: process: (request) => …; or override process in a subclass`,
      )
    this.#loop = new RequestLoop(options, {
      process: (request, context) => this.process(request as Request, context),
      answer: (output, { requestId, completedAt }): LoopResult => ({
        ...(requestId === undefined ? {} : { requestId }),
        output,
        completedAt,
      }),
      refuse: (error, { requestId, completedAt }): LoopResult => ({
        ...(requestId === undefined ? {} : { requestId }),
        error,
        completedAt,
      }),
    })
    const { deadLetterMailbox } = this.#loop
    this.flow = { from: options.requests, to: deadLetterMailbox ? [deadLetterMailbox] : [] }
  }

  process(request: Request, context: ProcessContext): Promise<Output> | Output {
    return this.#process!(request, context)
  }

  get running(): boolean {
    return this.#loop.receiver.running
  }

  get heartbeat(): Heartbeat {
    return this.#loop.receiver.heartbeat
  }

  problems(): string[] {
    return this.#loop.problems()
  }

  status(): LoopStatus {
    return { name: this.name, kind: 'main', ...this.#loop.status() }
  }

  async run(options?: RunOptions): Promise<void> {
    await this.#loop.run(options)
  }

  shutdown(options?: ShutdownOptions): Promise<boolean> {
    return this.#loop.receiver.shutdown(options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }
}
