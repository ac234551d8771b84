import type { captureEndpoints } from '../../api/endpoints/capture.ts'
import type { OutputOf } from '../../api/endpoints.ts'
import { captureInput, type CaptureInput } from '../../api/schemas/capture.ts'
import type { CaptureContext } from '../../capture/context.ts'
import type { OperationInput } from '../../capture/operation.ts'
import { withoutUndefined } from '../../check/keys.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { splitLines, type RawLine } from '../../transfer/lines/split.ts'
import { boundFailure, isInScope } from '../bounds.ts'
import type { Caller } from '../caller.ts'
import { checkInput, parseJson, payloadOf } from '../input.ts'
import { toLine } from '../lines.ts'
import { maxBodyBytes } from '../limits.ts'
import { toProblem } from '../problems.ts'
import type { Handlers } from './handler.ts'

/** Lines that are stored together. */
const batchLines = 64
const batchBytes = 4 * 1024 * 1024

export const captureHandlers: Handlers<keyof typeof captureEndpoints> = {
  capture: (input, { dlq, caller }) => captureFailure(dlq, input, caller),

  async *captureMany(_, { dlq, caller, body, onError }) {
    for await (const batch of batchesOf(splitLines(body, maxBodyBytes))) {
      const results = batch.map(async (line) => {
        try {
          return { line: line.number, ...(await captureFailure(dlq, readLine(line), caller)) }
        } catch (error) {
          const problem = toProblem(error)
          if (problem.code === 'INTERNAL') onError(error)
          return { line: line.number, problem }
        }
      })
      yield (await Promise.all(results)).map(toLine).join('')
    }
  },
}

async function captureFailure(
  dlq: DeadLetterQueue,
  input: CaptureInput,
  caller: Caller,
): Promise<OutputOf<'capture'>> {
  const { operation, thrown, context } = captureOf(boundFailure(input, caller))
  const letter = await dlq.enqueue(operation, thrown, { ...context, by: caller.name })
  // The id of somebody else: what is stored under it stays unknown.
  if (!isInScope(caller.scope, letter) && letter.id === context.id?.toLowerCase())
    throw new RedriveError(
      'ID_CONFLICT',
      `letter ${letter.id} is already stored with another payload: use another id`,
    )
  const { id, queue, state, occurrences } = letter
  return { id, queue, state, occurrences }
}

function captureOf(input: CaptureInput): {
  operation: OperationInput
  thrown: unknown
  context: CaptureContext
} {
  const { queue, error, json, text, base64, method, endpoint, ...context } = withoutUndefined(input)
  const payload = payloadOf(withoutUndefined({ json, text, base64 }), 'a failure has one payload')
  const contentType = text === undefined ? {} : { contentType: 'text/plain' }
  return {
    operation: {
      type: queue,
      ...withoutUndefined({ method, endpoint }),
      payload: payload ?? null,
    },
    thrown: { name: 'Error', ...withoutUndefined(error) },
    context: { ...contentType, ...context },
  }
}

function readLine({ number, bytes, size }: RawLine): CaptureInput {
  if (!bytes)
    throw new RedriveError(
      'TOO_LARGE',
      `line ${number} has ${size} bytes, the limit is ${maxBodyBytes}: store a reference instead`,
    )
  return checkInput(captureInput, parseJson(bytes, `line ${number}`)) as CaptureInput
}

/** Groups lines by number and size. Empty lines are left out. */
async function* batchesOf(lines: AsyncIterable<RawLine>): AsyncGenerator<RawLine[]> {
  let batch: RawLine[] = []
  let size = 0
  for await (const line of lines) {
    if (line.bytes?.toString().trim() === '') continue
    batch.push(line)
    size += line.bytes?.byteLength ?? 0
    if (batch.length < batchLines && size < batchBytes) continue
    yield batch
    batch = []
    size = 0
  }
  if (batch.length > 0) yield batch
}
