import type { Message } from '@aws-sdk/client-sqs'
import type { ReceiveRequest } from '../../mailbox.ts'
import { PollGroup, type PollGroupOptions, type PollRequest } from './poll-group.ts'

export type PollsOptions = Pick<PollGroupOptions, 'clock' | 'shared' | 'start' | 'release'>

/**
 * Groups waiters by their request, so that the messages of a poll can go to any waiter of its
 * group.
 */
export class Polls {
  readonly #options: PollsOptions
  readonly #groups = new Map<string, PollGroup>()
  readonly #running = new Set<Promise<void>>()

  constructor(options: PollsOptions) {
    this.#options = options
  }

  take(ask: PollRequest, signal: ReceiveRequest['signal']): Promise<Message[]> {
    // A caller that does not wait wants the current state, which a poll in flight may have missed.
    const group = ask.waitSeconds === 0 ? this.#createGroup(ask, () => {}) : this.#groupFor(ask)
    return group.wait(ask.waitSeconds * 1000, signal)
  }

  /** Resolves once all polls in flight have ended, and their stray messages are being released. */
  async idle(): Promise<void> {
    await Promise.all(this.#running)
  }

  #groupFor(ask: PollRequest): PollGroup {
    const key = `${ask.max} for ${ask.visibilitySeconds}`
    const group = this.#groups.get(key) ?? this.#createGroup(ask, () => this.#groups.delete(key))
    this.#groups.set(key, group)
    return group
  }

  #createGroup({ max, visibilitySeconds }: PollRequest, onIdle: () => void): PollGroup {
    const onPoll = (poll: Promise<void>): void => this.#watch(poll)
    return new PollGroup({ ...this.#options, max, visibilitySeconds, onPoll, onIdle })
  }

  #watch(poll: Promise<void>): void {
    this.#running.add(poll)
    void poll.then(() => this.#running.delete(poll))
  }
}
