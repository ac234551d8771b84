import type { Clock } from '../clock/clock.ts'
import { hasCode, RedriveError } from '../errors.ts'
import { checkKeys, describeValue, keysOf } from '../check/keys.ts'
import { idempotencyKeyOf } from '../letter/idempotency-key.ts'
import type { DeadLetter, Json, Payload, Source } from '../letter/letter.ts'
import { encodePayload } from '../letter/payload.ts'
import { failedResultOf } from '../letter/result.ts'
import type { ObserverHub } from '../observer.ts'
import { keepUnlessRetried, redeliveredKey } from '../run-context.ts'
import type { Captured, Capturer } from './capture.ts'
import { checkContext, jsonOf, type CaptureContext } from './context.ts'
import { checkQueueName } from '../check/queue-name.ts'

/** A failed call: its kind, and what is needed to repeat it. */
export interface OperationInput {
  /** Name of the queue, and so of the handler that can retry the call. */
  type: string
  method?: string
  endpoint?: string
  payload?: unknown
  context?: { [key: string]: Json }
}

/** One of the failures for `enqueueAll`. */
export interface Enqueued {
  operation: OperationInput
  error: unknown
  context?: CaptureContext
}

const failureKeys = keysOf<Enqueued>({ operation: true, error: true, context: true })

/** The capture of one failure for `enqueueAll`. */
export function enqueuedCapture(failure: Enqueued): Captured {
  checkKeys('failure', failure, failureKeys)
  return operationCapture(failure.operation, failure.error, failure.context)
}

/** The capture of an operation and its error. */
export function operationCapture(
  operation: OperationInput,
  thrown: unknown,
  context: CaptureContext = {},
): Captured {
  checkKeys('operation', operation, operationKeys)
  const { type, method, endpoint, payload, context: around } = operation
  const queue = checkQueueName(type)
  const source: Source = { kind: 'operation', type }
  if (method !== undefined) source.method = stringOf('method', method)
  if (endpoint !== undefined) source.endpoint = stringOf('endpoint', endpoint)
  checkContext(context)
  if (around !== undefined) source.context = jsonOf(around)
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

/** Rejects an invalid operation. */
export function checkOperation(operation: Partial<OperationInput>): void {
  checkKeys('operation', operation, operationKeys)
  const { type, method, endpoint } = operation
  if (type !== undefined) checkQueueName(type)
  if (method !== undefined) stringOf('method', method)
  if (endpoint !== undefined) stringOf('endpoint', endpoint)
}

function stringOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof URL) return value.href
  throw new RedriveError(
    'INVALID_INPUT',
    `${name} of an operation must be a string or a URL, got ${describeValue(value)}`,
  )
}

/**
 * The second argument of a guarded function, in the guarded call itself and in each retry of its
 * letter.
 */
export interface GuardedRun<Input = unknown> {
  /** The letter that is retried. Absent in the guarded call itself. */
  letter?: DeadLetter
  input: Input
  /** 0 for the guarded call itself, 1 for the first retry. */
  attempt: number
  /**
   * In a retry: aborts on timeout, when the lease is lost, and when the queue stops. In the guarded
   * call it never aborts.
   */
  signal: AbortSignal
  /**
   * The same for the guarded call and for every retry of its letter, until the payload is edited or
   * the letter is replayed. Pass it to services that must not act twice.
   */
  idempotencyKey: string
  /** The fencing token of this run. 0 for the guarded call itself. */
  epoch: number
}

/** The run of the guarded call itself: no letter, no lease, no timeout. */
export function firstRun<Input>(input: Input, idempotencyKey: string): GuardedRun<Input> {
  const { signal } = new AbortController()
  return { input, attempt: 0, signal, idempotencyKey, epoch: 0 }
}

