import type { Channel, ConsumeMessage } from 'amqplib'
import { nextTurn, sleep, type Clock } from '../../clock/clock.ts'
import { Alarm } from '../../clock/alarm.ts'
import { within } from './connection.ts'

/** What makes the server send messages by itself, as long as there is credit. */
export interface Consumer {
  tag: string
  prefetch: number
  /** Messages that came by it and are not settled. */
  used: number
}

export interface SupplyOptions {
  channel: Channel
  queue: string
  clock: Clock
  timeoutMs: number
  /** How many messages those who wait would take. 0: nobody waits. */
  wanted: () => number
  /** How many those would take who get nothing of what has arrived. */
  left: () => number
  /** How many have arrived and were not handed out. */
  ready: () => number
  arrive: (message: ConsumeMessage, consumer: Consumer) => void
  /** Nobody came for what has arrived. */
  giveBack: () => void
  /** The queue is gone, or the server does not answer. */
  fail: (why: 'gone' | 'silent') => void
}

/** Who asks again so soon after a message, and so often in a row, will come again. A consumer then stays for as long when nobody waits. */
const soonMs = 200
const hotStreak = 3
/** When nothing has come for so long, that was all. */
const quietMs = 3
/** Credit for one consumer at the most. */
const maxPrefetch = 1000

/**
 * Has the server send as much as is wanted. There is a consumer while somebody waits, with credit for what they would take. It ends when messages
 * have come for all who wait, as many as are wanted or all there are, and is over before they are handed out: nothing arrives for nobody, which would have to be given back,
 * and the server would count that. For those who go round and round that is too slow. While they do, the consumer stays, and they find the
 * next message here already.
 */
export class Supply {
  readonly #options: SupplyOptions
  readonly #consumers = new Set<Consumer>()
  #isTending = false
  #tending: Promise<void> = Promise.resolve()
  #isCollecting = false
  #isOver = false
  readonly #lingering: Alarm
  /** Since when nobody waits. */
  #restingMs = Infinity
  #handedOutMs = -Infinity
  #arrivals = 0
  #streak = 0

  constructor(options: SupplyOptions) {
    this.#options = options
    this.#lingering = new Alarm(options.clock, (nowMs) => this.#linger(nowMs))
  }

  /** Somebody has come. */
  ask(): void {
    const isSoon = this.#options.clock.mono() - this.#handedOutMs <= soonMs
    this.#streak = isSoon ? this.#streak + 1 : 0
    this.#restingMs = Infinity
    this.#isOver = false
    this.#tend()
  }

  /** Resolves when what has come can be handed out: all there was, unless there is no time for that. */
  async collect(): Promise<void> {
    if (this.isHot) return nextTurn()
    for (let before = -1; before !== this.#arrivals && this.#credit > 0;) {
      before = this.#arrivals
      await sleep(this.#options.clock, quietMs)
    }
    if (this.#options.left() > 0 || this.#out > 0) return
    this.#isCollecting = true
    this.#tend()
    await this.#tending
  }

  handedOut(): void {
    this.#handedOutMs = this.#options.clock.mono()
    this.#isCollecting = false
    this.#tend()
  }

  /** Nobody waits any more. */
  rest(): void {
    if (!this.isHot && this.#out === 0) return void this.end()
    this.#restingMs = this.#options.clock.mono()
    this.#lingering.by(this.#restingMs + soonMs)
  }

  /** Ends the consumer now, and has what is left over given back. */
  end(): Promise<void> {
    this.#lingering.off()
    this.#isOver = true
    this.#tend()
    return this.#tending
  }

  #linger(nowMs: number): number {
    if (this.#restingMs === Infinity) return Infinity
    if (this.#restingMs + soonMs > nowMs) return this.#restingMs + soonMs
    void this.end()
    return Infinity
  }

  /** Fits the consumer to what is wanted, one step after the other. */
  #tend(): void {
    if (this.#isTending) return
    this.#isTending = true
    this.#tending = this.#steps()
  }

  async #steps(): Promise<void> {
    try {
      for (;;)
        if (this.#isUnfit()) await this.#cancel()
        else if (this.#isShort()) await this.#consume()
        else break
      if (this.#isOver) this.#options.giveBack()
    } catch {
      this.#options.fail('silent')
    } finally {
      // At once, so that nobody who comes now is overlooked.
      this.#isTending = false
    }
  }

  /** Those who wait go round and round. */
  get isHot(): boolean {
    return this.#streak >= hotStreak
  }

  /** Messages of these consumers that somebody has. To settle one gives new credit, so that more may be on its way than is known here. */
  get #out(): number {
    let used = 0
    for (const consumer of this.#consumers) used += consumer.used
    return used - this.#options.ready()
  }

  /** How many messages the server may still send. */
  get #credit(): number {
    let credit = 0
    for (const { prefetch, used } of this.#consumers) credit += prefetch - used
    return credit
  }

  /** Nothing more is to come, or far more would come than is wanted. */
  #isUnfit(): boolean {
    if (this.#consumers.size === 0) return false
    const wanted = this.#options.wanted()
    if (this.#isCollecting || wanted === 0) return this.#isCollecting || this.#isOver
    return this.#credit > 2 * wanted && !this.isHot && this.#out === 0
  }

  /** Half of what is wanted is enough to go on with. */
  #isShort(): boolean {
    const wanted = this.#options.wanted()
    return !this.#isCollecting && wanted > 0 && this.#credit < Math.min(wanted, maxPrefetch) / 2
  }

  /**
   * The credit of a consumer never changes, so one more is added to those that are there. To end those would not do: what the server has on its way to one
   * that ends it takes back, and counts that as a delivery.
   */
  async #consume(): Promise<void> {
    const { channel, clock, queue, wanted, arrive, fail } = this.#options
    const lacking = wanted() - this.#credit
    const consumer: Consumer = {
      tag: clock.id(),
      prefetch: Math.min(lacking, maxPrefetch),
      used: 0,
    }
    // Both in one go: the credit is that of the next consumer.
    const credit = channel.prefetch(consumer.prefetch)
    const consuming = channel.consume(
      queue,
      (message) => {
        if (message === null) return fail('gone')
        consumer.used += 1
        this.#arrivals += 1
        arrive(message, consumer)
      },
      { consumerTag: consumer.tag },
    )
    this.#consumers.add(consumer)
    await this.#answered(Promise.all([credit, consuming]))
  }

  async #cancel(): Promise<void> {
    const ending = [...this.#consumers].map(({ tag }) => this.#options.channel.cancel(tag))
    this.#consumers.clear()
    await this.#answered(Promise.all(ending))
  }

  #answered<T>(asked: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options
    return within(clock, timeoutMs, asked, 'the server did not answer')
  }
}
