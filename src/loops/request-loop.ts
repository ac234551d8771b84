import { systemClock, type Clock } from '../clock/clock.ts'
import { RedriveError } from '../errors.ts'
import { checkOneOf, keysOf } from '../check/keys.ts'
import { toFailure } from '../letter/failure.ts'
import type { Failure, RetryPolicy } from '../letter/letter.ts'
import { replaysOf } from '../letter/lineage.ts'
import { read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import { toTimestamp, type Timestamp } from '../letter/time.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { bounded } from '../backends/bounds.ts'
import { parsePolicy } from '../policy/backoff.ts'
import type { DLQPolicy } from '../policy/dlq-policy.ts'
import { AttemptHistory } from './attempt-history.ts'
import {
  checkOptions,
  describeValue,
  listeningKeys,
  optionalFunction,
  renamedReceiving,
  requireMailbox,
} from './check-options.ts'
import { deadMessage, type FailedAttempt } from './dead-message.ts'
import { DeadLetterOffice, type DeadLettering } from './dead-lettering.ts'
import { teller, type Listening, type MessageFacts, type Stage, type Tell } from './events.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { HeldMessage } from './held-message.ts'
import { nackDelay, usualBackoff } from './nack-delay.ts'
import { reportDepth } from './queue-depth.ts'
import { Receiver, receivingKeys, type Receiving } from './receiver.ts'
import type { RunOptions } from './runnable.ts'
import { isLost, settle, stillOurs, type Settling } from './settling.ts'

export interface RequestLoopOptions extends Receiving, Listening {
  requests: Mailbox
  /** When failed messages become dead letters, and where they are kept. Without it, they are tried again as `withoutPolicy` says. */
  dlq?: DeadLettering | DLQPolicy
  /** What to do with a failure where there is no `dlq`: try again after a while, or reply with the error and take it off. */
  withoutPolicy?: 'retry' | 'reply-and-ack'
  /** How long a message that failed stays hidden. A minute more after each failure, up to 15, unless said. */
  backoff?: RetryPolicy
  /** Finds the id of a request. Its `requestId` or `request_id` unless said. */
  requestIdOf?: (request: unknown, message: Message) => string | undefined
  /** How often the number of dead messages is reported where `dlq` keeps them as letters. Default: 60,000. */
  depthEveryMs?: number
  clock?: Clock
}

const requestLoopKeys = [
  ...receivingKeys,
  ...listeningKeys,
  ...keysOf<Omit<RequestLoopOptions, keyof Receiving | keyof Listening>>({
    requests: true,
    dlq: true,
    withoutPolicy: true,
    backoff: true,
    requestIdOf: true,
    depthEveryMs: true,
    clock: true,
  }),
]
const renamedOptions = { ...renamedReceiving, mailbox: 'requests', handler: 'process' }

/** Rejects wrong options of a loop. `own` are the options that only this kind of loop has. */
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
  const { withoutPolicy = 'retry', backoff } = options
  checkOneOf('withoutPolicy', withoutPolicy, ['retry', 'reply-and-ack'], { code: 'INVALID_CONFIG' })
  if (backoff !== undefined && (typeof backoff !== 'object' || !parsePolicy(backoff)))
    throw new RedriveError(
      'INVALID_CONFIG',
      `${thing} option backoff must be a retry policy, such as linear({ stepMs: 60_000 }); got ${describeValue(backoff)}`,
    )
}

/** One delivery, as whoever processes it sees it. */
export interface ProcessContext {
  message: Message
  requestId?: string
  /** 1 for the first delivery. */
  attempt: number
  /** Aborts when the lease is lost, and when the loop stops and this takes too long to end. */
  signal: AbortSignal
  /** Beat while there is progress: it extends the lease, and shows whoever supervises that the loop lives. */
  heartbeat: Heartbeat
  /** The same for every delivery of this message: pass it on, so that a repeat can be recognised. */
  idempotencyKey: string
}

/** What is known about a request when it is replied to. */
export interface Facts {
  /** Undefined when it could not be decoded. */
  request: unknown
  requestId?: string
  durationMs: number
  completedAt: Timestamp
}

/** What makes one kind of loop different from another. */
export interface Work {
  process(request: unknown, context: ProcessContext): unknown
  /** The reply when it went well. */
  answer(output: unknown, facts: Facts): unknown
  /** The reply when it failed for good. */
  refuse(error: string, facts: Facts): unknown
}

/** A message on its way through the loop. */
interface Delivery extends Settling {
  held: HeldMessage
  startedMs: number
  request: unknown
  requestId?: string
  history?: readonly FailedAttempt[]
}

/** It came too often without an end that anybody saw. */
class MaxDeliveriesExceeded extends Error {
  constructor(deliveries: number, unexplained: number) {
    super(
      `max deliveries exceeded: of ${deliveries - 1} deliveries, ${unexplained - 1} ended without a known failure, so the message may end its worker`,
    )
    this.name = 'MaxDeliveriesExceeded'
  }
}

