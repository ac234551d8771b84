import type { Channel, ChannelModel, GetMessage } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Batcher, type Outcome } from '../../backends/batcher.ts'
import type { ReceiveRequest, Delivery } from '../../mailbox.ts'
import { Alarm } from '../../clock/alarm.ts'
import { deliveryOf } from '../../backends/rabbitmq/form.ts'
import { HeldMessages, type Held } from './held-messages.ts'
import { ignore, limitTime, RabbitmqConnection } from '../../backends/rabbitmq/connection.ts'
import {
  acknowledge,
  requeue,
  type ReceivedMessage,
  type Session,
} from '../../backends/rabbitmq/session.ts'
import { Supply } from '../../backends/rabbitmq/supply.ts'
import { toRedriveError } from '../../backends/rabbitmq/errors.ts'

export interface IntakeOptions {
  url: string
  title: string
  queue: string
  clock: Clock
  timeoutMs: number
  /** Creates the queue if it does not exist, or rejects. */
  declare: (channel: Channel) => Promise<void>
  /** Called when a hold has expired. Its receipt is stale by then. */
  onExpiry: (held: Held) => void
}

interface Waiter {
  ask: ReceiveRequest
  /** On the monotonic clock. */
  endMs: number
  resolve: (found: Delivery[]) => void
  reject: (error: unknown) => void
}

/**
 * Receives from one queue. Messages that nobody takes are released, so that no message stays hidden
 * for long without a consumer.
 */
export class Intake {
  readonly holding: HeldMessages
  readonly #options: IntakeOptions
  readonly #connection: RabbitmqConnection<Session>
  readonly #confirmations: Batcher<Session, boolean>
  readonly #ready: ReceivedMessage[] = []
  readonly #waiting = new Set<Waiter>()
  readonly #alarm: Alarm
  /** How many messages the waiters would take. */
  #requested = 0
  #isHandingOut = false

