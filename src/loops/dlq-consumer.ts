import { doneActions, type DeadLetterHandler, type Handled } from './handlers/handler.ts'
import { thrownOf } from '../capture/mailbox.ts'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkOneOf, keysOf } from '../check/keys.ts'
import { toFailure } from '../letter/failure.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import { read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds, whole } from '../backends/bounds.ts'
import {
  checkOptions,
  describeValue,
  listenerKeys,
  renamedReceiving,
  requireFunction,
  requireMailbox,
} from './check-options.ts'
import { rejectCycle } from './dead-lettering.ts'
import { factsOf, readDeadMessage, type DeadMessage } from './dead-message.ts'
import { toDestination, type Destination } from './destination.ts'
import { createEmit, type DeadFacts, type Listeners, type LoopEvent, type Emit } from './events.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { HeldMessage } from './held-message.ts'
import { alertHandler } from './handlers/alert.ts'
import { dedupedReplay } from './handlers/deduped-replay.ts'
import { replay, replayHandler } from './handlers/replay.ts'
import { selectiveReplay } from './handlers/selective-replay.ts'
import { LoopActivity } from './loop-activity.ts'
import { measureMailbox, reportDepth } from './queue-depth.ts'
import { Receiver, receivingKeys, type Receiving } from './receiver.ts'
import type { Flow, Runnable, RunOptions, ShutdownOptions } from './runnable.ts'
import { settle, isStillOurs, type DeliveryContext } from './settling.ts'

export interface DLQConsumerOptions extends Receiving, Listeners {
  /** For people. Default: the name of the mailbox. */
  name?: string
  mailbox: Mailbox
  handler: DeadLetterHandler
  /** How long a message stays hidden after its handler failed. Default: 3600. */
  backoffSeconds?: number
  /** How often the handler may fail before the message is parked. Default: 5. */
  maxAttempts?: number
  /**
   * Where parked messages are stored. Without it, they stay in the mailbox, hidden for as long as
   * the broker allows, and are not run again; but a message that the handler itself parks is handed
   * to the handler each time.
   */
  parked?: Mailbox | Destination
  /**
   * How often the depth of the queue and the age of its oldest message are reported. Default:
   * 60,000.
   */
  depthEveryMs?: number
  clock?: Clock
}

const consumerKeys = [
  ...receivingKeys,
  ...listenerKeys,
  ...keysOf<Omit<DLQConsumerOptions, keyof Receiving | keyof Listeners>>({
    name: true,
    mailbox: true,
    handler: true,
    backoffSeconds: true,
    maxAttempts: true,
    parked: true,
    depthEveryMs: true,
    clock: true,
  }),
]
const renamedOptions = {
  ...renamedReceiving,
  requests: 'mailbox',
  dlq: 'mailbox',
  process: 'handler',
}

interface DeadDelivery extends DeliveryContext {
  held: HeldMessage
  dead: DeadMessage
}

/**
 * Passes dead messages to a handler. A message that its handler cannot process is parked in the
 * end: it is never discarded and never dead-lettered again.
 */
export class DLQConsumer implements Runnable {
  readonly name: string
  readonly flow: Flow
  readonly #options: DLQConsumerOptions
  readonly #clock: Clock
  readonly #emit: Emit
  readonly #activity: LoopActivity
  readonly #receiver: Receiver
  readonly #parked: Destination | undefined
  readonly #maxAttempts: number
  readonly #backoffSeconds: number
  readonly #depthEveryMs: number

