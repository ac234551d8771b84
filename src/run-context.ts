import { AsyncLocalStorage } from 'node:async_hooks'
import { idempotencyKeyOf, type KeyedWork } from './letter/idempotency-key.ts'
import type { Payload } from './letter/letter.ts'
import { isFailedResult } from './letter/result.ts'

/** The fields of a letter that are read during its run. */
type Redelivered = KeyedWork & { queue: string; payload: Payload }

/** A run in progress, and failures inside it that may still need their own letters. */
interface Redelivery {
  letter: Redelivered
  /** True after the run. Work that it started, such as a timer, is no longer part of it. */
  isOver: boolean
  /** Captures that happen if the run succeeds. */
  deferredCaptures: (() => Promise<unknown>)[]
}

/**
 * The run that the current call is part of. Work that fails inside a run and makes it fail is
 * retried with it, and must not get a second letter.
 */
const current = new AsyncLocalStorage<Redelivery>()

/**
 * Runs `fn` as the run of this letter. If it succeeds, failures that it caught get their own
 * letters before this resolves, because nothing else would retry that work.
 */
export async function insideRedelivery<T>(letter: Redelivered, fn: () => T): Promise<Awaited<T>> {
  const redelivery: Redelivery = { letter, isOver: false, deferredCaptures: [] }
  try {
    const value = await current.run(redelivery, fn)
    redelivery.isOver = true
    // Captures report their own errors.
    if (redelivery.deferredCaptures.length > 0 && !isFailedResult(value))
      await Promise.allSettled(redelivery.deferredCaptures.map((capture) => capture()))
    return value
  } finally {
    redelivery.isOver = true
  }
}

/** The id of the letter that runs, or undefined outside of a run. */
export function redelivering(): string | undefined {
  return running()?.letter.id
}

/**
 * The idempotency key of a call that does the work of the running letter: same queue and payload.
 * Undefined for other calls, which have their own key.
 */
export function redeliveredKey(queue: string, payload: () => Payload): string | undefined {
  const letter = running()?.letter
  if (letter?.queue !== queue) return undefined
  return Buffer.compare(letter.payload.bytes, payload().bytes) === 0
    ? idempotencyKeyOf(letter)
    : undefined
}

/**
 * Captures a failure of this queue: at once, or inside a run after the run has succeeded. A failure
 * of the queue of the running letter is the failure of that letter, and is not captured. Returns
 * false if the failure is not captured yet.
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
  if (redelivery.letter.queue !== queue) redelivery.deferredCaptures.push(keep)
  return false
}

function running(): Redelivery | undefined {
  const redelivery = current.getStore()
  return redelivery?.isOver ? undefined : redelivery
}
