import { systemClock, type Clock } from '../clock/clock.ts'
import { toFailure } from '../letter/failure.ts'
import type { Failure } from '../letter/letter.ts'
import { replaysOf } from '../letter/lineage.ts'
import { read } from '../letter/reading.ts'
import { isFailedResult } from '../letter/result.ts'
import type { LoopStatus } from '../letter/loop-status.ts'
import { toTimestamp } from '../letter/time.ts'
import type { Mailbox, Message } from '../mailbox.ts'
import { bounded, maxVisibilitySeconds } from '../backends/bounds.ts'
import { judge } from '../policy/judge.ts'
import { AttemptHistory } from './attempt-history.ts'
import { deadMessage, type FailedAttempt } from './dead-message.ts'
import { DeadLetterRouter, MaxDeliveriesExceeded } from './dead-lettering.ts'
import { createEmit, type MessageFacts, type Stage, type Emit } from './events.ts'
import type { HeldMessage } from './held-message.ts'
import { LoopActivity } from './loop-activity.ts'
import { LoopBreaker } from './loop-breaker.ts'
import { nackDelay, defaultBackoff } from './nack-delay.ts'
import { reportDepth } from './queue-depth.ts'
import { Receiver } from './receiver.ts'
import type { RequestLoopOptions } from './request-loop-options.ts'
import type { RunOptions } from './runnable.ts'
import { isLost, settle, isStillOurs, type DeliveryContext } from './settling.ts'
import type { Facts, ProcessContext, Work } from './work.ts'

/** The state of a message in the loop. */
interface Delivery extends DeliveryContext {
  held: HeldMessage
  startedMs: number
  request: unknown
  requestId?: string
  history?: readonly FailedAttempt[]
}

/**
 * Receives requests, processes them, replies and acknowledges. There is no reply before the outcome
 * is final, and a message is removed from its mailbox only after it is done or its dead letter is
 * stored. After any error in between, the message is delivered again.
 */
export class RequestLoop {
  readonly receiver: Receiver
  readonly emit: Emit
  readonly #options: RequestLoopOptions
  readonly #clock: Clock
  readonly #mailbox: Mailbox
  readonly #work: Work
  readonly #router: DeadLetterRouter | undefined
  readonly #breaker: LoopBreaker | undefined
  readonly #history = new AttemptHistory()
  readonly #activity: LoopActivity
  readonly #depthEveryMs: number

  constructor(options: RequestLoopOptions, work: Work) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#mailbox = options.requests
    this.#work = work
    this.#activity = new LoopActivity(this.#clock)
    this.emit = this.#activity.count(createEmit(options))
    this.#depthEveryMs = bounded('depthEveryMs', options.depthEveryMs ?? 60_000, Infinity, 1)
    if (options.dlq !== undefined)
      this.#router = new DeadLetterRouter(options.dlq, options.requests, this.emit)
    const context = { clock: this.#clock, emit: this.emit }
    if (options.breaker !== false && !this.#refuses)
      this.#breaker = new LoopBreaker(options.breaker ?? {}, {
        ...context,
        mailbox: options.requests.name,
        maxProbesOfMessage: this.#router?.maxDeliveryCount ?? Infinity,
      })
    this.receiver = new Receiver({
      ...options,
      ...context,
      mailbox: options.requests,
      handleMessage: (held) => this.#handleMessage(held),
      ...(this.#breaker ? { admission: this.#breaker } : {}),
    })
  }

  get deadLetterMailbox(): Mailbox | undefined {
    return this.#router?.destination.mailbox
  }

