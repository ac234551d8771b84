import { fakeClock, type FakeClock } from '../src/testing/fake-clock.ts'
import type { EventOf, EventType, RedriveEvent } from '../src/observer.ts'
import type { QueueOptions } from '../src/options/options.ts'
import { DeadLetterQueue } from '../src/queue/queue.ts'
import type { Store } from '../src/store.ts'
import { memoryStore } from '../src/stores/memory/memory.ts'

export interface QueueBench {
  dlq: DeadLetterQueue
  store: Store
  clock: FakeClock
  /** All observed events, in order. */
  events: RedriveEvent[]
  /** The events of one type, in order. */
  eventsOf: <T extends EventType>(type: T) => EventOf<T>[]
}

/** A queue on a new memory store with a fake clock. */
export async function aQueue(
  options: QueueOptions = {},
  store?: (clock: FakeClock) => Store,
): Promise<QueueBench> {
  const clock = fakeClock()
  const opened = store ? store(clock) : memoryStore({ clock })
  const events: RedriveEvent[] = []
  const dlq = await DeadLetterQueue.open(opened, { clock, worker: 'worker-1', ...options })
  dlq.on('*', (event) => events.push(event))
  return {
    dlq,
    store: opened,
    clock,
    events,
    eventsOf: <T extends EventType>(type: T) =>
      events.filter((event): event is EventOf<T> => event.type === type),
  }
}

/** Errors as real clients throw them. */
export const refused = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:443'), { code: 'ECONNREFUSED' })
/** A timeout after the service was reached: such a run counts, unlike a refused one. */
export const timedOut = (): Error => Object.assign(new Error('Gateway Timeout'), { status: 504 })
export const forbidden = (): Error => Object.assign(new Error('Forbidden'), { status: 403 })

/** A promise with its resolve and reject functions. */
export function deferred<T = void>(): {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: unknown) => void
} {
  return Promise.withResolvers<T>()
}
