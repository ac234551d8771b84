import { bounded, whole } from '../backends/bounds.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import type { Clock } from '../clock/clock.ts'
import type { Judged } from '../letter/moves.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import { toTimestamp } from '../letter/time.ts'
import {
  admits,
  blamesDependency,
  closedBreaker,
  stepBreaker,
  type BreakerEvent,
  type BreakerSettings,
  type BreakerState,
} from '../policy/breaker.ts'
import { wrongOption } from './check-options.ts'
import type { Emit } from './events.ts'

/** When a loop stops receiving because most of its messages fail with one cause. */
export type LoopBreakerOptions = Partial<Omit<BreakerSettings, 'patienceMs'>>

const optionKeys = keysOf<LoopBreakerOptions>({
  failures: true,
  share: true,
  openMs: true,
  maxOpenMs: true,
  probes: true,
  successes: true,
})

const defaults = { failures: 20, successes: 3 } satisfies LoopBreakerOptions

/** Rejects invalid settings. `thing` is the loop that has them. */
export function checkBreaker(thing: string, breaker: unknown): void {
  if (breaker === undefined || breaker === false) return
  if (typeof breaker !== 'object' || breaker === null)
    throw wrongOption(thing, 'breaker', 'false, or an object such as { failures: 20 }', breaker)
  checkKeys(`${thing} option breaker`, breaker, optionKeys, { code: 'INVALID_CONFIG' })
  const { failures = 1, share = 1, openMs = 1, maxOpenMs = 1 } = breaker as LoopBreakerOptions
  const { probes = 1, successes = 1 } = breaker as LoopBreakerOptions
  whole('breaker.failures', failures, 1000)
  bounded('breaker.share', share, 1, 0.01)
  bounded('breaker.openMs', openMs, Infinity, 1)
  bounded('breaker.maxOpenMs', maxOpenMs, Infinity, 1)
  whole('breaker.probes', probes, 1000)
  whole('breaker.successes', successes, 1000)
}

export interface LoopBreakerParts {
  mailbox: string
  clock: Clock
  emit: Emit
  /** Failed probes in a row of one message after which its failure counts. */
  maxProbesOfMessage: number
}

/**
 * Circuit breaker of a loop: when most messages fail with one cause, the loop receives nothing for
 * a while, then one message at a time as a probe, until probes succeed. Meanwhile failures are not
 * counted, so that an outage dead-letters no message. Exception: if the same message is probed
 * again and again with an error that the classifier does not know, no other message is left to
 * tell an outage from a poison message. After `maxProbesOfMessage` probes its failure counts.
 */
export class LoopBreaker {
  readonly #settings: LoopBreakerOptions
  readonly #parts: LoopBreakerParts
  #state: BreakerState = closedBreaker
  /** The failure that opened the breaker, for people. */
  #cause = ''
  /** The message whose probes failed last with an unknown error, and how many did in a row. */
  #lastProbe = { messageId: '', failures: 0 }

  constructor(settings: LoopBreakerOptions, parts: LoopBreakerParts) {
    this.#settings = { ...defaults, ...settings }
    this.#parts = parts
  }

  /** Number of messages that may start now. */
  capacity(): number {
    return admits(this.#state, this.#parts.clock.mono(), this.#settings)
  }

  /**
   * Time until a message may start. 0: only a message that ends helps. Never 0 while the breaker is
   * open, since time passes between this call and that of `capacity`.
   */
  waitMs(): number {
    if (this.#state.kind !== 'open') return 0
    return Math.max(1, this.#state.untilMs - this.#parts.clock.mono())
  }

  /** A message ended without a result that says something about a dependency: `ended`. */
  step(type: 'started' | 'succeeded' | 'ended', messageId: string): void {
    if (type === 'succeeded') this.#lastProbe = { messageId, failures: 0 }
    this.#set({ type, letterId: messageId, atMs: this.#parts.clock.mono() })
  }

  /**
   * A message failed. If the breaker is not closed then, the failure is not counted, and the result
   * is how long the message stays hidden: until the next probe, and a probe twice as long, so that
   * the next one is another message. Undefined: the failure counts. One that the message itself
   * causes always does. A message that failed before cannot open the breaker: when only poison
   * messages are left, all that the loop sees are failures.
   */
  failed(
    messageId: string,
    { failure, category, fingerprint }: Judged,
    failedBefore: boolean,
  ): number | undefined {
    const { kind } = this.#state
    if (kind === 'closed' && failedBefore) return undefined
    if (kind === 'closed') this.#cause = `${failure.name}: ${failure.message}`.slice(0, 200)
    const wasProbe = this.#state.kind === 'half-open' && this.#state.probing.includes(messageId)
    const { retryAfterMs } = failure
    this.#set({
      type: 'failed',
      letterId: messageId,
      atMs: this.#parts.clock.mono(),
      category,
      // Errors that the classifier does not know have nothing in common.
      cause: category === 'unknown' ? fingerprint : category,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
    if (this.#state.kind === 'closed' || !blamesDependency(category)) return undefined
    if (wasProbe) this.#countProbe(messageId, category === 'unknown')
    if (wasProbe && this.failedProbesOf(messageId) >= this.#parts.maxProbesOfMessage)
      return undefined
    return this.waitMs() * (wasProbe ? 2 : 1)
  }

  /** Probes of the message that failed in a row, with no probe of another message in between. */
  failedProbesOf(messageId: string): number {
    return this.#lastProbe.messageId === messageId ? this.#lastProbe.failures : 0
  }

  #countProbe(messageId: string, isUnknown: boolean): void {
    const failures = isUnknown ? this.failedProbesOf(messageId) + 1 : 0
    this.#lastProbe = { messageId, failures }
  }

  /** Forgets probes of an earlier run whose work never ended. */
  dropProbes(): void {
    if (this.#state.kind === 'half-open')
      for (const messageId of this.#state.probing) this.step('ended', messageId)
  }

  status(): NonNullable<LoopStatus['breaker']> {
    const until = this.#openUntil()
    return { state: this.#state.kind, ...(until === undefined ? {} : { until }) }
  }

  problems(): string[] {
    if (this.#state.kind === 'closed') return []
    const { mailbox } = this.#parts
    const until = this.#openUntil()
    const next = until === undefined ? 'a message is tried now' : `the next try is at ${until}`
    return [`the breaker of ${mailbox} is ${this.#state.kind}: ${this.#cause}; ${next}`]
  }

  #set(event: BreakerEvent): void {
    const before = this.#state.kind
    this.#state = stepBreaker(this.#state, event, this.#settings)
    const { kind: state } = this.#state
    if (state === before) return
    const { emit, mailbox } = this.#parts
    const until = this.#openUntil()
    const why = until === undefined ? {} : { until, cause: this.#cause }
    emit({ type: 'loop-breaker', mailbox, state, ...why })
  }

  /** Undefined while the breaker is not open. */
  #openUntil(): string | undefined {
    if (this.#state.kind !== 'open') return undefined
    return toTimestamp(this.#parts.clock.now() + this.waitMs())
  }
}