  constructor(options: DLQConsumerOptions) {
    checkOptions('DLQConsumer', options, consumerKeys, renamedOptions)
    requireMailbox('DLQConsumer', 'mailbox', options.mailbox)
    checkHandler(options.handler)
    const { mailbox, clock = systemClock, maxAttempts = 5, backoffSeconds = 3600 } = options
    this.name = options.name ?? mailbox.name
    this.#options = options
    this.#clock = clock
    this.#activity = new LoopActivity(clock)
    this.#emit = this.#activity.count(createEmit(options))
    this.#maxAttempts = whole('maxAttempts', maxAttempts, 1000)
    this.#backoffSeconds = bounded('backoffSeconds', backoffSeconds, maxVisibilitySeconds)
    this.#depthEveryMs = bounded('depthEveryMs', options.depthEveryMs ?? 60_000, Infinity, 1)
    if (options.parked !== undefined)
      this.#parked = toDestination(options.parked, 'DLQConsumer', 'parked')
    if (this.#parked) rejectCycle(mailbox, this.#parked)
    this.flow = { from: mailbox, to: this.#parked?.mailbox ? [this.#parked.mailbox] : [] }
    this.#receiver = new Receiver({
      ...options,
      clock,
      emit: this.#emit,
      handleMessage: (held) => this.#handleMessage(held),
    })
  }

  get running(): boolean {
    return this.#receiver.running
  }

  get heartbeat(): Heartbeat {
    return this.#receiver.heartbeat
  }

  problems(): string[] {
    return this.#receiver.problems()
  }

  status(): LoopStatus {
    const deadLetters = this.#parked?.name
    return {
      name: this.name,
      kind: 'dlq-consumer',
      ...this.#receiver.status(),
      ...this.#activity.status(),
      ...(deadLetters === undefined ? {} : { deadLetters }),
    }
  }

  async run(options?: RunOptions): Promise<void> {
    const ended = this.#receiver.run(options)
    const { mailbox } = this.#options
    const stopReporting = reportDepth({
      measure: () => measureMailbox(mailbox),
      name: mailbox.name,
      everyMs: this.#depthEveryMs,
      clock: this.#clock,
      emit: this.#emit,
    })
    try {
      await ended
    } finally {
      stopReporting()
    }
  }

