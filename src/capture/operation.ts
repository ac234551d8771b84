import type { Clock } from '../clock/clock.ts'
import { hasCode, RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { idempotencyKeyOf } from '../letter/idempotency-key.ts'
import type { DeadLetter, Json, Payload, Source } from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { failedResultOf } from '../letter/result.ts'
import type { ObserverHub } from '../observer.ts'
import { keepUnlessRetried, redeliveredKey } from '../run-context.ts'
import type { Captured, Door } from './capture.ts'
import { checkContext, jsonOf, type CaptureContext } from './context.ts'
import { checkQueueName } from '../check/queue-name.ts'

/** A call that failed: what kind it was, and what is needed to make it again. */
export interface OperationInput {
  /** Names the queue, and so the handler that can run it again. */
  type: string
  method?: string
  endpoint?: string
  payload?: unknown
  context?: { [key: string]: Json }
}

/** One of many that are captured at once. */
export interface Enqueued {
  operation: OperationInput
  error: unknown
  context?: CaptureContext
}

/** One of many failures, ready for the door. */
export function enqueuedCapture(failure: Enqueued): Captured {
  checkKeys('failure', failure, ['operation', 'error', 'context'])
  return operationCapture(failure.operation, failure.error, failure.context)
}

/** One operation and the error it ended with, ready for the door. */
export function operationCapture(
  operation: OperationInput,
  thrown: unknown,
  context: CaptureContext = {},
): Captured {
  checkOperation(operation)
  checkContext(context)
  const { type, method, endpoint, payload, context: around } = operation
  const queue = checkQueueName(type)
  const source: Source = {
    kind: 'operation',
    type,
    ...(method === undefined ? {} : { method: textOf('method', method) }),
    ...(endpoint === undefined ? {} : { endpoint: textOf('endpoint', endpoint) }),
    ...(around === undefined ? {} : { context: jsonOf(around) }),
  }
  const encoded = encodePayload(payload, context.contentType ?? undefined)
  return { queue, source, payload: encoded, thrown, context }
}

const operationKeys = keysOf<OperationInput>({
  type: true,
  method: true,
  endpoint: true,
  payload: true,
  context: true,
})

/** Refuses what no letter can say about an operation. */
export function checkOperation(operation: Partial<OperationInput>): void {
  checkKeys('operation', operation, operationKeys)
  const { type, method, endpoint } = operation
  if (type !== undefined) checkQueueName(type)
  if (method !== undefined) textOf('method', method)
  if (endpoint !== undefined) textOf('endpoint', endpoint)
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof URL) return value.href
  throw new RedriveError('INVALID_INPUT', `${name} of an operation must be a text`)
}

/** What a guarded function gets beside its input: in the guarded call itself, and in each retry of its letter. */
export interface GuardedRun<Input = unknown> {
  /** The letter that is retried. Absent in the guarded call itself, which has not failed yet. */
  letter?: DeadLetter
  input: Input
  /** 0 for the guarded call itself, 1 for the first retry. */
  attempt: number
  /** In a retry: aborts on timeout, when the lease is lost, and when the queue stops. In the guarded call it never aborts. */
  signal: AbortSignal
  /**
   * The same for the guarded call and for every retry of its letter, until the payload is edited or the letter is replayed. Pass
   * it on to whatever must not happen twice.
   */
  idempotencyKey: string
  /** The fencing token of this run. 0 for the guarded call itself. */
  epoch: number
}

/** The run of a call that has not failed yet: no letter, no lease, no timeout. */
export function firstRun<Input>(input: Input, idempotencyKey: string): GuardedRun<Input> {
  const { signal } = new AbortController()
  return { input, attempt: 0, signal, idempotencyKey, epoch: 0 }
}

export interface GuardOptions {
  door: Door
  clock: Clock
  hub: ObserverHub
  queue: string
  /** False: once the letter is kept, the guarded call resolves with undefined instead of throwing. */
  rethrow: boolean
  contextOf?: (input: unknown) => CaptureContext
}

/**
 * Wraps a function so that its failures are kept. The input is encoded before the function runs, so that the
 * letter holds what was passed in, whatever the function did to it. The id of the letter is chosen before too, so that the
 * call has the idempotency key of its retries. The original error is rethrown once the letter is stored;
 * trouble with storing never hides it. Inside a redelivery the failure belongs to the letter that is being
 * redelivered, so no other letter is made; one of another queue is made if the handler catches the failure and ends well.
 */
export function guarded<A, R>(
  fn: (input: A, run: GuardedRun<A>) => Promise<R>,
  options: GuardOptions,
): (input: A) => Promise<R | undefined> {
  const trouble = (error: unknown): void =>
    options.hub.emit({ type: 'error', during: `capture of ${options.queue}`, error })
  const keep = async (
    { problem, ...captured }: Held,
    thrown: unknown,
    rest?: Payload,
  ): Promise<DeadLetter | undefined> => {
    if (problem !== undefined) trouble(problem)
    try {
      return await captureRest(options.door, { ...captured, thrown }, rest, trouble)
    } catch (error) {
      trouble(error)
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
    const held = holdInput(input, options)
    const run = firstRun(input, keyOf(held))
    if (!options.door.enabled) return fn(input, run)
    let result: R
    try {
      result = await fn(input, run)
    } catch (error) {
      const kept = await keepUnlessRetried(options.queue, () => keep(held, error))
      if (options.rethrow || !kept) throw error
      return undefined
    }
    const said = failedResultOf(result)
    if (said) {
      const { error, remaining } = said
      const rest = remaining === undefined ? undefined : encodePayload(remaining)
      await keepUnlessRetried(options.queue, () => keep(held, error, rest))
    }
    return result
  }
}

/** With what remains, or with all of it when that is too large: what is done twice is not lost. */
async function captureRest(
  door: Door,
  captured: Captured,
  rest: Payload | undefined,
  trouble: (error: unknown) => void,
): Promise<DeadLetter> {
  try {
    return await door.capture(rest ? { ...captured, payload: rest } : captured)
  } catch (error) {
    if (!rest || !hasCode(error, 'TOO_LARGE')) throw error
    trouble(error)
    return door.capture(captured)
  }
}

/** What a failure would be kept as, and what was wrong with what was said about it. */
type Held = Captured & { context: { id: string }; problem?: unknown }

/** A mistake in what is said about a failure costs neither the call nor the letter. */
function holdInput(input: unknown, { queue, clock, contextOf }: GuardOptions): Held {
  const operation = { type: queue, payload: input }
  try {
    return withId(operationCapture(operation, undefined, contextOf?.(input)), clock)
  } catch (problem) {
    return { ...withId(operationCapture(operation, undefined), clock), problem }
  }
}

function withId(captured: Captured, clock: Clock): Held {
  return { ...captured, context: { ...captured.context, id: letterIdOf(captured.context, clock) } }
}

/** The id of the letter that a call makes if it fails: the caller's choice, or a new one. */
export function letterIdOf(context: CaptureContext | undefined, clock: Clock): string {
  return context?.id?.toLowerCase() ?? clock.id()
}

function keyOf({ queue, payload, context: { id } }: Held): string {
  return redeliveredKey(queue, () => payload) ?? idempotencyKeyOf({ id, payload, replays: 0 })
}
