import type { EventOf, EventType, RedriveEvent } from '../../src/observer.ts'
import { DeadLetterQueue } from '../../src/queue/queue.ts'
import type { Keep } from '../../src/taps/tap.ts'
import { inbox, type Inbox } from './inbox.ts'

/** A letter store for a tap, with its events. */
export interface Letters extends AsyncDisposable {
  dlq: DeadLetterQueue
  keep: Keep
  /** Stores the letter, then fails before the acknowledgement. */
  keepAndCrash: Keep
  /** The next event of this type, in order. */
  next: <T extends EventType>(type: T) => Promise<EventOf<T>>
}

export async function openLetters(url = 'memory:'): Promise<Letters> {
  const dlq = await DeadLetterQueue.open(url)
  const events = new Map<EventType, Inbox<RedriveEvent>>()
  const of = (type: EventType): Inbox<RedriveEvent> => {
    const known = events.get(type) ?? inbox<RedriveEvent>()
    events.set(type, known)
    return known
  }
  dlq.on('*', (event) => of(event.type).put(event))
  const keep = dlq.foreignLetters()
  return {
    [Symbol.asyncDispose]: () => dlq.close(),
    dlq,
    keep,
    keepAndCrash: async (foreign) => {
      await keep(foreign)
      throw new Error('crashed before the acknowledgement')
    },
    next: async <T extends EventType>(type: T) => (await of(type).next()) as EventOf<T>,
  }
}