  shutdown(options?: ShutdownOptions): Promise<boolean> {
    return this.#receiver.shutdown(options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  async #handleMessage(held: HeldMessage): Promise<void> {
    const { message } = held
    const { mailbox } = this.#options
    this.#activity.addReceived()
    const dead = readDeadMessage(message, mailbox.name)
    const one: DeadDelivery = { held, message, mailbox, emit: this.#emit, dead }
    if (this.#isHopeless(one))
      await this.#park(one, `delivered ${message.deliveries} times, failed ${message.failures}`)
    else await this.#handle(one)
  }

  /**
   * True if the message must not run again. A message parked in place is delivered again after its
   * delay. Each delivery that ended without a failure may have killed its worker.
   */
  #isHopeless({ message }: DeadDelivery): boolean {
    const { failures, deliveries } = message
    return failures >= this.#maxAttempts || deliveries - failures > this.#maxAttempts
  }

  async #handle(one: DeadDelivery): Promise<void> {
    const { held, message, dead } = one
    const startedMs = this.#clock.mono()
    let handled: Handled
    try {
      const returned: unknown = await this.#options.handler(dead, {
        attempt: message.failures + 1,
        signal: held.signal,
        heartbeat: held.heartbeat,
      })
      handled = readHandled(returned)
    } catch (error) {
      return this.#handleFailure(one, error)
    }
    if (handled.action === 'park') return this.#park(one, handled.why)
    // The handler has done its work. Errors from here on are not failures of the handler.
    const durationMs = this.#clock.mono() - startedMs
    const { action } = handled
    const { lastErrorType: errorType } = dead
    this.#emit({
      type: 'dead-letter-handled',
      ...this.#eventFields(one),
      action,
      errorType,
      durationMs,
    })
    await settle(one, 'acknowledging', () => message.acknowledge())
  }

  async #handleFailure(one: DeadDelivery, error: unknown): Promise<void> {
    const { held, message } = one
    if (held.ended === 'stopped') {
      await settle(one, 'releasing', () => message.nack({ failed: false }))
      return
    }
    const attempts = message.failures + 1
    if (attempts >= this.#maxAttempts)
      return this.#park(one, `its handler failed ${attempts} times`, { error })
    const delaySeconds = this.#backoffSeconds
    if (await settle(one, 'releasing', () => message.nack({ delaySeconds })))
      this.#emit({ type: 'dead-letter-failed', ...this.#eventFields(one), error, delaySeconds })
  }

  /** `failed` holds what the handler threw, which may be undefined. */
  async #park(one: DeadDelivery, why: string, failed?: { error: unknown }): Promise<void> {
    const { message, dead } = one
    const parked = this.#parked
    const event: LoopEvent = { type: 'dead-letter-parked', ...this.#eventFields(one), why }
    if (!parked) {
      const hide = { delaySeconds: maxVisibilitySeconds, failed: failed !== undefined }
      if (await settle(one, 'parking', () => message.nack(hide))) this.#emit(event)
      return
    }
    if (!(await isStillOurs(one, 'parking', this.#clock.now()))) return
    try {
      await parked.keep(this.#withNote(dead, why, failed), thrownOf(dead.failure))
    } catch (problem) {
      const during = `parking a message of ${one.mailbox.name} in ${parked.name}`
      this.#emit({ type: 'error', during, error: problem })
      const delaySeconds = this.#backoffSeconds
      await settle(one, 'releasing', () => message.nack({ delaySeconds }))
      return
    }
    this.#emit({ ...event, destination: parked.name })
    await settle(one, 'acknowledging', () => message.acknowledge())
  }

  /**
   * Adds the reason. The last error stays that of the message; the error of the handler is added to
   * the history.
   */
  #withNote(dead: DeadMessage, why: string, failed: { error: unknown } | undefined): DeadMessage {
    if (!failed) return { ...dead, note: why }
    const { name, message, at } = toFailure(failed.error, toTimestamp(this.#clock.now()))
    const attempt = { at, error: message.slice(0, 500), errorType: name }
    return { ...dead, note: `${why}: ${attempt.error}`, history: [...dead.history, attempt] }
  }

  #eventFields({ mailbox, message, dead }: DeadDelivery): DeadFacts {
    return factsOf(dead, mailbox.name, message.deliveries, this.#clock.now())
  }
}

/** Functions of this package that are easily passed instead of the handler that they return. */
const notHandlers = new Map<unknown, string>([
  [alertHandler, 'alertHandler returns a handler: use handler: alertHandler({ log })'],
  [replayHandler, 'replayHandler returns a handler: use handler: replayHandler({ source })'],
  [dedupedReplay, 'dedupedReplay returns a handler: use handler: dedupedReplay({ source, seen })'],
  [replay, 'replay is not a handler: use handler: replayHandler({ source })'],
  [selectiveReplay, 'selectiveReplay reads a queue by itself: call it without a consumer'],
])

function checkHandler(handler: unknown): void {
  requireFunction('DLQConsumer', 'handler', handler, 'handler: (dead) => …')
  const problem = notHandlers.get(handler)
  if (problem !== undefined)
    throw new RedriveError('INVALID_CONFIG', `DLQConsumer option handler: ${problem}`)
}

const allowedResults = `a handler returns nothing, { action: ${doneActions.map((action) => `'${action}'`).join(' | ')} } or { action: 'park', why }`

/**
 * Reads the result of a handler. Throws if it is not a valid result: acknowledging a message after
 * an unknown return value would lose it.
 */
function readHandled(returned: unknown): Handled {
  if (returned === undefined) return { action: 'processed' }
  if (isFailedResult(returned)) throw returned.error ?? unexpected('{ ok: false } without an error')
  const action = typeof returned === 'object' ? read(returned, 'action') : undefined
  if (action === undefined) throw unexpected(describeValue(returned))
  checkOneOf('action returned by the handler', action, [...doneActions, 'park'])
  if (action !== 'park') return { action: action as (typeof doneActions)[number] }
  const why = read(returned, 'why')
  if (typeof why !== 'string') throw unexpected("{ action: 'park' } without why, a string")
  return { action, why }
}

function unexpected(what: string): RedriveError {
  const problem = `the handler returned ${what}; ${allowedResults}`
  return new RedriveError('INVALID_INPUT', problem)
}
