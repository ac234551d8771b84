import type { Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkOneOf, keysOf } from '../check/keys.ts'
import type { RetryPolicy } from '../letter/letter.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { parsePolicy } from '../policy/backoff.ts'
import type { DLQPolicy } from '../policy/dlq-policy.ts'
import {
  checkOptions,
  describeValue,
  listenerKeys,
  optionalFunction,
  renamedReceiving,
  requireMailbox,
} from './check-options.ts'
import type { DeadLettering } from './dead-lettering.ts'
import type { Listeners } from './events.ts'
import { checkBreaker, type LoopBreakerOptions } from './loop-breaker.ts'
import { receivingKeys, type Receiving } from './receiver.ts'

export interface RequestLoopOptions extends Receiving, Listeners {
  requests: Mailbox
  /**
   * When failed messages become dead letters, and where they are stored. Without it,
   * `withoutPolicy` decides.
   */
  dlq?: DeadLettering | DLQPolicy
  /**
   * What happens to a failure without `dlq`: retry after a delay, or reply with the error and
   * acknowledge. Default: `retry`.
   */
  withoutPolicy?: 'retry' | 'reply-and-ack'
  /**
   * How long a failed message stays hidden. Default: one more minute after each failure, at most
   * 15.
   */
  backoff?: RetryPolicy
  /**
   * Circuit breaker: receives only probes while most messages fail with one cause, and counts none
   * of these failures. False: off. It is off as well if failures are answered at once
   * (`reply-and-ack`).
   */
  breaker?: LoopBreakerOptions | false
  /** Returns the id of a request. Default: its `requestId` or `request_id`. */
  requestIdOf?: (request: unknown, message: Message) => string | undefined
  /**
   * How often the number of dead messages is reported, if `dlq` stores them as letters. Default:
   * 60,000.
   */
  depthEveryMs?: number
  clock?: Clock
}

const requestLoopKeys = [
  ...receivingKeys,
  ...listenerKeys,
  ...keysOf<Omit<RequestLoopOptions, keyof Receiving | keyof Listeners>>({
    requests: true,
    dlq: true,
    withoutPolicy: true,
    backoff: true,
    breaker: true,
    requestIdOf: true,
    depthEveryMs: true,
    clock: true,
  }),
]
const renamedOptions = { ...renamedReceiving, mailbox: 'requests', handler: 'process' }

/** Rejects invalid options of a loop. `own` are the options that only this kind of loop has. */
export function checkRequestLoop(
  thing: string,
  options: RequestLoopOptions,
  own: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): void {
  const known = [...requestLoopKeys, ...own]
  checkOptions(thing, options, known, { ...renamedOptions, ...renamed })
  requireMailbox(thing, 'requests', options.requests)
  optionalFunction(thing, 'requestIdOf', options.requestIdOf)
  checkBreaker(thing, options.breaker)
  const { withoutPolicy = 'retry', backoff } = options
  checkOneOf('withoutPolicy', withoutPolicy, ['retry', 'reply-and-ack'], { code: 'INVALID_CONFIG' })
  if (backoff !== undefined && (typeof backoff !== 'object' || !parsePolicy(backoff)))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${thing} option backoff must be a retry policy, such as linear({ stepMs: 60_000 }); got ${describeValue(backoff)}`,
    )
}