  /** Whether a failure is answered at once, and the message removed. */
  get #refuses(): boolean {
    return !this.#router && this.#options.withoutPolicy === 'reply-and-ack'
  }

  /** Why the loop does no work at present, or only little. */
  problems(): string[] {
    return [...this.receiver.problems(), ...(this.#breaker?.problems() ?? [])]
  }

  status(): Omit<LoopStatus, 'name' | 'kind'> {
    const breaker = this.#breaker?.status()
    const deadLetters = this.#router?.destination.name
    return {
      ...this.receiver.status(),
      ...this.#activity.status(),
      ...(deadLetters === undefined ? {} : { deadLetters }),
      ...(breaker ? { breaker } : {}),
    }
  }

  async run(options?: RunOptions): Promise<void> {
    this.#breaker?.dropProbes()
    const ended = this.receiver.run(options)
    const stopReporting = this.#reportDepth()
    try {
      await ended
    } finally {
      stopReporting()
    }
  }

  /**
   * The depth of a mailbox is measured by its consumer. Letters have none, so the loop that stores
   * them measures them.
   */
  #reportDepth(): () => void {
    const destination = this.#router?.destination
    if (!destination?.depth) return () => {}
    return reportDepth({
      measure: async () => destination.depth!(this.#mailbox.name),
      name: destination.name,
      everyMs: this.#depthEveryMs,
      clock: this.#clock,
      emit: this.emit,
    })
  }

  /** The steps of a delivery: check deliveries, decode, process, reply, acknowledge. */
  async #handleMessage(held: HeldMessage): Promise<void> {
    const { message } = held
    this.#activity.addReceived()
    const delivery: Delivery = {
      held,
      message,
      mailbox: this.#mailbox,
      emit: this.emit,
      startedMs: this.#clock.mono(),
      request: undefined,
    }
    const explained = this.#history.countOf(message.id) + this.#history.uncountedOf(message.id)
    const unexplained = this.#router?.unexplained(message, explained) ?? 0
    if (this.#router?.overDelivered(unexplained)) {
      const error = new MaxDeliveriesExceeded(message.deliveries, unexplained)
      return this.#deadLetter(this.#router, delivery, 'receive', error, true)
    }
    // The breaker has opened while the message was received.
    if (this.#breaker && this.#breaker.capacity() < 1) return this.#release(delivery)
    this.#breaker?.step('started', message.id)
    await this.#processMessage(delivery)
    this.#breaker?.step('ended', message.id)
  }

  async #processMessage(delivery: Delivery): Promise<void> {
    const { held, message } = delivery
    let stage: Stage = 'decode'
    try {
      delivery.request = message.value()
      const requestId = this.#requestIdOf(delivery.request, message)
      if (requestId !== undefined) delivery.requestId = requestId
      stage = 'process'
      const output = await this.#work.process(delivery.request, this.#contextOf(delivery))
      if (isFailedResult(output)) throw output.error
      // Another consumer may have the message by now, and replies as well.
      if (held.ended === 'lost') return this.#reportLost(delivery)
      stage = 'reply'
      if (message.replyTo !== undefined)
        await message.reply(this.#work.answer(output, this.#facts(delivery)))
    } catch (error) {
      return this.#handleFailure(delivery, stage, error)
    }
    this.#breaker?.step('succeeded', message.id)
    if (!(await settle(delivery, 'acknowledging', () => message.acknowledge()))) return
    this.#history.forget(message.id)
    const durationMs = this.#clock.mono() - delivery.startedMs
    this.emit({ type: 'message-done', ...this.#eventFields(delivery), durationMs })
  }

  /**
   * A reply that failed after the work was done counts as a failure of the delivery: the work is
   * repeated, since a request without its reply is not done, and in the end the message is
   * dead-lettered with that error.
   */
  async #handleFailure(delivery: Delivery, during: Stage, error: unknown): Promise<void> {
    const { held, message, request } = delivery
    if (during === 'reply' && isLost(error)) return this.#reportLost(delivery)
    if (held.ended === 'stopped') return this.#release(delivery)
    if (this.#refuses) return this.#refuse(delivery, error)
    const router = this.#router
    if (during === 'decode')
      return router
        ? this.#deadLetter(router, delivery, during, error, true)
        : this.#retryLater(delivery, during, error)
    const failures = this.#failuresOf(message)
    const isDead = router?.isDead(message, request, error, failures) ?? false
    // A policy that decides before the number of deliveries does blames the message itself.
    const isOwnFault = isDead && failures + 1 < router!.maxDeliveryCount
    const deferMs = isOwnFault ? undefined : this.#deferMs(delivery, error)
    if (deferMs !== undefined) return this.#defer(delivery, during, error, deferMs)
    // Failed probes of this message count too. The last of them is this failure.
    const probes = this.#breaker?.failedProbesOf(message.id) ?? 0
    const isPoison = probes > 1 && router?.isDead(message, request, error, failures + probes - 1)
    return router && (isDead || isPoison)
      ? this.#deadLetter(router, delivery, during, error)
      : this.#retryLater(delivery, during, error)
  }

  /** How long the message waits if an outage caused its failure. Undefined: the failure counts. */
  #deferMs({ held, message }: Delivery, error: unknown): number | undefined {
    // Work that was aborted says nothing about its dependencies.
    if (!this.#breaker || held.ended !== undefined) return undefined
    const at = toTimestamp(this.#clock.now())
    const judged = judge(error, this.#mailbox.name, at)
    return this.#breaker.failed(message.id, judged, this.#failuresOf(message) > 0)
  }

  /** Failures before this delivery that count. */
  #failuresOf({ id, failures }: Message): number {
    return this.#mailbox.powers.remembers
      ? failures
      : Math.max(0, failures - this.#history.uncountedOf(id))
  }

  /** Returns the message without counting its failure. */
  async #defer(delivery: Delivery, during: Stage, error: unknown, deferMs: number): Promise<void> {
    const { message } = delivery
    const delaySeconds = Math.min(deferMs / 1000, maxVisibilitySeconds)
    const nack = (): Promise<void> => message.nack({ failed: false, delaySeconds })
    if (!(await settle(delivery, 'releasing', nack))) return
    this.#history.addUncounted(message.id)
    const fields = { during, error, delaySeconds }
    this.emit({ type: 'message-deferred', ...this.#eventFields(delivery), ...fields })
  }

  /**
   * Dead-letters a message in this order: check the lease, store, reply, acknowledge. If the
   * process dies in between, the message is delivered again, and its dead letter is recognised by
   * its key.
   */
  async #deadLetter(
    router: DeadLetterRouter,
    delivery: Delivery,
    during: Stage,
    error: unknown,
    hopeless = false,
  ): Promise<void> {
    const { message, mailbox, requestId } = delivery
    if (!(await isStillOurs(delivery, 'dead-lettering', this.#clock.now()))) return
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const history = this.#recordFailure(delivery, failure)
    const ending = { sourceMailbox: mailbox.name, failure, requestId, history, hopeless }
    const destination = router.destinationFor(error, message)
    try {
      await destination.keep(deadMessage(message, ending), error)
    } catch (problem) {
      const what = `dead-lettering a message of ${mailbox.name} to ${destination.name}`
      this.emit({ type: 'error', during: what, error: problem })
      return this.#retryLater(delivery, during, error)
    }
    this.emit({
      type: 'dead-lettered',
      ...this.#eventFields(delivery),
      errorType: failure.name,
      errorMessage: failure.message,
      destination: destination.name,
    })
    const fields = `Dead-lettered after ${message.deliveries} attempts: ${failure.message}`
    await this.#replyWithError(delivery, fields)
    if (await settle(delivery, 'acknowledging', () => message.acknowledge()))
      this.#history.forget(message.id)
  }

  /**
   * The failures of this message that this loop has seen. A delivery is recorded once, whatever
   * happens after it.
   */
  #recordFailure(delivery: Delivery, failure: Failure): readonly FailedAttempt[] {
    delivery.history ??= this.#history.add(delivery.message.id, failure)
    return delivery.history
  }

  async #retryLater(delivery: Delivery, during: Stage, error: unknown): Promise<void> {
    const { message } = delivery
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const { seconds, problem } = nackDelay({
      backoff: this.#options.backoff ?? defaultBackoff,
      failures: this.#failuresOf(message) + 1,
      failure,
      random: () => this.#clock.random(),
    })
    if (problem !== undefined)
      this.emit({ type: 'error', during: `backoff of ${this.#mailbox.name}`, error: problem })
    const nack = (): Promise<void> => message.nack({ delaySeconds: seconds })
    if (!(await settle(delivery, 'releasing', nack))) return
    this.#recordFailure(delivery, failure)
    const fields = { during, error, delaySeconds: seconds }
    this.emit({ type: 'message-failed', ...this.#eventFields(delivery), ...fields })
  }

  /**
   * Replies with the error and acknowledges. If the reply fails, the message stays; otherwise
   * nobody would learn of the error.
   */
  async #refuse(delivery: Delivery, error: unknown): Promise<void> {
    const { message } = delivery
    // Another consumer may have the message by now, and replies as well.
    if (!(await isStillOurs(delivery, 'refusing', this.#clock.now()))) return
    const failure = toFailure(error, toTimestamp(this.#clock.now()))
    const wanted = message.replyTo !== undefined
    if (wanted && !(await this.#replyWithError(delivery, failure.message)))
      return this.#retryLater(delivery, 'reply', error)
    if (await settle(delivery, 'acknowledging', () => message.acknowledge()))
      this.emit({ type: 'message-refused', ...this.#eventFields(delivery), error })
  }

  async #replyWithError(delivery: Delivery, error: string): Promise<boolean> {
    const { message } = delivery
    if (message.replyTo === undefined) return false
    const reply = async (): Promise<unknown> =>
      message.reply(this.#work.refuse(error, this.#facts(delivery)))
    return settle(delivery, 'replying to', reply)
  }

  async #release(delivery: Delivery): Promise<void> {
    const { message, mailbox } = delivery
    if (!(await settle(delivery, 'releasing', () => message.nack({ failed: false })))) return
    this.#history.addUncounted(message.id)
    this.emit({ type: 'message-released', mailbox: mailbox.name, messageId: message.id })
  }

  #reportLost({ mailbox, message }: Delivery): void {
    const during = 'processing'
    this.emit({ type: 'message-lost', mailbox: mailbox.name, messageId: message.id, during })
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
      this.emit({ type: 'error', during: `requestIdOf of ${this.#mailbox.name}`, error })
      return undefined
    }
  }

  #eventFields({ message, requestId }: Delivery): MessageFacts {
    const { id: messageId, deliveries } = message
    const eventFields = { mailbox: this.#mailbox.name, messageId, deliveries }
    return requestId === undefined ? eventFields : { ...eventFields, requestId }
  }
}
