import type { Failure } from '../letter/letter.ts'
import type { FailedAttempt } from './dead-message.ts'

const bounds = { messages: 1000, attempts: 10, characters: 500, counts: 100_000 }

/**
 * The failed deliveries that this loop has seen, for the dead letter. Brokers do not record them,
 * so they are kept in memory: bounded, without those of other processes, and the messages seen
 * longest ago are removed first. Counts are small, so many more of them are kept: an outage may
 * make all messages of a queue fail.
 */
export class AttemptHistory {
  readonly #byMessage = new Map<string, FailedAttempt[]>()
  readonly #counts = new Map<string, number>()
  readonly #uncounted = new Map<string, number>()

  /** Adds a failure, and returns the attempts of the message that are known now. */
  add(messageId: string, { at, name, message }: Failure): readonly FailedAttempt[] {
    const attempt = { at, error: message.slice(0, bounds.characters), errorType: name }
    const attempts = [...(this.#byMessage.get(messageId) ?? []), attempt].slice(-bounds.attempts)
    setNewest(this.#byMessage, messageId, attempts, bounds.messages)
    setNewest(this.#counts, messageId, this.countOf(messageId) + 1, bounds.counts)
    return attempts
  }

  /** Failures of the message that this loop has seen, including those that are no longer listed. */
  countOf(messageId: string): number {
    return this.#counts.get(messageId) ?? 0
  }

  /** Adds a delivery that does not count, for brokers that cannot be told so. */
  addUncounted(messageId: string): void {
    setNewest(this.#uncounted, messageId, this.uncountedOf(messageId) + 1, bounds.counts)
  }

  uncountedOf(messageId: string): number {
    return this.#uncounted.get(messageId) ?? 0
  }

  forget(messageId: string): void {
    this.#byMessage.delete(messageId)
    this.#counts.delete(messageId)
    this.#uncounted.delete(messageId)
  }
}

/** Sets an entry as the newest one, and deletes the oldest above `limit`. */
function setNewest<T>(entries: Map<string, T>, key: string, value: T, limit: number): void {
  entries.delete(key)
  entries.set(key, value)
  if (entries.size > limit) entries.delete(entries.keys().next().value!)
}
