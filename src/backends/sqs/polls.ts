import type { Message } from '@aws-sdk/client-sqs'
import type { Ask } from '../../mailbox.ts'
import { Line, type LineOptions, type PollAsk } from './line.ts'

export type PollsOptions = Pick<LineOptions, 'clock' | 'shared' | 'start' | 'giveBack'>

/** Those who wait for messages, in one line for each kind of asking: what a poll brings can then go to anybody in it. */
export class Polls {
  readonly #options: PollsOptions
  readonly #lines = new Map<string, Line>()
  readonly #running = new Set<Promise<void>>()

  constructor(options: PollsOptions) {
    this.#options = options
  }

  take(ask: PollAsk, signal: Ask['signal']): Promise<Message[]> {
    // Whoever does not wait wants to know what is there now, and a poll that runs may have looked before.
    const line = ask.waitSeconds === 0 ? this.#newLine(ask, () => {}) : this.#lineOf(ask)
    return line.wait(ask.waitSeconds * 1000, signal)
  }

  /** Resolves once all that run have ended, and what they brought for nobody is on its way back. */
  async idle(): Promise<void> {
    await Promise.all(this.#running)
  }

  #lineOf(ask: PollAsk): Line {
    const key = `${ask.max} for ${ask.visibilitySeconds}`
    const line = this.#lines.get(key) ?? this.#newLine(ask, () => this.#lines.delete(key))
    this.#lines.set(key, line)
    return line
  }

  #newLine({ max, visibilitySeconds }: PollAsk, onIdle: () => void): Line {
    const onPoll = (poll: Promise<void>): void => this.#watch(poll)
    return new Line({ ...this.#options, max, visibilitySeconds, onPoll, onIdle })
  }

  #watch(poll: Promise<void>): void {
    this.#running.add(poll)
    void poll.then(() => this.#running.delete(poll))
  }
}