  constructor(options: IntakeOptions) {
    this.#options = options
    this.holding = new HeldMessages(options.clock, options.onExpiry)
    this.#alarm = new Alarm(options.clock, (nowMs) => this.#endWaits(nowMs))
    this.#confirmations = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, (all) =>
      this.#confirm(all),
    )
    this.#connection = new RabbitmqConnection<Session>({
      ...options,
      setup: (model) => this.#begin(model),
    })
  }

  get place(): string {
    return this.#connection.place
  }

  /** Messages that this process has, handed out or not. */
  get count(): number {
    return this.#ready.length + this.holding.size
  }

  open(): Promise<void> {
    return this.#connection.open()
  }

  session(): Promise<Session> {
    return this.#connection.get()
  }

  /** Releases messages that nobody has, and waits for those being settled. */
  async end(): Promise<void> {
    for (const waiter of this.#waiting) waiter.resolve([])
    await Promise.all([this.#connection.current?.supply.end(), this.#confirmations.idle()])
  }

  /** Messages that are handed out are requeued by the server when the channel ends. */
  async close(): Promise<void> {
    this.#alarm.off()
    this.holding.takeAll()
    await this.#connection.close()
  }

  async receive(ask: ReceiveRequest): Promise<Delivery[]> {
    const session =
      this.#connection.current ?? (await unlessAborted(ask.signal, this.#connection.get()))
    if (!session || ask.signal.aborted) return []
    if (session.isLost) throw this.#lostError()
    // Messages that are being handed out are for earlier waiters.
    if (this.#ready.length > 0 && !this.#isHandingOut) return this.#takeReady(session, ask)
    if (ask.waitMs > 0) return this.#wait(session, ask)
    return (await unlessAborted(ask.signal, this.#fetch(session, ask))) ?? []
  }

  /**
   * Deletes a message, and resolves when the server has received that. AMQP has no answer to it:
   * the server works in order, and answers a later request.
   */
  async settle(held: ReceivedMessage): Promise<boolean> {
    return acknowledge(held) && this.#confirmations.call(held.session)
  }

  /** Deletes all received messages that are not settled, and returns their number. */
  async settleAll(): Promise<number> {
    const all = [...this.#ready.splice(0), ...this.holding.takeAll()]
    const settled = all.filter(acknowledge)
    await Promise.all(settled.map(({ session }) => this.#confirmations.call(session)))
    return settled.length
  }

  async #begin(model: ChannelModel): Promise<Session> {
    const { clock, queue, timeoutMs, declare } = this.#options
    const channel = await model.createChannel()
    channel.on('error', ignore)
    const supply = new Supply({
      channel,
      queue,
      clock,
      timeoutMs,
      wanted: () => (session.isLost ? 0 : this.#wanted()),
      left: () => this.#left(),
      ready: () => this.#ready.length,
      arrive: (message, consumer) => this.#arrive({ message, session, consumer }),
      release: () => this.#releaseReady(session),
      fail: (why) =>
        why === 'gone' ? this.#connection.renew(session) : this.#connection.abandon(session),
    })
    const session: Session = { key: clock.id(), model, channel, supply, isLost: false }
    channel.on('close', () => this.#lose(session))
    await declare(channel)
    return session
  }

  /**
   * The server gives all messages of the session to other consumers, and nothing can be done about
   * them here.
   */
  #lose(session: Session): void {
    session.isLost = true
    this.#connection.renew(session)
    this.#takeOf(session)
    this.holding.lose(session)
    for (const waiter of this.#waiting) waiter.reject(this.#lostError())
  }

  #lostError(): RedriveError {
    return new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `rabbitmq ${this.place}: the connection was lost`,
    )
  }

  /**
   * Sends a harmless request to each session. Its answer means that everything before it is done.
   */
  async #confirm(sessions: Session[]): Promise<Outcome<boolean>[]> {
    const { clock, timeoutMs } = this.#options
    const answers = new Map<Session, Outcome<boolean>>()
    for (const session of new Set(sessions))
      try {
        await limitTime(clock, timeoutMs, session.channel.prefetch(1), 'the server did not answer')
        answers.set(session, { value: true })
      } catch (error) {
        answers.set(session, { error: toRedriveError(error, this.place) })
      }
    return sessions.map((session) => answers.get(session)!)
  }

  /** Fetches the messages that are available now. */
  async #fetch(
    session: Session,
    { max, visibilityMs, signal }: ReceiveRequest,
  ): Promise<Delivery[]> {
    const found: ReceivedMessage[] = []
    while (found.length < max && !signal.aborted) {
      const message = await this.#get(session)
      if (message === false) break
      found.push({ message, session })
      if (message.fields.messageCount === 0) break
    }
    if (session.isLost) throw this.#lostError()
    if (signal.aborted) {
      for (const arrived of found) requeue(arrived)
      return []
    }
    if (!this.#isHandingOut) found.push(...this.#ready.splice(0, max - found.length))
    return found.map((arrived) => this.#hold(arrived, visibilityMs))
  }

  async #get(session: Session): Promise<GetMessage | false> {
    const { clock, timeoutMs, queue } = this.#options
    try {
      const request = session.channel.get(queue)
      return await limitTime(clock, timeoutMs, request, 'the server did not answer')
    } catch (error) {
      // The server takes back messages that are in flight to us.
      this.#connection.abandon(session)
      throw toRedriveError(error, this.place)
    }
  }

  #wait(session: Session, ask: ReceiveRequest): Promise<Delivery[]> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#requested -= ask.max
        ask.signal.removeEventListener('abort', abort)
        this.#waiting.delete(waiter)
        if (this.#waiting.size === 0) session.supply.rest()
      }
      const waiter: Waiter = {
        ask,
        endMs: this.#options.clock.mono() + ask.waitMs,
        resolve: (found) => (leave(), resolve(found)),
        reject: (error) => (leave(), reject(error)),
      }
      const abort = (): void => {
        waiter.resolve([])
        if (this.#waiting.size === 0) void session.supply.end()
      }
      ask.signal.addEventListener('abort', abort, { once: true })
      this.#waiting.add(waiter)
      this.#requested += ask.max
      this.#alarm.by(waiter.endMs)
      session.supply.addWaiter()
    })
  }

  #endWaits(nowMs: number): number {
    let nextMs = Infinity
    for (const waiter of this.#waiting)
      if (waiter.endMs > nowMs) nextMs = Math.min(nextMs, waiter.endMs)
      else waiter.resolve([])
    return nextMs
  }

  #takeReady(session: Session, ask: ReceiveRequest): Delivery[] {
    session.supply.addWaiter()
    const taken = this.#take(ask)
    session.supply.onHandedOut()
    if (this.#waiting.size === 0) session.supply.rest()
    return taken
  }

  #take({ max, visibilityMs }: ReceiveRequest): Delivery[] {
    return this.#ready.splice(0, max).map((arrived) => this.#hold(arrived, visibilityMs))
  }

  #hold(arrived: ReceivedMessage, visibilityMs: number): Delivery {
    const { clock } = this.#options
    const { session, message } = arrived
    const delivery = deliveryOf(message, {
      receipt: `${session.key}:${message.fields.deliveryTag}`,
      nowMs: Math.floor(clock.now()),
      freshId: () => clock.id(),
    })
    this.holding.add(arrived, delivery, visibilityMs)
    return delivery
  }

  #arrive(arrived: ReceivedMessage): void {
    this.#ready.push(arrived)
    if (this.#isHandingOut || this.#waiting.size === 0) return
    const { supply } = arrived.session
    const [first] = this.#waiting
    if (supply.isHot && first && first.ask.max <= this.#ready.length) return this.#handOut(supply)
    this.#isHandingOut = true
    // Further messages that arrive by then are handed out too.
    void supply.collect().then(() => this.#handOut(supply))
  }

  #handOut(supply: Supply): void {
    this.#isHandingOut = false
    for (const waiter of this.#waiting) {
      if (this.#ready.length === 0) break
      waiter.resolve(this.#take(waiter.ask))
    }
    supply.onHandedOut()
  }

  #releaseReady(session: Session): void {
    for (const arrived of this.#takeOf(session)) requeue(arrived)
  }

  #takeOf(session: Session): ReceivedMessage[] {
    const all = this.#ready.splice(0)
    this.#ready.push(...all.filter((arrived) => arrived.session !== session))
    return all.filter((arrived) => arrived.session === session)
  }

  /** How many messages the waiters would take beyond those that have arrived. */
  #left(): number {
    let ready = this.#ready.length
    let left = 0
    for (const { ask } of this.#waiting)
      if (ready > 0) ready -= ask.max
      else left += ask.max
    return left
  }

  /** How many messages the waiters would take, minus those that have arrived. */
  #wanted(): number {
    return Math.max(this.#requested - this.#ready.length, 0)
  }
}

/** Resolves with the promise, or with undefined as soon as the signal aborts. */
function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined)
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
