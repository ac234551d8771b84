import type { Failure } from '../letter/letter.ts'
import type { FailedAttempt } from './dead-message.ts'

const bounds = { messages: 1000, attempts: 10, characters: 500 }

/**
 * What this loop has seen of deliveries that failed, for the dead letter. Brokers keep no such thing, so it is bounded, the messages
 * seen longest ago go first, and what other processes saw is not in it.
 */
export class AttemptHistory {
  readonly #byMessage = new Map<string, FailedAttempt[]>()

  /** What is known of the message now, this failure included. */
  add(messageId: string, { at, name, message }: Failure): readonly FailedAttempt[] {
    const attempt = { at, error: message.slice(0, bounds.characters), errorType: name }
    const attempts = [...(this.#byMessage.get(messageId) ?? []), attempt].slice(-bounds.attempts)
    this.#byMessage.delete(messageId)
    this.#byMessage.set(messageId, attempts)
    if (this.#byMessage.size > bounds.messages)
      this.#byMessage.delete(this.#byMessage.keys().next().value!)
    return attempts
  }

  forget(messageId: string): void {
    if (this.#byMessage.size > 0) this.#byMessage.delete(messageId)
  }
}
