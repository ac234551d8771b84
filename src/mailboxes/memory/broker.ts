import type { Clock } from '../../clock/clock.ts'
import { MemoryQueue } from './queue.ts'

/** A handle on a queue. Keeps the broker alive. */
export interface QueueUse {
  readonly queue: MemoryQueue
  /** Safe twice. */
  leave(): void
}

interface Broker {
  /** Open handles on all queues. */
  users: number
  readonly queues: Map<string, { queue: MemoryQueue; users: number }>
}

/**
 * Brokers by clock and name. A different clock counts as a different process. Only handles refer to
 * a broker, so handles dropped without `close` do not leak.
 */
const brokers = new WeakMap<Clock, Map<string, WeakRef<Broker>>>()
const dropped = new FinalizationRegistry((forget: () => void) => forget())

/**
 * The queue of this name in a broker of this process. A broker and its messages live until its last
 * handle leaves. A queue without handles stays while it has messages.
 */
export function useQueue(clock: Clock, brokerName: string, queueName: string): QueueUse {
  const broker = brokerOf(clock, brokerName)
  const used = broker.queues.get(queueName) ?? {
    queue: new MemoryQueue(queueName, clock),
    users: 0,
  }
  broker.queues.set(queueName, used)
  broker.users += 1
  used.users += 1
  let isLeft = false
  return {
    queue: used.queue,
    leave() {
      if (isLeft) return
      isLeft = true
      broker.users -= 1
      used.users -= 1
      if (used.users === 0 && used.queue.size === 0) broker.queues.delete(queueName)
      if (broker.users === 0) brokers.get(clock)?.delete(brokerName)
    },
  }
}

function brokerOf(clock: Clock, name: string): Broker {
  const ofClock = brokers.get(clock) ?? new Map<string, WeakRef<Broker>>()
  brokers.set(clock, ofClock)
  const known = ofClock.get(name)?.deref()
  if (known) return known
  const made: Broker = { users: 0, queues: new Map() }
  const reference = new WeakRef(made)
  ofClock.set(name, reference)
  dropped.register(made, () => {
    if (ofClock.get(name) === reference) ofClock.delete(name)
  })
  return made
}
