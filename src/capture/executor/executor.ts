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
import type { Door } from '../capture.ts'
import { checkContext, type CaptureContext } from '../context.ts'
import { checkOperation, letterIdOf, operationCapture, type OperationInput } from '../operation.ts'
import type { ExecutorOptions, SettledPolicy } from './resilience.ts'
import { Chain, type Call } from './chain.ts'
import { readPolicies } from './options.ts'

interface ExecutorParts {
  door: Door
  hub: ObserverHub
  clock: Clock
  rules: readonly Rule[]
}

/** What the operation is told about the run it is in. */
export interface ExecutorRun {
  /** Aborts when the time is up, and when the caller's signal does. */
  signal: AbortSignal
  /** 1 for the first run. */
  attempt: number
  /** The same for every run of the call, and for every retry of the letter that the call makes if it fails. */
  idempotencyKey: string
}

/** What is known about a call, for its letter and for ending it early. */
export interface ExecuteContext extends Omit<CaptureContext, 'attempts'> {
  /**
   * What is needed to make the call again. `type` names the queue; without it, the policy does. The payload is
   * encoded when the call has failed, so do not change it meanwhile.
   */
  operation?: Partial<OperationInput>
  /** Cancels the call. A cancelled call rejects with the signal's reason and makes no letter. */
  signal?: AbortSignal
}

/**
 * Makes calls by named policies, and keeps the ones that fail for good. Breakers and bulkheads belong to this
 * object: use one for all calls that share them.
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
   * Runs the operation by the policy. When it fails for good and no fallback answers, its letter is kept, and then the
   * very error that the operation threw last is rethrown; trouble with keeping the letter never hides it. Inside a
   * redelivery the failure belongs to the letter that is being redelivered, so no other letter is made; one of another
   * queue is made if the handler catches the failure and ends well.
   */
  async execute<T>(
    policyName: string,
    operation: (run: ExecutorRun) => Promise<T> | T,
    context?: ExecuteContext,
  ): Promise<T> {
    const chain = this.#chainOf(policyName)
    if (context) {
      // A mistake that shows only in a failure would cost the letter.
      checkContext(context, 'execute context', ['operation', 'signal'])
      if (context.operation !== undefined) checkOperation(context.operation)
    }
    const kept = { ...context, id: letterIdOf(context, this.#parts.clock) }
    const idempotencyKey = keyOf(chain.policy, kept)
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
      return (await this.#failed(chain, call, chain.errorOf(call, error), kept)) as T
    }
  }

  /** Whether the breaker of a policy lets calls through. One without a breaker is closed. */
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

  /** What the fallback gives; without one, throws the error, once its letter is kept. */
  async #failed(
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
        // To throw the error that it was given is how a fallback declines.
        if (error !== thrown)
          hub.emit({ type: 'error', during: `fallback of ${policy.name}`, error })
      }
    await this.#keep(policy, call, thrown, context)
    throw thrown
  }

  async #keep(
    policy: SettledPolicy,
    { attempts }: Call,
    thrown: unknown,
    { operation = {}, signal: _signal, ...context }: ExecuteContext,
  ): Promise<void> {
    const type = queueOf(policy, operation)
    const replayable = operation.payload !== undefined || context.policy !== undefined
    const asked: CaptureContext = replayable
      ? context
      : { ...context, policy: never(), tags: [...(context.tags ?? []), 'not-replayable'] }
    const { door, hub } = this.#parts
    const trouble = (error: unknown): void =>
      hub.emit({ type: 'error', during: `capture of ${type}`, error })
    try {
      const captured = operationCapture({ ...operation, type }, thrown, { ...asked, attempts })
      await keepUnlessRetried(type, () => door.capture(captured).catch(trouble))
    } catch (error) {
      trouble(error)
    }
  }
}

function queueOf({ queue }: SettledPolicy, { type = queue }: Partial<OperationInput> = {}): string {
  return type
}

/** The key of the letter that the call would make; in a redelivery of the same work, that of the letter being redelivered. */
function keyOf(policy: SettledPolicy, context: ExecuteContext & { id: string }): string {
  const { id, operation, contentType } = context
  const payload = operation?.payload
  const again =
    payload === undefined
      ? undefined
      : redeliveredKey(queueOf(policy, operation), () => encodePayload(payload, contentType))
  return again ?? idempotencyKeyOf({ id, payload: { version: 1 }, replays: 0 })
}
