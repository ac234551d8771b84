import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Whether the current call runs inside a redelivery. The doors look here: work that fails inside a retry already
 * has its letter, and must not get a second one.
 */
const current = new AsyncLocalStorage<string>()

/** Runs `fn` as part of the redelivery of this letter. */
export function insideRedelivery<T>(letterId: string, fn: () => T): T {
  return current.run(letterId, fn)
}

/** The id of the letter being redelivered, or undefined outside of a redelivery. */
export function redelivering(): string | undefined {
  return current.getStore()
}
