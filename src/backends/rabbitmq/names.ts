import { createHash } from 'node:crypto'

/** The limit of RabbitMQ is 255 bytes; our prefixes need room too. */
const maxNameBytes = 200
/** Prefixes reserved by the server and by us. */
const reserved = ['amq.', 'redrive.']

/** The queue of a mailbox: its name if valid, otherwise a hash. No two mailboxes share a queue. */
export function queueOf(name: string): string {
  const fits = Buffer.byteLength(name) <= maxNameBytes
  if (fits && !reserved.some((start) => name.startsWith(start))) return name
  return `redrive.name.${createHash('sha256').update(name).digest('hex')}`
}

export const delayPrefix = 'redrive.delay.'

/** A queue in which messages wait for their delay. It holds similar delays. */
export interface DelayQueue {
  name: string
  /** The longest delay of the queue. */
  topMs: number
}

/** Four per doubling, from one second to twelve hours. */
const tops = [1000]
for (let octave = 1000; tops.at(-1)! < 43_200_000; octave *= 2)
  tops.push(octave * 1.25, octave * 1.5, octave * 1.75, octave * 2)

/**
 * The queue for a delay. Messages leave such a queue in order only, so a longer delay blocks a
 * shorter one behind it: by at most a quarter, or a second, since delays in one queue are that
 * similar.
 */
export function delayQueueOf(queue: string, delayMs: number): DelayQueue {
  const topMs = tops.find((top) => delayMs <= top) ?? tops.at(-1)!
  return delayQueue(queue, topMs)
}

export function delayQueuesOf(queue: string): DelayQueue[] {
  return tops.map((topMs) => delayQueue(queue, topMs))
}

function delayQueue(queue: string, topMs: number): DelayQueue {
  return { name: `${delayPrefix}${topMs}.${queue}`, topMs }
}
