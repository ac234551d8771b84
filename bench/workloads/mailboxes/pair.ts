import { Buffer } from 'node:buffer'
import type { Mailbox } from '../../../src/mailbox.ts'

/** A mailbox and the plain client of its broker, both open on the same server or disk. */
export interface Pair {
  mailbox: Mailbox
  /** The client with single calls, as a mailbox is called. Memory has no client. */
  raw?: Raw
  /** The client with all messages in flight in batches, where the broker supports batches. */
  batched?: Raw
  /** Closes both, and leaves nothing behind. */
  close(): Promise<void>
}

/**
 * Sends, receives and deletes messages with a number of them in flight: as durable as a mailbox,
 * without its features.
 */
export type Raw = (messages: number, inFlight: number) => Promise<void>

const bodyBytes = 1024
let bodies = 0

/** Bodies are unique: some raw loops find a message by its value. */
export function body(): Buffer<ArrayBuffer> {
  bodies += 1
  return Buffer.alloc(bodyBytes, `message ${bodies} `)
}

/** Runs concurrent workers, each with one trip at a time, until all trips are made. */
export async function runWorkers(
  trips: number,
  inFlight: number,
  trip: () => Promise<void>,
): Promise<void> {
  let left = trips
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await trip()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, work))
}

/** Runs batches of at most this size, one after the other. */
export async function inBatches(
  messages: number,
  size: number,
  runBatch: (count: number) => Promise<void> | void,
): Promise<void> {
  for (let done = 0; done < messages; done += size) await runBatch(Math.min(size, messages - done))
}

/** A queue of pushed messages for consumers that take one at a time. */
export interface Inbox<T> {
  put(one: T): void
  next(): Promise<T>
}

export function inbox<T>(): Inbox<T> {
  const items: T[] = []
  const waiting: ((one: T) => void)[] = []
  return {
    put: (one) => {
      const take = waiting.shift()
      if (take) take(one)
      else items.push(one)
    },
    next: () => {
      const one = items.shift()
      return one === undefined ? new Promise((take) => waiting.push(take)) : Promise.resolve(one)
    },
  }
}
