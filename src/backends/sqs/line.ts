import type { Message } from '@aws-sdk/client-sqs'
import type { Clock } from '../../clock/clock.ts'
import type { Ask } from '../../mailbox.ts'

/** What one call of ReceiveMessage asks. Numbers are whole. */
export interface PollAsk {
  max: number
  visibilitySeconds: number
  waitSeconds: number
}

export interface LineOptions {
  clock: Clock
  /** What each in the line takes at the most. */
  max: number
  visibilitySeconds: number
  /** Whether what one poll brings may go to several who wait. */
  shared: boolean
  start: (ask: PollAsk) => Promise<Message[]>
  /** Hears of messages that came for nobody. */
  giveBack: (messages: Message[]) => void
  /** Hears of each poll. It resolves when all that it brought has been handed out or given back. */
  onPoll: (poll: Promise<void>) => void
  /** Nobody waits, and nothing runs. */
  onIdle: () => void
}

interface Waiter {
  /** On the monotonic clock. */
  endMs: number
  resolve: (messages: Message[]) => void
  reject: (error: unknown) => void
}

/** The most that SQS gives in one answer, and the longest that it waits with it. */
const mostMessages = 10
const longestPollSeconds = 20

/** Polls of one line that run at once. Those who come meanwhile share the next one. Without sharing each in the line needs one. */
const maxPolls = 8
const maxUnsharedPolls = 100

/** So long an answer may travel before whoever waits for it gives up on it. */
const graceMs = 250

/**
 * Those who wait for the same. As long as nobody leaves, the polls that run bring no more than those in the line would take: each has seats for some of them, and
 * whatever it brings serves no more of them than it has seats. A poll is never cut off, since a message that SQS had just put into its answer would stay hidden. When somebody
 * leaves, it serves who comes next, and what it brings for nobody is given back.
 */
export class Line {
  readonly #options: LineOptions
  /** The first one came first. */
  readonly #waiting = new Set<Waiter>()
  readonly #seatsOfPoll: number
  readonly #maxPolls: number
  #polls = 0
  #seats = 0

  constructor(options: LineOptions) {
    this.#options = options
    this.#seatsOfPoll = options.shared ? Math.max(1, Math.floor(mostMessages / options.max)) : 1
    this.#maxPolls = options.shared ? maxPolls : maxUnsharedPolls
  }

  /** Up to `max` messages, or none when nothing came in time or the signal aborts. */
  wait(waitMs: number, signal: Ask['signal']): Promise<Message[]> {
    const { clock } = this.#options
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiter.resolve([])
        this.#rest()
      }
      const leave = (): void => {
        cancel()
        signal.removeEventListener('abort', giveUp)
        this.#waiting.delete(waiter)
      }
      const waiter: Waiter = {
        endMs: clock.mono() + waitMs,
        resolve: (messages) => (leave(), resolve(messages)),
        reject: (error) => (leave(), reject(error)),
      }
      // The polls that run may all last longer than this one waits.
      const cancel = waitMs > 0 ? clock.timer(waitMs + graceMs, giveUp) : () => {}
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(waiter)
      // Those who come in the same turn share a poll.
      queueMicrotask(() => this.#tend())
    })
  }

  #tend(): void {
    while (this.#seats < this.#waiting.size && this.#polls < this.#maxPolls)
      this.#options.onPoll(this.#poll())
  }

  async #poll(): Promise<void> {
    const { clock, max, visibilitySeconds, start } = this.#options
    const standing = [...this.#waiting].slice(this.#seats, this.#seats + this.#seatsOfPoll)
    const seats = standing.length
    const leftMs = Math.max(...standing.map(({ endMs }) => endMs)) - clock.mono()
    const waitSeconds = Math.min(Math.max(0, Math.ceil(leftMs / 1000)), longestPollSeconds)
    this.#polls += 1
    this.#seats += seats
    try {
      this.#handOut(await start({ max: max * seats, visibilitySeconds, waitSeconds }))
    } catch (error) {
      for (const waiter of [...this.#waiting].slice(0, seats)) waiter.reject(error)
    }
    this.#polls -= 1
    this.#seats -= seats
    this.#tend()
    this.#rest()
  }

  #handOut(messages: Message[]): void {
    const { clock, max, giveBack } = this.#options
    const nowMs = clock.mono()
    for (const waiter of this.#waiting)
      if (messages.length > 0) waiter.resolve(messages.splice(0, max))
      else if (waiter.endMs <= nowMs) waiter.resolve([])
    if (messages.length > 0) giveBack(messages)
  }

  #rest(): void {
    if (this.#waiting.size === 0 && this.#polls === 0) this.#options.onIdle()
  }
}
