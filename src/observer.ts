import { RedriveError } from './errors.ts'
import { checkOneOf, keysOf } from './check/keys.ts'
import type { DeadLetter } from './letter/letter.ts'
import type { Change } from './letter/moves.ts'
import type { Alert } from './policy/alerts.ts'

/** Everything that observers hear. They hear it after it has happened, and can stop nothing. */
export type RedriveEvent =
  | { type: 'captured'; letter: DeadLetter }
  | { type: 'duplicate'; letter: DeadLetter; occurrences: number }
  | { type: 'full'; queue: string; maxItems: number }
  | { type: 'evicted'; count: number }
  | { type: 'started'; letter: DeadLetter; worker: string }
  | { type: 'resolved'; letter: DeadLetter; durationMs?: number }
  | { type: 'rescheduled'; letter: DeadLetter; durationMs?: number }
  | { type: 'exhausted'; letter: DeadLetter; durationMs?: number }
  | { type: 'parked'; letter: DeadLetter; durationMs?: number }
  | { type: 'released'; letter: DeadLetter }
  /** Published to its source again. */
  | { type: 'replayed'; letter: DeadLetter }
  | { type: 'lease-lost'; letter: DeadLetter; worker: string }
  | { type: 'stuck'; letter: DeadLetter; overdueMs: number }
  | { type: 'changed'; letter: DeadLetter; change: Change }
  | { type: 'removed'; count: number; by: string; letter?: DeadLetter }
  | { type: 'swept'; archived: number; removed: number; parked: number }
  /** Of a queue, of something that queues need, or of a policy of a ResilientExecutor. */
  | {
      type: 'breaker'
      kind: 'queue' | 'dependency' | 'policy'
      name: string
      state: 'open' | 'half-open' | 'closed'
      until?: string
    }
  /** The store cannot be reached, and the first letter waits for it in `place`. */
  | { type: 'spooling'; place: string; error: unknown }
  /** The store has all that waited. `duplicates` of them it had already, or counted as occurrences. */
  | { type: 'drained'; count: number; duplicates: number }
  /** Something in the spool cannot come to the store, and lies in `file`. */
  | { type: 'set-aside'; what: 'damaged' | 'refused'; file: string; why: string }
  /** A rule is crossed, or no longer. Of all processes on a store one hears it, and once for each change. */
  | { type: 'alert'; alert: Alert; state: 'raised' | 'cleared' }
  | { type: 'error'; during: string; error: unknown }

export type EventType = RedriveEvent['type']
export type EventOf<T extends EventType> = Extract<RedriveEvent, { type: T }>
export type Observer = (event: RedriveEvent) => unknown

/** Every type of event. A type that is missing here does not compile. */
const eventTypes = keysOf<Record<EventType, true>>({
  captured: true,
  duplicate: true,
  full: true,
  evicted: true,
  started: true,
  resolved: true,
  rescheduled: true,
  exhausted: true,
  parked: true,
  released: true,
  replayed: true,
  'lease-lost': true,
  stuck: true,
  changed: true,
  removed: true,
  swept: true,
  breaker: true,
  spooling: true,
  drained: true,
  'set-aside': true,
  alert: true,
  error: true,
})

/**
 * Where events go out. Watching cannot hurt: a listener that throws or rejects is told about once as `error`
 * and never reaches the caller, nothing waits for a listener, and each gets a letter of its own, from which it may
 * take away what it likes.
 */
export class ObserverHub {
  /** Never changed but replaced, so that whoever goes through one is not led astray by those who come and go meanwhile. */
  readonly #listeners = new Map<EventType | '*', readonly Observer[]>()

  /** Adds a listener for one type of event, or for all with `*`. Returns a function that takes it away. */
  on(type: EventType | '*', listener: Observer): () => void {
    checkOneOf('event type', [type], ['*', ...eventTypes])
    if (typeof listener !== 'function')
      throw new RedriveError(
        'INVALID_INPUT',
        `the listener for "${type}" must be a function, got ${listener === null ? 'null' : typeof listener}`,
      )
    const remove = (): void =>
      void this.#listeners.set(
        type,
        this.#of(type).filter((other) => other !== listener),
      )
    if (!this.#of(type).includes(listener)) this.#listeners.set(type, [...this.#of(type), listener])
    return remove
  }

  emit(event: RedriveEvent): void {
    this.#tellAll('*', event)
    this.#tellAll(event.type, event)
  }

  /** Those who were there when it began, and still are. */
  #tellAll(type: EventType | '*', event: RedriveEvent): void {
    for (const listener of this.#of(type))
      if (this.#of(type).includes(listener)) this.#tell(listener, event)
  }

  #of(type: EventType | '*'): readonly Observer[] {
    return this.#listeners.get(type) ?? []
  }

  #tell(listener: Observer, event: RedriveEvent): void {
    try {
      const returned = listener(apart(event))
      if (returned instanceof Promise)
        returned.catch((error: unknown) => this.#complain(event, error))
    } catch (error) {
      this.#complain(event, error)
    }
  }

  /** Trouble with a listener of `error` goes no further, or it would go round for ever. */
  #complain(event: RedriveEvent, error: unknown): void {
    if (event.type !== 'error')
      this.emit({ type: 'error', during: `observer of ${event.type}`, error })
  }
}

/** With a copy of the letter. It is not deep: letters are large, and events are many. */
function apart(event: RedriveEvent): RedriveEvent {
  if (!('letter' in event) || !event.letter) return event
  const { letter } = event
  return { ...event, letter: { ...letter, payload: { ...letter.payload } } }
}
