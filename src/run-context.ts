import { AsyncLocalStorage } from 'node:async_hooks'
import { idempotencyKeyOf, type KeyedWork } from './letter/idempotency-key.ts'
import type { Payload } from './letter/letter.ts'
import { isFailedResult } from './letter/result.ts'

/** As much of a letter as is looked at while it is redelivered. */
type Redelivered = KeyedWork & { queue: string; payload: Payload }

/** A letter being run again, and what failed on the way and may still need a letter of its own. */
interface Redelivery {
  letter: Redelivered
  /** What was started by it, such as a timer, may live on and is no part of it then. */
  over: boolean
  left: (() => Promise<unknown>)[]
}

/**
 * Whether the current call runs inside a redelivery. The doors look here: work that fails inside a retry, and makes it
 * fail, is done again with it, and must not get a second letter.
 */
const current = new AsyncLocalStorage<Redelivery>()

/**
 * Runs `fn` as the redelivery of this letter. When it ends well, failures that it caught get letters of their own, before
 * this resolves: nobody would run that work again.
 */
export async function insideRedelivery<T>(letter: Redelivered, fn: () => Promise<T>): Promise<T> {
  const redelivery: Redelivery = { letter, over: false, left: [] }
  try {
    const value = await current.run(redelivery, fn)
    redelivery.over = true
    // Those who keep them tell of trouble themselves.
    if (!isFailedResult(value)) await Promise.allSettled(redelivery.left.map((keep) => keep()))
    return value
  } finally {
    redelivery.over = true
  }
}

/** The id of the letter being redelivered, or undefined outside of a redelivery. */
export function redelivering(): string | undefined {
  return running()?.letter.id
}

/**
 * The idempotency key of a call that makes the work of the letter being redelivered: same queue, same payload. Undefined
 * for other calls, which have a key of their own.
 */
export function redeliveredKey(queue: string, payload: () => Payload): string | undefined {
  const letter = running()?.letter
  if (letter?.queue !== queue) return undefined
  return Buffer.compare(letter.payload.bytes, payload().bytes) === 0
    ? idempotencyKeyOf(letter)
    : undefined
}

/**
 * Keeps a failure of work of this queue: at once, or inside a redelivery once that has ended well. A failure of the
 * queue that is redelivered is the failure of its letter, and is not kept. False: not kept yet, if ever.
 */
export async function keepUnlessRetried(
  queue: string,
  keep: () => Promise<unknown>,
): Promise<boolean> {
  const redelivery = running()
  if (!redelivery) {
    await keep()
    return true
  }
  if (redelivery.letter.queue !== queue) redelivery.left.push(keep)
  return false
}

function running(): Redelivery | undefined {
  const redelivery = current.getStore()
  return redelivery?.over ? undefined : redelivery
}
