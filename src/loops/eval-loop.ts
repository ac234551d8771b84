import { systemClock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import { hasMethods, read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import { requireFunction, wrongOption } from './check-options.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { MainLoop } from './main-loop.ts'
import { checkRequestLoop, type RequestLoopOptions } from './request-loop-options.ts'
import { RequestLoop } from './request-loop.ts'
import type { Flow, Runnable, RunOptions, ShutdownOptions } from './runnable.ts'
import type { ProcessContext } from './work.ts'

export interface Sample<Input = unknown, Expected = unknown> {
  id: string
  input: Input
  expected?: Expected
}

/** A message in the mailbox of an EvalLoop. */
export interface EvalRequest<Input = unknown, Expected = unknown> {
  sample: Sample<Input, Expected>
  experiment?: string
  requestId?: string
}

export interface Score {
  /** From 0 to 1 by convention. */
  value: number
  passed: boolean
  reason?: string
}

/** The reply to a sample. `error` says why the evaluator gave no score. */
export interface EvalResult {
  sampleId: string
  experiment?: string
  score: Score
  latencyMs: number
  error?: string
}

/** Scores an output. A number passes from 0.5 upwards; a boolean counts as 1 or 0. */
export type Evaluator<Output = unknown, Expected = unknown> = (
  output: Output,
  expected: Expected | undefined,
  context: ProcessContext,
) => Score | number | boolean | Promise<Score | number | boolean>

export interface EvalLoopOptions<Input, Output, Expected> extends RequestLoopOptions {
  /** For people. Default: the name of the mailbox. */
  name?: string
  /** The loop whose `process` is evaluated. It need not run. */
  loop: Pick<MainLoop<Input, Output>, 'process'>
  evaluator: Evaluator<Output, Expected>
}

const ownKeys = keysOf<Omit<EvalLoopOptions<unknown, unknown, unknown>, keyof RequestLoopOptions>>({
  name: true,
  loop: true,
  evaluator: true,
})

/**
 * Runs samples through the work of another loop and scores its output. Failures are retried and
 * dead-lettered like requests, and a dead-lettered sample gets a failed score as its reply. Work
 * without an output fails the sample, not the loop.
 */
export class EvalLoop<Input = unknown, Output = unknown, Expected = unknown> implements Runnable {
  readonly name: string
  readonly flow: Flow
  readonly #loop: RequestLoop

  constructor(options: EvalLoopOptions<Input, Output, Expected>) {
    checkRequestLoop('EvalLoop', options, ownKeys)
    if (!hasMethods(options.loop, 'process'))
      throw wrongOption('EvalLoop', 'loop', 'a MainLoop, or an object with process', options.loop)
    requireFunction(
      'EvalLoop',
      'evaluator',
      options.evaluator,
      'evaluator: (output, expected) => output === expected',
    )
    const { name, loop, evaluator, ...rest } = options
    const clock = rest.clock ?? systemClock
    this.name = name ?? rest.requests.name
    this.#loop = new RequestLoop(rest, {
      process: async (request, context) => {
        const { input, expected } = sampleOf<Input, Expected>(request)
        const startedMs = clock.mono()
        const output = await loop.process(input, context)
        if (isFailedResult(output)) return output
        const latencyMs = clock.mono() - startedMs
        if (output === undefined || output === null) return failed('there is no output', latencyMs)
        return { score: scoreOf(await evaluator(output, expected, context)), latencyMs }
      },
      answer: (outcome, { request }) => resultOf(request, outcome as Outcome),
      refuse: (error, { request, durationMs }) => resultOf(request, failed(error, durationMs)),
    })
    const { deadLetterMailbox } = this.#loop
    this.flow = { from: rest.requests, to: deadLetterMailbox ? [deadLetterMailbox] : [] }
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
    return { name: this.name, kind: 'eval', ...this.#loop.status() }
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

function sampleOf<Input, Expected>(request: unknown): Sample<Input, Expected> {
  const sample = read(request, 'sample')
  if (typeof read(sample, 'id') === 'string') return sample as Sample<Input, Expected>
  throw new RedriveError(
    'INVALID_INPUT',
    'an eval request must be { sample: { id, input, expected } }',
  )
}

type Outcome = Pick<EvalResult, 'score' | 'latencyMs' | 'error'>

function scoreOf(given: Score | number | boolean): Score {
  if (typeof given === 'boolean') return { value: given ? 1 : 0, passed: given }
  if (typeof given === 'number') return { value: given, passed: given >= 0.5 }
  if (typeof read(given, 'passed') === 'boolean') return given
  throw new RedriveError('INVALID_INPUT', 'an evaluator must return a score, a number or a boolean')
}

function failed(error: string, latencyMs: number): Outcome {
  return { score: { value: 0, passed: false, reason: error }, latencyMs, error }
}

function resultOf(request: unknown, outcome: Outcome): EvalResult {
  const id = read(read(request, 'sample'), 'id')
  const experiment = read(request, 'experiment')
  return {
    sampleId: typeof id === 'string' ? id : '',
    ...(typeof experiment === 'string' ? { experiment } : {}),
    ...outcome,
  }
}
