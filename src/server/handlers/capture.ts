import type { captureEndpoints } from '../../api/endpoints/capture.ts'
import type { OutputOf } from '../../api/endpoints.ts'
import type { Problem } from '../../api/problem.ts'
import { captureInput, type CaptureInput } from '../../api/schemas/capture.ts'
import type { CaptureContext } from '../../capture/context.ts'
import type { Enqueued, OperationInput } from '../../capture/operation.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import { splitLines, type RawLine } from '../../transfer/lines/split.ts'
import { boundFailure, isInScope } from '../bounds.ts'
import type { Caller } from '../caller.ts'
import { checkInput, parseJson, payloadOf } from '../input.ts'
import { toLine } from '../lines.ts'
import { maxBodyBytes } from '../limits.ts'
import { toProblem } from '../problems.ts'
import type { Handlers } from './handler.ts'

/** Lines that are stored together. */
const batchLines = 256
const batchBytes = 4 * 1024 * 1024
/** Batches of one request that are stored at the same time. */
const maxStoring = 2
/** Every byte up to this one is a space or a control character. */
const space = 0x20

export const captureHandlers: Handlers<keyof typeof captureEndpoints> = {
  async capture(input, { dlq, caller, newId }) {
    const { operation, error, context } = captureOf(input, caller)
    if (newId !== undefined) context.id ??= newId
    return viewCaptured(await dlq.enqueue(operation, error, context), context, caller)
  },

  captureMany(_, { dlq, caller, body, onError }) {
    const batches = batchesOf(splitLines(body, maxBodyBytes), caller)
    return storeBatches(batches, async (batch) => {
      const failures = batch.flatMap(({ failure }) => failure ?? [])
      const outcomes = await dlq.enqueueEach(failures)
      const results = batch.map(({ line, failure, problem }) => {
        if (!failure) return { line, problem: problemOf(problem, onError) }
        const outcome = outcomes.shift()!
        if (outcome.status === 'rejected')
          return { line, problem: problemOf(outcome.reason, onError) }
        try {
          return { line, ...viewCaptured(outcome.value, failure.context, caller) }
        } catch (error) {
          return { line, problem: problemOf(error, onError) }
        }
      })
      return results.map(toLine).join('')
    })
  },
}

/** A failure for `enqueueEach`, whose context is not optional. */
type Failure = Enqueued & { context: CaptureContext }

/** What a line contains: a failure, or why it has none. */
type ReadLine = { line: number; failure?: Failure; problem?: unknown }

function problemOf(error: unknown, onError: (error: unknown) => void): Problem {
  const problem = toProblem(error)
  if (problem.code === 'INTERNAL') onError(error)
  return problem
}

/** The letter of a failure, as its sender may see it. */
function viewCaptured(
  letter: DeadLetter,
  context: CaptureContext,
  caller: Caller,
): OutputOf<'capture'> {
  // The id of somebody else: what is stored under it stays unknown.
  if (!isInScope(caller.scope, letter) && letter.id === context.id?.toLowerCase())
    throw new RedriveError(
      'ID_CONFLICT',
      `letter ${letter.id} is already stored with another payload: use another id`,
    )
  const { id, queue, state, occurrences } = letter
  return { id, queue, state, occurrences }
}

function captureOf(input: CaptureInput, caller: Caller): Failure {
  // Input comes from JSON, which has no undefined: what is absent has no key.
  const given = boundFailure(input, caller) as Given<CaptureInput>
  const { queue, error, json, text, base64, method, endpoint, ...context } = given
  const payload = payloadOf({ json, text, base64 }, 'a failure has one payload')
  const operation: OperationInput = { type: queue, payload: payload ?? null }
  if (method !== undefined) operation.method = method
  if (endpoint !== undefined) operation.endpoint = endpoint
  return {
    operation,
    error: { name: 'Error', ...error },
    context: {
      ...(text === undefined ? {} : { contentType: 'text/plain' }),
      ...context,
      by: caller.name,
    },
  }
}

type Given<T> = { [K in keyof T]: Exclude<T[K], undefined> }

function readLine({ number, bytes, size }: RawLine): CaptureInput {
  if (!bytes)
    throw new RedriveError(
      'TOO_LARGE',
      `line ${number} has ${size} bytes, the limit is ${maxBodyBytes}: store a reference instead`,
    )
  return checkInput(captureInput, parseJson(bytes, `line ${number}`)) as CaptureInput
}

/**
 * Stores batches, a few at the same time: the next ones are read and built while the disk writes.
 * Returns the results in their order, each as soon as it is there.
 */
async function* storeBatches(
  batches: AsyncGenerator<ReadLine[]>,
  store: (batch: ReadLine[]) => Promise<string>,
): AsyncGenerator<string> {
  const stored: Promise<string>[] = []
  let isEnd = false
  let next: Promise<IteratorResult<ReadLine[]>> | undefined
  for (;;) {
    if (!isEnd && stored.length < maxStoring) next ??= handled(batches.next())
    if (next === undefined && stored.length === 0) return
    const first = await Promise.race([...stored.slice(0, 1), ...(next ? [next] : [])])
    if (typeof first === 'string') {
      void stored.shift()
      yield first
    } else {
      next = undefined
      if (first.done) isEnd = true
      else stored.push(handled(store(first.value)))
    }
  }
}

/** It is awaited later, or never, if the client goes away. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/** Groups lines by number and size. Empty lines are left out. */
async function* batchesOf(
  lines: AsyncIterable<RawLine>,
  caller: Caller,
): AsyncGenerator<ReadLine[]> {
  let batch: ReadLine[] = []
  let size = 0
  for await (const line of lines) {
    if (line.bytes?.every((byte) => byte <= space)) continue
    batch.push(toFailure(line, caller))
    size += line.bytes?.byteLength ?? 0
    if (batch.length < batchLines && size < batchBytes) continue
    yield batch
    batch = []
    size = 0
  }
  if (batch.length > 0) yield batch
}

function toFailure(line: RawLine, caller: Caller): ReadLine {
  try {
    return { line: line.number, failure: captureOf(readLine(line), caller) }
  } catch (problem) {
    return { line: line.number, problem }
  }
}
