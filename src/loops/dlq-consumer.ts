import { doneActions, type DeadLetterHandler, type Handled } from './handlers/handler.ts'
import { thrownOf } from '../capture/mailbox.ts'
import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkOneOf, keysOf } from '../check/keys.ts'
import { toFailure } from '../letter/failure.ts'
import { read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Mailbox } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds, whole } from '../backends/bounds.ts'
import {
  checkOptions,
  describeValue,
  listeningKeys,
  renamedReceiving,
  requireFunction,
  requireMailbox,
} from './check-options.ts'
import { refuseCircle } from './dead-lettering.ts'
import { factsOf, readDeadMessage, type DeadMessage } from './dead-message.ts'
import { destinationOf, type Destination } from './destination.ts'
import { teller, type DeadFacts, type Listening, type LoopEvent, type Tell } from './events.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { HeldMessage } from './held-message.ts'
import { alertHandler } from './handlers/alert.ts'
import { dedupedReplay } from './handlers/deduped-replay.ts'
import { replay, replayHandler } from './handlers/replay.ts'
import { selectiveReplay } from './handlers/selective-replay.ts'
import { measureMailbox, reportDepth } from './queue-depth.ts'
import { Receiver, receivingKeys, type Receiving } from './receiver.ts'
import type { Flow, Runnable, RunOptions, ShutdownOptions } from './runnable.ts'
import { settle, stillOurs, type Settling } from './settling.ts'

export interface DLQConsumerOptions extends Receiving, Listening {
  /** For people. The name of the mailbox unless said. */
  name?: string
  mailbox: Mailbox
  handler: DeadLetterHandler
  /** How long a message stays hidden after its handler failed. An hour unless said. */
  backoffSeconds?: number
  /** How often the handler may fail before the message is parked. 5 unless said. */
  maxAttempts?: number
  /**
   * Where parked messages are kept. Without it they stay where they are, hidden for as long as the broker can, and are not run again, but for those
   * that the handler itself wants parked: it is asked anew each time.
   */
  parked?: Mailbox | Destination
  /** How often the depth of the queue, and the age of its oldest message, are reported. Default: 60,000. */
  depthEveryMs?: number
  clock?: Clock
}

