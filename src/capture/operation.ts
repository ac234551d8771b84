import { RedriveError } from '../errors.ts'
import type { DeadLetter, Json, Source } from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { isFailedResult } from '../letter/result.ts'
import type { ObserverHub } from '../observer.ts'
import { redelivering } from '../redelivering.ts'
import type { Captured, Door } from './capture.ts'
import { checkContext, checkQueueName, jsonOf, type CaptureContext } from './context.ts'

/** A call that failed: what kind it was, and what is needed to make it again. */
export interface OperationInput {
  /** Names the queue, and so the handler that can run it again. */
  type: string
  method?: string
  endpoint?: string
  payload?: unknown
  context?: { [key: string]: Json }
}

/** One operation and the error it ended with, ready for the door. */
export function operationCapture(
  operation: OperationInput,
  thrown: unknown,
  context: CaptureContext = {},
): Captured {
  const queue = checkQueueName(operation.type)
  checkContext(context)
  const { type, method, endpoint, payload, context: around } = operation
  const source: Source = {
    kind: 'operation',
    type,
    ...(method === undefined ? {} : { method }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(around === undefined ? {} : { context: jsonOf(around) }),
  }
  return { queue, source, payload: encodePayload(payload, context.contentType), thrown, context }
}

export interface GuardOptions {
  door: Door
  hub: ObserverHub
  queue: string
  /** False: once the letter is kept, the guarded call resolves with undefined instead of throwing. */
  rethrow: boolean
  contextOf?: (input: unknown) => CaptureContext
}

/**
 * Wraps a function so that its failures are kept. The input is encoded before the function runs, so that the
 * letter holds what was passed in, whatever the function did to it. The original error is rethrown once the letter is stored;
 * trouble with storing never hides it. Inside a redelivery the failure belongs to the letter that is being
 * redelivered, so no other letter is made.
 */
export function guarded<A, R>(
  fn: (input: A) => Promise<R>,
  options: GuardOptions,
): (input: A) => Promise<R> {
  const keep = async (captured: Captured, thrown: unknown): Promise<DeadLetter | undefined> => {
    try {
      return await options.door.capture({ ...captured, thrown })
    } catch (error) {
      options.hub.emit({ type: 'trouble', during: `capture of ${options.queue}`, error })
      if (!options.rethrow)
        throw new RedriveError(
          'STORE_UNAVAILABLE',
          `${options.queue} failed and its letter could not be kept: the cause is the failure itself`,
          { cause: thrown },
        )
      return undefined
    }
  }
  return async (input) => {
    if (redelivering() !== undefined) return fn(input)
    const captured = operationCapture(
      { type: options.queue, payload: input },
      undefined,
      options.contextOf?.(input),
    )
    let result: R
    try {
      result = await fn(input)
    } catch (error) {
      await keep(captured, error)
      if (options.rethrow) throw error
      return undefined as R
    }
    if (isFailedResult(result)) await keep(captured, result.error)
    return result
  }
}
