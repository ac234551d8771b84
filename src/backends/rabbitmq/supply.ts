import type { Channel, ConsumeMessage } from 'amqplib'
import { nextTurn, sleep, type Clock } from '../../clock/clock.ts'
import { Alarm } from '../../clock/alarm.ts'
import { limitTime } from './connection.ts'

/** A subscription by which the server pushes messages, as long as there is credit. */
export interface Consumer {
  tag: string
  prefetch: number
  /** Messages of this consumer that are not settled. */
  used: number
}

export interface SupplyOptions {
  channel: Channel
  queue: string
  clock: Clock
  timeoutMs: number
  /** How many messages the waiters would take. 0: nobody waits. */
  wanted: () => number
  /** How many messages the waiters would take beyond those that have arrived. */
  left: () => number
  /** How many messages have arrived and are not handed out. */
  ready: () => number
  arrive: (message: ConsumeMessage, consumer: Consumer) => void
  /** Called when messages have arrived that nobody takes. */
  release: () => void
  /** Called when the queue was deleted, or the server does not answer. */
  fail: (why: 'gone' | 'silent') => void
}

/**
 * A waiter that returns this soon after a message, this often in a row, is expected to return
 * again. The consumer then stays for this long when nobody waits.
 */
const soonMs = 200
const hotStreak = 3
/** If nothing has arrived for this long, there are no more messages. */
const quietMs = 3
/** Maximum credit of one consumer. */
const maxPrefetch = 1000

/**
 * Requests as many messages as are wanted. There is a consumer while somebody waits, with credit
 * for what the waiters would take. It ends when messages have arrived for all waiters, or all there
 * are, and before they are handed out: no message arrives without a waiter, which would have to be
 * requeued, and the server counts that as a delivery. For callers in a tight loop that is too slow.
 * For them the consumer stays, and the next message is already here.
 */
export class Supply {
  readonly #options: SupplyOptions
  readonly #consumers = new Set<Consumer>()
  #isAdapting = false
  #adapting: Promise<void> = Promise.resolve()
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

  /** Called for each new waiter. */
  addWaiter(): void {
    const isSoon = this.#options.clock.mono() - this.#handedOutMs <= soonMs
    this.#streak = isSoon ? this.#streak + 1 : 0
    this.#restingMs = Infinity
    this.#isOver = false
    this.#adapt()
  }

  /**
   * Resolves when the arrived messages can be handed out: all there were, or without waiting in a
   * tight loop.
   */
  async collect(): Promise<void> {
    if (this.isHot) return nextTurn()
    for (let before = -1; before !== this.#arrivals && this.#credit > 0;) {
      before = this.#arrivals
      await sleep(this.#options.clock, quietMs)
    }
    if (this.#options.left() > 0 || this.#out > 0) return
    this.#isCollecting = true
    this.#adapt()
    await this.#adapting
  }

  onHandedOut(): void {
    this.#handedOutMs = this.#options.clock.mono()
    this.#isCollecting = false
    this.#adapt()
  }

  /** Called when nobody waits any more. */
  rest(): void {
    if (!this.isHot && this.#out === 0) return void this.end()
    this.#restingMs = this.#options.clock.mono()
    this.#lingering.by(this.#restingMs + soonMs)
  }

  /** Ends the consumer now, and releases unclaimed messages. */
  end(): Promise<void> {
    this.#lingering.off()
    this.#isOver = true
    this.#adapt()
    return this.#adapting
  }

  #linger(nowMs: number): number {
    if (this.#restingMs === Infinity) return Infinity
    if (this.#restingMs + soonMs > nowMs) return this.#restingMs + soonMs
    void this.end()
    return Infinity
  }

  /** Adapts the consumers to what is wanted, one step after the other. */
  #adapt(): void {
    if (this.#isAdapting) return
    this.#isAdapting = true
    this.#adapting = this.#adaptSteps()
  }

  async #adaptSteps(): Promise<void> {
    try {
      for (;;)
        if (this.#hasTooMuchCredit()) await this.#cancel()
        else if (this.#hasTooLittleCredit()) await this.#consume()
        else break
      if (this.#isOver) this.#options.release()
    } catch {
      this.#options.fail('silent')
    } finally {
      // Reset at once, so that no new waiter is missed.
      this.#isAdapting = false
    }
  }

  /** True while the waiters are in a tight loop. */
  get isHot(): boolean {
    return this.#streak >= hotStreak
  }

  /**
   * Messages of these consumers that are handed out. Settling one gives new credit, so more
   * messages may be in flight than is known here.
   */
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

  /** True if no more messages are wanted, or far more could arrive than are wanted. */
  #hasTooMuchCredit(): boolean {
    if (this.#consumers.size === 0) return false
    const wanted = this.#options.wanted()
    if (this.#isCollecting || wanted === 0) return this.#isCollecting || this.#isOver
    return this.#credit > 2 * wanted && !this.isHot && this.#out === 0
  }

  /** True if the credit is less than half of what is wanted. */
  #hasTooLittleCredit(): boolean {
    const wanted = this.#options.wanted()
    return !this.#isCollecting && wanted > 0 && this.#credit < Math.min(wanted, maxPrefetch) / 2
  }

  /**
   * Adds a consumer, since the credit of a consumer never changes. Ending the existing ones instead
   * would not do: the server takes back messages that are in flight to a consumer that ends, and
   * counts that as a delivery.
   */
  async #consume(): Promise<void> {
    const { channel, clock, queue, wanted, arrive, fail } = this.#options
    const lacking = wanted() - this.#credit
    const consumer: Consumer = {
      tag: clock.id(),
      prefetch: Math.min(lacking, maxPrefetch),
      used: 0,
    }
    // Both in one tick: the credit applies to the next consumer.
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
    await this.#awaitAnswer(Promise.all([credit, consuming]))
  }

  async #cancel(): Promise<void> {
    const ending = [...this.#consumers].map(({ tag }) => this.#options.channel.cancel(tag))
    this.#consumers.clear()
    await this.#awaitAnswer(Promise.all(ending))
  }

  #awaitAnswer<T>(asked: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#options
    return limitTime(clock, timeoutMs, asked, 'the server did not answer')
  }
}
