import { systemClock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { keysOf } from '../check/keys.ts'
import { read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import { hasMethod, requireFunction, wrongOption } from './check-options.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { MainLoop } from './main-loop.ts'
import {
  checkRequestLoop,
  RequestLoop,
  type ProcessContext,
  type RequestLoopOptions,
} from './request-loop.ts'
import type { Flow, Runnable, RunOptions, ShutdownOptions } from './runnable.ts'

export interface Sample<Input = unknown, Expected = unknown> {
  id: string
  input: Input
  expected?: Expected
}

/** What the mailbox of an EvalLoop holds. */
export interface EvalRequest<Input = unknown, Expected = unknown> {
  sample: Sample<Input, Expected>
  experiment?: string
  requestId?: string
}

export interface Score {
  /** 0 to 1, by custom. */
  value: number
  passed: boolean
  reason?: string
}

/** What a sample is replied to with. `error` says why there is no score of the evaluator's. */
export interface EvalResult {
  sampleId: string
  experiment?: string
  score: Score
  latencyMs: number
  error?: string
}

/** Scores what came out. A number counts as passed from 0.5 on, a boolean as 1 or 0. */
export type Evaluator<Output = unknown, Expected = unknown> = (
  output: Output,
  expected: Expected | undefined,
  context: ProcessContext,
) => Score | number | boolean | Promise<Score | number | boolean>

export interface EvalLoopOptions<Input, Output, Expected> extends RequestLoopOptions {
  /** For people. The name of the mailbox unless said. */
  name?: string
  /** Whose `process` is tried. It need not run. */
  loop: Pick<MainLoop<Input, Output>, 'process'>
  evaluator: Evaluator<Output, Expected>
}

const ownKeys = keysOf<Omit<EvalLoopOptions<unknown, unknown, unknown>, keyof RequestLoopOptions>>({
  name: true,
  loop: true,
  evaluator: true,
})

/**
 * Runs samples through the work of another loop and scores what comes out. Failures are retried and dead-lettered as requests are, and a
 * sample that is dead-lettered is replied to with a failed score. Work that gives nothing has failed the sample, and is no failure of the loop.
 */
export class EvalLoop<Input = unknown, Output = unknown, Expected = unknown> implements Runnable {
  readonly name: string
  readonly flow: Flow
  readonly #loop: RequestLoop

  constructor(options: EvalLoopOptions<Input, Output, Expected>) {
    checkRequestLoop('EvalLoop', options, ownKeys)
    if (!hasMethod(options.loop, 'process'))
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
    const { deadLetterBox } = this.#loop
    this.flow = { from: rest.requests, to: deadLetterBox ? [deadLetterBox] : [] }
  }

  get running(): boolean {
    return this.#loop.receiver.running
  }

  get heartbeat(): Heartbeat {
    return this.#loop.receiver.heartbeat
  }

  problems(): string[] {
    return this.#loop.receiver.problems()
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
  throw new RedriveError('INVALID_INPUT', 'an eval request is { sample: { id, input, expected } }')
}

type Outcome = Pick<EvalResult, 'score' | 'latencyMs' | 'error'>

function scoreOf(given: Score | number | boolean): Score {
  if (typeof given === 'boolean') return { value: given ? 1 : 0, passed: given }
  if (typeof given === 'number') return { value: given, passed: given >= 0.5 }
  if (typeof read(given, 'passed') === 'boolean') return given
  throw new RedriveError('INVALID_INPUT', 'an evaluator gives a score, a number or a boolean')
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
