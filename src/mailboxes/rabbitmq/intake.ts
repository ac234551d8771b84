import type { Channel, ChannelModel, GetMessage } from 'amqplib'
import type { Clock } from '../../clock/clock.ts'
import { RedriveError } from '../../errors.ts'
import { Batcher, type Outcome } from '../../backends/batcher.ts'
import type { Ask, Delivery } from '../../mailbox.ts'
import { Alarm } from '../../clock/alarm.ts'
import { deliveryOf } from '../../backends/rabbitmq/form.ts'
import { Holding, type Held } from './holding.ts'
import { ignore, linkTo, within, type Link } from '../../backends/rabbitmq/connection.ts'
import {
  acknowledge,
  requeue,
  type Arrived,
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
  /** Makes the queue if it is not there, or rejects. */
  declare: (channel: Channel) => Promise<void>
  /** Hears of what was held for too long. Its receipt is stale by then. */
  onLapse: (held: Held) => void
}

interface Waiter {
  ask: Ask
  /** On the monotonic clock. */
  endMs: number
  resolve: (found: Delivery[]) => void
  reject: (error: unknown) => void
}

/** Receives from one queue. What has come for nobody goes back, so nothing is hidden without somebody having it, but for a moment. */
export class Intake {
  readonly holding: Holding
  readonly #options: IntakeOptions
  readonly #link: Link<Session>
  readonly #heard: Batcher<Session, boolean>
  readonly #ready: Arrived[] = []
  readonly #waiting = new Set<Waiter>()
  readonly #alarm: Alarm
  /** What those who wait would take. */
  #asked = 0
  #isHandingOut = false

  constructor(options: IntakeOptions) {
    this.#options = options
    this.holding = new Holding(options.clock, options.onLapse)
    this.#alarm = new Alarm(options.clock, (nowMs) => this.#giveUp(nowMs))
    this.#heard = new Batcher({ maxInFlight: 1, maxBatchCost: Infinity }, (all) => this.#hear(all))
    this.#link = linkTo<Session>({ ...options, setup: (model) => this.#begin(model) })
  }

  get place(): string {
    return this.#link.place
  }

  /** Messages that this process has, handed out or not. */
  get count(): number {
    return this.#ready.length + this.holding.size
  }

  open(): Promise<void> {
    return this.#link.open()
  }

  session(): Promise<Session> {
    return this.#link.get()
  }