/**
 * Receives requests, has them processed, replies, acknowledges. There is no reply before the outcome is final, and nothing is taken off
 * its mailbox before it is done or its dead letter is kept. Whatever goes wrong on the way, the message comes again.
 */
export class RequestLoop {
  readonly receiver: Receiver
  readonly tell: Tell
  readonly #options: RequestLoopOptions
  readonly #clock: Clock
  readonly #mailbox: Mailbox
  readonly #work: Work
  readonly #office: DeadLetterOffice | undefined
  readonly #history = new AttemptHistory()
  readonly #depthEveryMs: number

  constructor(options: RequestLoopOptions, work: Work) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#mailbox = options.requests
    this.#work = work
    this.tell = teller(options)
    this.#depthEveryMs = bounded('depthEveryMs', options.depthEveryMs ?? 60_000, Infinity, 1)
    if (options.dlq !== undefined)
      this.#office = new DeadLetterOffice(options.dlq, options.requests, this.tell)
    this.receiver = new Receiver({
      ...options,
      mailbox: options.requests,
      clock: this.#clock,
      tell: this.tell,
      attend: (held) => this.#attend(held),
    })
  }

  get deadLetterBox(): Mailbox | undefined {
    return this.#office?.destination.mailbox
  }

  async run(options?: RunOptions): Promise<void> {
    const ended = this.receiver.run(options)
    const stopReporting = this.#reportDepth()
    try {
      await ended
    } finally {
      stopReporting()
    }
  }

  /** A mailbox is measured by its consumer. Letters have none, so the loop that keeps them measures them. */
  #reportDepth(): () => void {
    const destination = this.#office?.destination
    if (!destination?.depth) return () => {}
    return reportDepth({
      measure: async () => destination.depth!(this.#mailbox.name),
      name: destination.name,
      everyMs: this.#depthEveryMs,
      clock: this.#clock,
      tell: this.tell,
    })
  }

  /** The life of a delivery: fit to run? decode, process, reply, acknowledge. */
  async #attend(held: HeldMessage): Promise<void> {
    const { message } = held
    const delivery: Delivery = {
      held,
      message,
      mailbox: this.#mailbox,
      tell: this.tell,
      startedMs: this.#clock.mono(),
      request: undefined,
    }
    const unexplained = this.#office?.unexplained(message, this.#history.countOf(message.id)) ?? 0
    if (this.#office?.overDelivered(unexplained))
      return this.#deadLetterUnrun(this.#office, delivery, unexplained)
    let stage: Stage = 'decode'
    try {
      delivery.request = message.value()
      const requestId = this.#requestIdOf(delivery.request, message)
      if (requestId !== undefined) delivery.requestId = requestId
      stage = 'process'
      const output = await this.#work.process(delivery.request, this.#contextOf(delivery))
      if (isFailedResult(output)) throw output.error
      // Somebody else may have it by now, and replies as well.
      if (held.ended === 'lost') return this.#lost(delivery)
      stage = 'reply'
      if (message.replyTo !== undefined)
        await message.reply(this.#work.answer(output, this.#facts(delivery)))
    } catch (error) {
      return this.#failed(delivery, stage, error)
    }
    if (!(await settle(delivery, 'acknowledging', () => message.acknowledge()))) return
    this.#history.forget(message.id)
    const durationMs = this.#clock.mono() - delivery.startedMs
    this.tell({ type: 'message-done', ...this.#about(delivery), durationMs })
  }

  /**
   * A reply that failed after the work was done counts as a failure of the delivery: the work is done again, since a request without its reply is
   * not done, and in the end the message is dead-lettered with that error.
   */
  async #failed(delivery: Delivery, during: Stage, error: unknown): Promise<void> {
    const { held, message, request } = delivery
    if (during === 'reply' && isLost(error)) return this.#lost(delivery)
    if (held.ended === 'stopped') return this.#release(delivery)
    if (!this.#office) {
      if (this.#options.withoutPolicy === 'reply-and-ack') return this.#refuse(delivery, error)
      return this.#tryAgain(delivery, during, error)
    }
    if (during === 'decode') return this.#deadLetter(this.#office, delivery, during, error, true)
    if (this.#office.isDead(message, request, error))
      return this.#deadLetter(this.#office, delivery, during, error)
    return this.#tryAgain(delivery, during, error)
  }

  #deadLetterUnrun(
    office: DeadLetterOffice,
    delivery: Delivery,
    unexplained: number,
  ): Promise<void> {
    const error = new MaxDeliveriesExceeded(delivery.message.deliveries, unexplained)
    return this.#deadLetter(office, delivery, 'receive', error, true)
  }

  /**
   * Dead-letters: make sure that it is still ours, keep it, reply, acknowledge, in this order. Whatever ends the process in between, the
   * message comes again and its dead letter is known by its key.
   */
  async #deadLetter(
    office: DeadLetterOffice,
    delivery: Delivery,
    during: Stage,
    error: unknown,
    hopeless = false,
  ): Promise<void> {
    const { message, mailbox, requestId } = delivery
    if (!(await stillOurs(delivery, 'dead-lettering', this.#clock.now()))) return
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const history = this.#recorded(delivery, failure)
    const ending = { sourceMailbox: mailbox.name, failure, requestId, history, hopeless }
    const destination = office.destinationFor(error, message)
    try {
      await destination.keep(deadMessage(message, ending), error)
    } catch (problem) {
      const what = `dead-lettering of a message of ${mailbox.name} to ${destination.name}`
      this.tell({ type: 'error', during: what, error: problem })
      return this.#tryAgain(delivery, during, error)
    }
    this.tell({
      type: 'dead-lettered',
      ...this.#about(delivery),
      errorType: failure.name,
      errorMessage: failure.message,
      destination: destination.name,
    })
    const told = `Dead-lettered after ${message.deliveries} attempts: ${failure.message}`
    await this.#replyFailed(delivery, told)
    if (await settle(delivery, 'acknowledging', () => message.acknowledge()))
      this.#history.forget(message.id)
  }

  /** The failures of this message that were seen here. A delivery stands among them once, whatever is tried after it. */
  #recorded(delivery: Delivery, failure: Failure): readonly FailedAttempt[] {
    delivery.history ??= this.#history.add(delivery.message.id, failure)
    return delivery.history
  }

  async #tryAgain(delivery: Delivery, during: Stage, error: unknown): Promise<void> {
    const { message } = delivery
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const { seconds, problem } = nackDelay({
      backoff: this.#options.backoff ?? usualBackoff,
      failures: message.failures + 1,
      failure,
      random: () => this.#clock.random(),
    })
    if (problem !== undefined)
      this.tell({ type: 'error', during: `backoff of ${this.#mailbox.name}`, error: problem })
    const nack = (): Promise<void> => message.nack({ delaySeconds: seconds })
    if (!(await settle(delivery, 'giving back', nack))) return
    this.#recorded(delivery, failure)
    const told = { during, error, delaySeconds: seconds }
    this.tell({ type: 'message-failed', ...this.#about(delivery), ...told })
  }

  /** Replies with the error and takes it off. When the reply fails the message stays, or nobody would ever know. */
  async #refuse(delivery: Delivery, error: unknown): Promise<void> {
    const { message } = delivery
    // Somebody else may have it by now, and replies as well.
    if (!(await stillOurs(delivery, 'refusing', this.#clock.now()))) return
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const wanted = message.replyTo !== undefined
    if (wanted && !(await this.#replyFailed(delivery, failure.message)))
      return this.#tryAgain(delivery, 'reply', error)
    if (await settle(delivery, 'acknowledging', () => message.acknowledge()))
      this.tell({ type: 'message-refused', ...this.#about(delivery), error })
  }

  async #replyFailed(delivery: Delivery, error: string): Promise<boolean> {
    const { message } = delivery
    if (message.replyTo === undefined) return false
    const reply = async (): Promise<unknown> =>
      message.reply(this.#work.refuse(error, this.#facts(delivery)))
    return settle(delivery, 'replying', reply)
  }

  async #release(delivery: Delivery): Promise<void> {
    const { message, mailbox } = delivery
    if (await settle(delivery, 'giving back', () => message.nack({ failed: false })))
      this.tell({ type: 'message-released', mailbox: mailbox.name, messageId: message.id })
  }

  #lost({ mailbox, message }: Delivery): void {
    const during = 'processing'
    this.tell({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
  }

  #contextOf({ held, message, requestId }: Delivery): ProcessContext {
    return {
      message,
      attempt: message.deliveries,
      signal: held.signal,
      heartbeat: held.heartbeat,
      idempotencyKey: `${this.#mailbox.name}:${message.id}:${replaysOf(message.headers)}`,
      ...(requestId === undefined ? {} : { requestId }),
    }
  }

  #facts({ request, requestId, startedMs }: Delivery): Facts {
    return {
      request,
      ...(requestId === undefined ? {} : { requestId }),
      durationMs: this.#clock.mono() - startedMs,
      completedAt: toTimestamp(this.#clock.now()),
    }
  }

  #requestIdOf(request: unknown, message: Message): string | undefined {
    const { requestIdOf } = this.#options
    try {
      const id = requestIdOf
        ? requestIdOf(request, message)
        : (read(request, 'requestId') ?? read(request, 'request_id'))
      return typeof id === 'string' ? id.slice(0, 200) : undefined
    } catch (error) {
      this.tell({ type: 'error', during: `requestIdOf of ${this.#mailbox.name}`, error })
      return undefined
    }
  }

  #about({ message, requestId }: Delivery): MessageFacts {
    const { id: messageId, deliveries } = message
    const about = { mailbox: this.#mailbox.name, messageId, deliveries }
    return requestId === undefined ? about : { ...about, requestId }
  }
}
