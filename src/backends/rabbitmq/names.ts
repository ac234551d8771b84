import { createHash } from 'node:crypto'

/** RabbitMQ takes 255 bytes; what we put before a name needs room too. */
const maxNameBytes = 200
/** The server keeps the first of these for itself, and we the second. */
const reserved = ['amq.', 'redrive.']

/** The queue of a mailbox: of the same name where that can be, else named by a hash. Two mailboxes never share one. */
export function queueOf(name: string): string {
  const fits = Buffer.byteLength(name) <= maxNameBytes
  if (fits && !reserved.some((start) => name.startsWith(start))) return name
  return `redrive.name.${createHash('sha256').update(name).digest('hex')}`
}

export const delayPrefix = 'redrive.delay.'

/** Where messages wait until their time has come. It holds delays that are alike. */
export interface DelayQueue {
  name: string
  /** The longest delay in it. */
  topMs: number
}

/** Four to each doubling, from one second to twelve hours. */
const tops = [1000]
for (let octave = 1000; tops.at(-1)! < 43_200_000; octave *= 2)
  tops.push(octave * 1.25, octave * 1.5, octave * 1.75, octave * 2)

/**
 * The queue for a delay. Messages leave such a queue at its head alone, so a longer delay holds up a shorter one behind it: by a
 * quarter at the most, or a second, since no two delays in a queue are further apart.
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