  /** Gives back what nobody has, and waits for what is being settled. */
  async end(): Promise<void> {
    for (const waiter of this.#waiting) waiter.resolve([])
    await Promise.all([this.#link.current?.supply.end(), this.#heard.idle()])
  }

  /** What is held goes back by itself when the channel ends. */
  async close(): Promise<void> {
    this.#alarm.off()
    this.holding.takeAll()
    await this.#link.close()
  }

  async receive(ask: Ask): Promise<Delivery[]> {
    const session = this.#link.current ?? (await unlessAborted(ask.signal, this.#link.get()))
    if (!session || ask.signal.aborted) return []
    if (session.isLost) throw this.#lost()
    // What is being handed out is for those who came before.
    if (this.#ready.length > 0 && !this.#isHandingOut) return this.#takeReady(session, ask)
    if (ask.waitMs > 0) return this.#wait(session, ask)
    return (await unlessAborted(ask.signal, this.#fetch(session, ask))) ?? []
  }

  /**
   * Deletes a message, and resolves when the server has heard so. AMQP has no answer to that: the server does one thing after the other, and
   * answers something asked after it.
   */
  async settle(held: Arrived): Promise<boolean> {
    return acknowledge(held) && this.#heard.call(held.session)
  }

  /** Deletes everything that has come and is not settled, and says how many. */
  async settleAll(): Promise<number> {
    const all = [...this.#ready.splice(0), ...this.holding.takeAll()]
    const settled = all.filter(acknowledge)
    await Promise.all(settled.map(({ session }) => this.#heard.call(session)))
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
      giveBack: () => this.#giveBack(session),
      fail: (why) => (why === 'gone' ? this.#link.renew(session) : this.#link.cut(session)),
    })
    const session: Session = { key: clock.id(), model, channel, supply, isLost: false }
    channel.on('close', () => this.#lose(session))
    await declare(channel)
    return session
  }

  /** The server gives all of it to somebody else, and nobody here can do anything about it any more. */
  #lose(session: Session): void {
    session.isLost = true
    this.#link.renew(session)
    this.#takeOf(session)
    this.holding.lose(session)
    for (const waiter of this.#waiting) waiter.reject(this.#lost())
  }

  #lost(): RedriveError {
    return new RedriveError(
      'MAILBOX_UNAVAILABLE',
      `rabbitmq ${this.place}: the connection was lost`,
    )
  }

  /** Asks something harmless of each session. When that is answered, all before it is done. */
  async #hear(sessions: Session[]): Promise<Outcome<boolean>[]> {
    const { clock, timeoutMs } = this.#options
    const answers = new Map<Session, Outcome<boolean>>()
    for (const session of new Set(sessions))
      try {
        await within(clock, timeoutMs, session.channel.prefetch(1), 'the server did not answer')
        answers.set(session, { value: true })
      } catch (error) {
        answers.set(session, { error: toRedriveError(error, this.place) })
      }
    return sessions.map((session) => answers.get(session)!)
  }

  /** Asks for what is there at this moment. */
  async #fetch(session: Session, { max, visibilityMs, signal }: Ask): Promise<Delivery[]> {
    const found: Arrived[] = []
    while (found.length < max && !signal.aborted) {
      const message = await this.#get(session)
      if (message === false) break
      found.push({ message, session })
      if (message.fields.messageCount === 0) break
    }
    if (session.isLost) throw this.#lost()
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
      const asked = session.channel.get(queue)
      return await within(clock, timeoutMs, asked, 'the server did not answer')
    } catch (error) {
      // Whatever it had on its way to us, it has back.
      this.#link.cut(session)
      throw toRedriveError(error, this.place)
    }
  }

  #wait(session: Session, ask: Ask): Promise<Delivery[]> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#asked -= ask.max
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
      this.#asked += ask.max
      this.#alarm.by(waiter.endMs)
      session.supply.ask()
    })
  }

  #giveUp(nowMs: number): number {
    let nextMs = Infinity
    for (const waiter of this.#waiting)
      if (waiter.endMs > nowMs) nextMs = Math.min(nextMs, waiter.endMs)
      else waiter.resolve([])
    return nextMs
  }

  #takeReady(session: Session, ask: Ask): Delivery[] {
    session.supply.ask()
    const taken = this.#take(ask)
    session.supply.handedOut()
    if (this.#waiting.size === 0) session.supply.rest()
    return taken
  }

  #take({ max, visibilityMs }: Ask): Delivery[] {
    return this.#ready.splice(0, max).map((arrived) => this.#hold(arrived, visibilityMs))
  }

  #hold(arrived: Arrived, visibilityMs: number): Delivery {
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

  #arrive(arrived: Arrived): void {
    this.#ready.push(arrived)
    if (this.#isHandingOut || this.#waiting.size === 0) return
    const { supply } = arrived.session
    const [first] = this.#waiting
    if (supply.isHot && first && first.ask.max <= this.#ready.length) return this.#handOut(supply)
    this.#isHandingOut = true
    // What else has come by then goes along.
    void supply.collect().then(() => this.#handOut(supply))
  }

  #handOut(supply: Supply): void {
    this.#isHandingOut = false
    for (const waiter of this.#waiting) {
      if (this.#ready.length === 0) break
      waiter.resolve(this.#take(waiter.ask))
    }
    supply.handedOut()
  }

  #giveBack(session: Session): void {
    for (const arrived of this.#takeOf(session)) requeue(arrived)
  }

  #takeOf(session: Session): Arrived[] {
    const all = this.#ready.splice(0)
    this.#ready.push(...all.filter((arrived) => arrived.session !== session))
    return all.filter((arrived) => arrived.session === session)
  }

  /** What those would take for whom nothing is there. */
  #left(): number {
    let ready = this.#ready.length
    let left = 0
    for (const { ask } of this.#waiting)
      if (ready > 0) ready -= ask.max
      else left += ask.max
    return left
  }

  /** What those who wait would take, less what is there for them already. */
  #wanted(): number {
    return Math.max(this.#asked - this.#ready.length, 0)
  }
}

/** What the promise gives, or undefined as soon as the signal aborts. */
function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined)
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