const consumerKeys = [
  ...receivingKeys,
  ...listeningKeys,
  ...keysOf<Omit<DLQConsumerOptions, keyof Receiving | keyof Listening>>({
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

interface Case extends Settling {
  held: HeldMessage
  dead: DeadMessage
}

/**
 * Takes dead messages one by one to a handler. What its handler cannot deal with is parked in the end: it is never discarded and never
 * dead-lettered again.
 */
export class DLQConsumer implements Runnable {
  readonly name: string
  readonly flow: Flow
  readonly #options: DLQConsumerOptions
  readonly #clock: Clock
  readonly #tell: Tell
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
    this.#tell = teller(options)
    this.#maxAttempts = whole('maxAttempts', maxAttempts, 1000)
    this.#backoffSeconds = bounded('backoffSeconds', backoffSeconds, maxVisibilitySeconds)
    this.#depthEveryMs = bounded('depthEveryMs', options.depthEveryMs ?? 60_000, Infinity, 1)
    if (options.parked !== undefined)
      this.#parked = destinationOf(options.parked, 'DLQConsumer', 'parked')
    if (this.#parked) refuseCircle(mailbox, this.#parked)
    this.flow = { from: mailbox, to: this.#parked?.mailbox ? [this.#parked.mailbox] : [] }
    this.#receiver = new Receiver({
      ...options,
      clock,
      tell: this.#tell,
      attend: (held) => this.#attend(held),
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

  async run(options?: RunOptions): Promise<void> {
    const ended = this.#receiver.run(options)
    const { mailbox } = this.#options
    const stopReporting = reportDepth({
      measure: () => measureMailbox(mailbox),
      name: mailbox.name,
      everyMs: this.#depthEveryMs,
      clock: this.#clock,
      tell: this.#tell,
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

  async #attend(held: HeldMessage): Promise<void> {
    const { message } = held
    const { mailbox } = this.#options
    const dead = readDeadMessage(message, mailbox.name)
    const one: Case = { held, message, mailbox, tell: this.#tell, dead }
    if (this.#isHopeless(one))
      await this.#park(one, `delivered ${message.deliveries} times, failed ${message.failures}`)
    else await this.#handle(one)
  }

  /** A message parked in place comes back after its delay. Each delivery that ended without a failure may have ended its worker. */
  #isHopeless({ message }: Case): boolean {
    const { failures, deliveries } = message
    return failures >= this.#maxAttempts || deliveries - failures > this.#maxAttempts
  }

  async #handle(one: Case): Promise<void> {
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
      return this.#failed(one, error)
    }
    if (handled.action === 'park') return this.#park(one, handled.why)
    // From here on the handler has done its work: what fails below is no failure of it.
    const durationMs = this.#clock.mono() - startedMs
    const { action } = handled
    const { lastErrorType: errorType } = dead
    this.#tell({ type: 'dead-letter-handled', ...this.#about(one), action, errorType, durationMs })
    await settle(one, 'acknowledging', () => message.acknowledge())
  }

  async #failed(one: Case, error: unknown): Promise<void> {
    const { held, message } = one
    if (held.ended === 'stopped') {
      await settle(one, 'giving back', () => message.nack({ failed: false }))
      return
    }
    const attempts = message.failures + 1
    if (attempts >= this.#maxAttempts)
      return this.#park(one, `its handler failed ${attempts} times`, { error })
    const delaySeconds = this.#backoffSeconds
    if (await settle(one, 'giving back', () => message.nack({ delaySeconds })))
      this.#tell({ type: 'dead-letter-failed', ...this.#about(one), error, delaySeconds })
  }

  /** `failed` is what the handler threw, if it threw: that may be undefined too. */
  async #park(one: Case, why: string, failed?: { error: unknown }): Promise<void> {
    const { message, dead } = one
    const parked = this.#parked
    const told: LoopEvent = { type: 'dead-letter-parked', ...this.#about(one), why }
    if (!parked) {
      const hide = { delaySeconds: maxVisibilitySeconds, failed: failed !== undefined }
      if (await settle(one, 'parking', () => message.nack(hide))) this.#tell(told)
      return
    }
    if (!(await stillOurs(one, 'parking', this.#clock.now()))) return
    try {
      await parked.keep(this.#noted(dead, why, failed), thrownOf(dead.failure))
    } catch (problem) {
      const during = `parking of a message of ${one.mailbox.name} to ${parked.name}`
      this.#tell({ type: 'error', during, error: problem })
      const delaySeconds = this.#backoffSeconds
      await settle(one, 'giving back', () => message.nack({ delaySeconds }))
      return
    }
    this.#tell({ ...told, destination: parked.name })
    await settle(one, 'acknowledging', () => message.acknowledge())
  }

  /** The last error stays that of the message; what the handler threw is in the history. */
  #noted(dead: DeadMessage, why: string, failed: { error: unknown } | undefined): DeadMessage {
    if (!failed) return { ...dead, note: why }
    const { name, message, at } = toFailure(failed.error, toTimestamp(this.#clock.now()))
    const attempt = { at, error: message.slice(0, 500), errorType: name }
    return { ...dead, note: `${why}: ${attempt.error}`, history: [...dead.history, attempt] }
  }

  #about({ mailbox, message, dead }: Case): DeadFacts {
    return factsOf(dead, mailbox.name, message.deliveries, this.#clock.now())
  }
}

/** Functions of ours that are easily given in place of the handler that they make. */
const notHandlers = new Map<unknown, string>([
  [alertHandler, 'alertHandler makes a handler: give handler: alertHandler({ log })'],
  [replayHandler, 'replayHandler makes a handler: give handler: replayHandler({ source })'],
  [dedupedReplay, 'dedupedReplay makes a handler: give handler: dedupedReplay({ source, seen })'],
  [replay, 'replay is not a handler: give handler: replayHandler({ source })'],
  [selectiveReplay, 'selectiveReplay goes through a queue by itself: call it without a consumer'],
])

function checkHandler(handler: unknown): void {
  requireFunction('DLQConsumer', 'handler', handler, 'handler: (dead) => …')
  const problem = notHandlers.get(handler)
  if (problem !== undefined)
    throw new RedriveError('INVALID_CONFIG', `DLQConsumer option handler: ${problem}`)
}

const allowedResults = `a handler returns nothing, { action: ${doneActions.map((action) => `'${action}'`).join(' | ')} } or { action: 'park', why }`

/**
 * What a handler returned. Throws for everything that is not a result: acknowledging a message because of a return value that nobody
 * understands would lose it.
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
