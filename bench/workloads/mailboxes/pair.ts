import { Buffer } from 'node:buffer'
import type { Mailbox } from '../../../src/mailbox.ts'

/** A mailbox, and what the client of its broker gives alone, both open on the same server or disk. */
export interface Pair {
  mailbox: Mailbox
  /** Each call by itself, as a mailbox is called. Memory has none: there is nothing beneath it. */
  raw?: Raw
  /** All that is in hand gathered into batches by hand, where the broker takes such. */
  batched?: Raw
  /** Closes both, and leaves nothing behind. */
  close(): Promise<void>
}

/** Sends, receives and deletes so many messages, with so many of them in hand at once: as durably as a mailbox, and with nothing more. */
export type Raw = (messages: number, together: number) => Promise<void>

const bodyBytes = 1024
let bodies = 0

/** No two are the same: some brokers find a message by what is in it. */
export function body(): Buffer<ArrayBuffer> {
  bodies += 1
  return Buffer.alloc(bodyBytes, `message ${bodies} `)
}

/** So many workers, each of which makes one trip after the other until all are made. */
export async function crew(
  trips: number,
  together: number,
  trip: () => Promise<void>,
): Promise<void> {
  let left = trips
  const work = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await trip()
    }
  }
  await Promise.all(Array.from({ length: together }, work))
}

/** Batches of so many at the most, one after the other. */
export async function inBatches(
  messages: number,
  size: number,
  carry: (count: number) => Promise<void> | void,
): Promise<void> {
  for (let done = 0; done < messages; done += size) await carry(Math.min(size, messages - done))
}

/** What a server pushes, for those who ask for one at a time. */
export interface Inbox<T> {
  put(one: T): void
  next(): Promise<T>
}

export function inbox<T>(): Inbox<T> {
  const here: T[] = []
  const waiting: ((one: T) => void)[] = []
  return {
    put: (one) => {
      const take = waiting.shift()
      if (take) take(one)
      else here.push(one)
    },
    next: () => {
      const one = here.shift()
      return one === undefined ? new Promise((take) => waiting.push(take)) : Promise.resolve(one)
    },
  }
}