export interface GuardOptions {
  capturer: Capturer
  clock: Clock
  hub: ObserverHub
  queue: string
  /**
   * False: once the letter is stored, the guarded call resolves with undefined instead of throwing.
   */
  rethrow: boolean
  contextOf?: (input: unknown) => CaptureContext
}

/**
 * Wraps a function so that its failures are stored. The input is encoded before the function runs,
 * so that the letter has the original input even if the function changes it. The id of the letter
 * is chosen before too, so that the call has the idempotency key of its retries. The original error
 * is rethrown once the letter is stored; an error of the store never hides it. Inside a redelivery
 * the failure belongs to the redelivered letter, so no other letter is created; one of another
 * queue is created if the handler catches the failure and succeeds.
 */
export function guardFunction<A, R>(
  fn: (input: A, run: GuardedRun<A>) => Promise<R>,
  options: GuardOptions,
): (input: A) => Promise<R | undefined> {
  const report = (error: unknown): void =>
    options.hub.emit({ type: 'error', during: `capture of ${options.queue}`, error })
  const store = async (
    { problem, ...captured }: Prepared,
    thrown: unknown,
    rest?: Payload,
  ): Promise<DeadLetter | undefined> => {
    if (problem !== undefined) report(problem)
    try {
      return await captureRest(options.capturer, { ...captured, thrown }, rest, report)
    } catch (error) {
      report(error)
      if (!options.rethrow)
        throw new RedriveError(
          'STORE_UNAVAILABLE',
          `a call of ${options.queue} failed and its letter could not be stored: the cause is the failure of the call, the error event has the error of the store`,
          { cause: thrown },
        )
      return undefined
    }
  }
  return async (input) => {
    const prepared = prepareCapture(input, options)
    const run = firstRun(input, keyOf(prepared))
    if (!options.capturer.enabled) return fn(input, run)
    let result: R
    try {
      result = await fn(input, run)
    } catch (error) {
      const stored = await keepUnlessRetried(options.queue, () => store(prepared, error))
      if (options.rethrow || !stored) throw error
      return undefined
    }
    const failed = failedResultOf(result)
    if (failed) {
      const { error, remaining } = failed
      const rest = remaining === undefined ? undefined : encodePayload(remaining)
      await keepUnlessRetried(options.queue, () => store(prepared, error, rest))
    }
    return result
  }
}

/**
 * Captures the remaining work, or all of it if the remainder is too large: repeating work is better
 * than losing it.
 */
async function captureRest(
  capturer: Capturer,
  captured: Captured,
  rest: Payload | undefined,
  report: (error: unknown) => void,
): Promise<DeadLetter> {
  try {
    return await capturer.capture(rest ? { ...captured, payload: rest } : captured)
  } catch (error) {
    if (!rest || !hasCode(error, 'TOO_LARGE')) throw error
    report(error)
    return capturer.capture(captured)
  }
}

/** The capture of a call that may fail, and the error in the caller's context, if any. */
type Prepared = Captured & { context: { id: string }; problem?: unknown }

/** Encodes the input before the call. An invalid context costs neither the call nor the letter. */
function prepareCapture(input: unknown, { queue, clock, contextOf }: GuardOptions): Prepared {
  const operation = { type: queue, payload: input }
  try {
    return withId(operationCapture(operation, undefined, contextOf?.(input)), clock)
  } catch (problem) {
    return { ...withId(operationCapture(operation, undefined), clock), problem }
  }
}

function withId(captured: Captured, clock: Clock): Prepared {
  return { ...captured, context: { ...captured.context, id: letterIdOf(captured.context, clock) } }
}

/** The id of the letter that is created if the call fails: given by the caller, or new. */
export function letterIdOf(context: CaptureContext | undefined, clock: Clock): string {
  return context?.id?.toLowerCase() ?? clock.id()
}

function keyOf({ queue, payload, context: { id } }: Prepared): string {
  return redeliveredKey(queue, () => payload) ?? idempotencyKeyOf({ id, payload, replays: 0 })
}
