import type { Message } from '@aws-sdk/client-sqs'
import type { Clock } from '../../clock/clock.ts'
import type { ReceiveRequest } from '../../mailbox.ts'

/** The request of one ReceiveMessage call. All numbers are integers. */
export interface PollRequest {
  max: number
  visibilitySeconds: number
  waitSeconds: number
}

export interface PollGroupOptions {
  clock: Clock
  /** Maximum number of messages per waiter. */
  max: number
  visibilitySeconds: number
  /** Whether the messages of one poll may go to several waiters. */
  shared: boolean
  start: (ask: PollRequest) => Promise<Message[]>
  /** Gets messages that no waiter takes. */
  release: (messages: Message[]) => void
  /**
   * Called with each poll. The promise resolves when all its messages are handed out or released.
   */
  onPoll: (poll: Promise<void>) => void
  /** Called when nobody waits and no poll is in flight. */
  onIdle: () => void
}

interface Waiter {
  /** On the monotonic clock. */
  endMs: number
  resolve: (messages: Message[]) => void
  reject: (error: unknown) => void
}

/** Limits of SQS: messages per answer, and seconds per poll. */
const maxMessages = 10
const maxPollSeconds = 20

/**
 * Maximum number of polls in flight per group. Waiters that come meanwhile share the next one.
 * Without sharing, each waiter needs its own poll.
 */
const maxPolls = 8
const maxUnsharedPolls = 100

/** How long an answer may be in transit before its waiter gives up. */
const graceMs = 250

/**
 * Waiters with the same request. As long as no waiter leaves, the polls in flight request no more
 * than the waiters would take: each poll has slots for some of them, and serves at most that many.
 * A poll is never aborted, since a message that SQS had just put into its answer would stay hidden.
 * When a waiter leaves, the poll serves the next one, and messages that nobody takes are released.
 */
export class PollGroup {
  readonly #options: PollGroupOptions
  /** In order of arrival. */
  readonly #waiting = new Set<Waiter>()
  readonly #slotsPerPoll: number
  readonly #maxPolls: number
  #polls = 0
  #slots = 0

  constructor(options: PollGroupOptions) {
    this.#options = options
    this.#slotsPerPoll = options.shared ? Math.max(1, Math.floor(maxMessages / options.max)) : 1
    this.#maxPolls = options.shared ? maxPolls : maxUnsharedPolls
  }

  /** Returns up to `max` messages, or none if nothing arrived in time or the signal aborts. */
  wait(waitMs: number, signal: ReceiveRequest['signal']): Promise<Message[]> {
    const { clock } = this.#options
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiter.resolve([])
        this.#reportIdle()
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
      // All polls in flight may last longer than this waiter waits.
      const cancel = waitMs > 0 ? clock.timer(waitMs + graceMs, giveUp) : () => {}
      signal.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(waiter)
      // Calls made in the same tick share a poll.
      queueMicrotask(() => this.#startPolls())
    })
  }

  #startPolls(): void {
    while (this.#slots < this.#waiting.size && this.#polls < this.#maxPolls)
      this.#options.onPoll(this.#poll())
  }

  async #poll(): Promise<void> {
    const { clock, max, visibilitySeconds, start } = this.#options
    const waiters = [...this.#waiting].slice(this.#slots, this.#slots + this.#slotsPerPoll)
    const slots = waiters.length
    const leftMs = Math.max(...waiters.map(({ endMs }) => endMs)) - clock.mono()
    const waitSeconds = Math.min(Math.max(0, Math.ceil(leftMs / 1000)), maxPollSeconds)
    this.#polls += 1
    this.#slots += slots
    try {
      this.#handOut(await start({ max: max * slots, visibilitySeconds, waitSeconds }))
    } catch (error) {
      for (const waiter of [...this.#waiting].slice(0, slots)) waiter.reject(error)
    }
    this.#polls -= 1
    this.#slots -= slots
    this.#startPolls()
    this.#reportIdle()
  }

  #handOut(messages: Message[]): void {
    const { clock, max, release } = this.#options
    const nowMs = clock.mono()
    for (const waiter of this.#waiting)
      if (messages.length > 0) waiter.resolve(messages.splice(0, max))
      else if (waiter.endMs <= nowMs) waiter.resolve([])
    if (messages.length > 0) release(messages)
  }

  #reportIdle(): void {
    if (this.#waiting.size === 0 && this.#polls === 0) this.#options.onIdle()
  }
}
