import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { idempotencyKeyOf } from '../../letter/idempotency-key.ts'
import { encodePayload } from '../../letter/payload.ts'
import type { ObserverHub } from '../../observer.ts'
import { nearest } from '../../check/nearest.ts'
import { never } from '../../policy/backoff.ts'
import type { BreakerState } from '../../policy/breaker.ts'
import type { Rule } from '../../policy/classify.ts'
import { keepUnlessRetried, redeliveredKey } from '../../run-context.ts'
import type { Capturer } from '../capture.ts'
import { checkContext, type CaptureContext } from '../context.ts'
import { checkOperation, letterIdOf, operationCapture, type OperationInput } from '../operation.ts'
import type { ExecutorOptions, ResolvedPolicy } from './resilience.ts'
import { Chain, type Call } from './chain.ts'
import { readPolicies } from './options.ts'

interface ExecutorParts {
  capturer: Capturer
  hub: ObserverHub
  clock: Clock
  rules: readonly Rule[]
}

/** The run of an operation. */
export interface ExecutorRun {
  /** Aborts on timeout, and when the caller's signal aborts. */
  signal: AbortSignal
  /** 1 for the first run. */
  attempt: number
  /** The same for every run of the call, and for every retry of its letter. */
  idempotencyKey: string
}

/** The context of a call: what its letter stores, and a signal to cancel the call. */
export interface ExecuteContext extends Omit<CaptureContext, 'attempts'> {
  /**
   * What is needed to repeat the call. `type` is the queue. Default: the queue of the policy. The
   * payload is encoded after the call has failed, so do not change it meanwhile.
   */
  operation?: Partial<OperationInput>
  /** Cancels the call. A cancelled call rejects with the signal's reason and creates no letter. */
  signal?: AbortSignal
}

/**
 * Makes calls by named policies, and stores the ones that fail finally. Breakers and bulkheads
 * belong to this object: use one executor for all calls that share them.
 */
export class ResilientExecutor {
  readonly #parts: ExecutorParts
  readonly #chains: ReadonlyMap<string, Chain>

  constructor(options: ExecutorOptions = {}, parts: ExecutorParts) {
    this.#parts = parts
    this.#chains = new Map(
      [...readPolicies(options)].map(([name, policy]) => [name, new Chain(policy, parts)]),
    )
  }

  /**
   * Runs the operation by the policy. If it fails finally and no fallback returns a result, its
   * letter is stored, and then the last error of the operation is rethrown; an error of the store
   * never hides it. Inside a redelivery the failure belongs to the redelivered letter, so no other
   * letter is created; one of another queue is created if the handler catches the failure and
   * succeeds.
   */
  async execute<T>(
    policyName: string,
    operation: (run: ExecutorRun) => Promise<T> | T,
    context?: ExecuteContext,
  ): Promise<T> {
    const chain = this.#chainOf(policyName)
    if (context) {
      // Checked before the call: an error that shows only after a failure would cost the letter.
      checkContext(context, 'execute context', ['operation', 'signal'])
      if (context.operation !== undefined) checkOperation(context.operation)
    }
    const identified = { ...context, id: letterIdOf(context, this.#parts.clock) }
    const idempotencyKey = keyOf(chain.policy, identified)
    const call: Call = {
      operation: (run) => operation({ ...run, idempotencyKey }),
      signal: context?.signal,
      attempts: 0,
      last: undefined,
    }
    try {
      return (await chain.run(call)) as T
    } catch (error) {
      call.signal?.throwIfAborted()
      return (await this.#handleFailure(chain, call, chain.errorOf(call, error), identified)) as T
    }
  }

  /** The state of a policy's breaker. A policy without a breaker is closed. */
  state(policyName: string): BreakerState['kind'] {
    return this.#chainOf(policyName).state
  }

  #chainOf(policyName: string): Chain {
    const chain = this.#chains.get(policyName)
    if (chain) return chain
    const known = [...this.#chains.keys()]
    const near = nearest(String(policyName), known)
    throw new RedriveError(
      'INVALID_INPUT',
      `unknown policy "${String(policyName).slice(0, 80)}": ${near ? `did you mean "${near}"? ` : ''}known: ${known.join(', ')}`,
    )
  }

  /**
   * Returns the result of the fallback; without one, throws the error after its letter is stored.
   */
  async #handleFailure(
    { policy }: Chain,
    call: Call,
    thrown: unknown,
    context: ExecuteContext,
  ): Promise<unknown> {
    const { hub } = this.#parts
    if (policy.fallback)
      try {
        return await policy.fallback(thrown)
      } catch (error) {
        // A fallback that throws the error it got declines.
        if (error !== thrown)
          hub.emit({ type: 'error', during: `fallback of ${policy.name}`, error })
      }
    await this.#store(policy, call, thrown, context)
    throw thrown
  }

  async #store(
    policy: ResolvedPolicy,
    { attempts }: Call,
    thrown: unknown,
    { operation = {}, signal: _signal, ...context }: ExecuteContext,
  ): Promise<void> {
    const type = queueOf(policy, operation)
    const replayable = operation.payload !== undefined || context.policy !== undefined
    const captureContext: CaptureContext = replayable
      ? context
      : { ...context, policy: never(), tags: [...(context.tags ?? []), 'not-replayable'] }
    const { capturer, hub } = this.#parts
    const report = (error: unknown): void =>
      hub.emit({ type: 'error', during: `capture of ${type}`, error })
    try {
      const captured = operationCapture({ ...operation, type }, thrown, {
        ...captureContext,
        attempts,
      })
      await keepUnlessRetried(type, () => capturer.capture(captured).catch(report))
    } catch (error) {
      report(error)
    }
  }
}

function queueOf(
  { queue }: ResolvedPolicy,
  { type = queue }: Partial<OperationInput> = {},
): string {
  return type
}

/**
 * The idempotency key of the letter that the call would create; in a redelivery of the same work,
 * that of its letter.
 */
function keyOf(policy: ResolvedPolicy, context: ExecuteContext & { id: string }): string {
  const { id, operation, contentType } = context
  const payload = operation?.payload
  const again =
    payload === undefined
      ? undefined
      : redeliveredKey(queueOf(policy, operation), () => encodePayload(payload, contentType))
  return again ?? idempotencyKeyOf({ id, payload: { version: 1 }, replays: 0 })
}
