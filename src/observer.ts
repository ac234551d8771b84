import { RedriveError } from './errors.ts'
import { checkOneOf, keysOf } from './check/keys.ts'
import type { BulkAction } from './letter/bulk-action.ts'
import type { GroupChange } from './letter/group.ts'
import type { Action, DeadLetter, Patch } from './letter/letter.ts'
import { isPublished } from './letter/counts.ts'
import { withChange, type Change } from './letter/moves.ts'
import type { PausedQueue } from './letter/paused-queue.ts'
import type { Timestamp } from './letter/time.ts'
import type { Alert } from './policy/alert-rule.ts'

/** All events. An event is emitted after the fact: an observer cannot prevent anything. */
export type RedriveEvent =
  /** A new letter was stored. */
  | { type: 'captured'; letter: DeadLetter }
  /** A failure was added as an occurrence to a stored letter with the same dedupe key. */
  | { type: 'duplicate'; letter: DeadLetter; occurrences: number }
  /** A new letter was rejected because the store has reached `maxItems`. */
  | { type: 'full'; queue: string; maxItems: number }
  /** Letters were removed to make room for new ones. */
  | { type: 'evicted'; count: number }
  /** A handler is about to run the letter. */
  | { type: 'started'; letter: DeadLetter; worker: string }
  /** A run succeeded, or a person resolved the letter. */
  | { type: 'resolved'; letter: DeadLetter; durationMs?: number }
  /** A run failed, and the letter will run again at `retryAt`. */
  | { type: 'rescheduled'; letter: DeadLetter; durationMs?: number }
  /** A run failed, and the letter has no retries left. */
  | { type: 'exhausted'; letter: DeadLetter; durationMs?: number }
  /** The letter waits for a person or an event. Its field `reason` says why. */
  | { type: 'parked'; letter: DeadLetter; durationMs?: number }
  /** A claimed letter was returned without counting the run. */
  | { type: 'released'; letter: DeadLetter }
  /**
   * The letter was published to its source again. It is resolved, or parked until the replay is
   * confirmed (option `confirmReplayMs`).
   */
  | { type: 'replayed'; letter: DeadLetter }
  /** The result of a run was discarded, because the lease of the worker had ended. */
  | { type: 'lease-lost'; letter: DeadLetter; worker: string }
  /** A handler timed out and still runs `overdueMs` after its signal was aborted. */
  | { type: 'stuck'; letter: DeadLetter; overdueMs: number }
  /** Any change of a stored letter, after the more specific event. */
  | { type: 'changed'; letter: DeadLetter; change: Change }
  /** Letters were removed by a person: one of them, or a part of many, without `letter`. */
  | { type: 'removed'; count: number; by: string; letter?: DeadLetter }
  /** A sweep changed letters. Sweeps that change nothing emit no event. */
  | { type: 'swept'; archived: number; removed: number; parked: number }
  /** The circuit breaker of a queue, a dependency or a policy of a ResilientExecutor changed. */
  | {
      type: 'breaker'
      kind: 'queue' | 'dependency' | 'policy'
      name: string
      state: 'open' | 'half-open' | 'closed'
      until?: string
    }
  /** The store is unreachable, and the first letter was written to the spool at `place`. */
  | { type: 'spooling'; place: string; error: unknown }
  /** The spool was delivered to the store, which already had `duplicates` of the letters. */
  | { type: 'drained'; count: number; duplicates: number }
  /** Part of the spool cannot be delivered and was moved to `file`. */
  | { type: 'set-aside'; what: 'damaged' | 'refused'; file: string; why: string }
  /** An alert rule changed. Of all processes on a store, one emits it, once for each change. */
  | { type: 'alert'; alert: Alert; state: 'raised' | 'cleared' }
  /** A bulk action made progress or changed its state. */
  | { type: 'bulk'; action: BulkAction }
  /** This process has paused a queue: its letters are not run until it is resumed. */
  | ({ type: 'queue-paused' } & PausedQueue)
  /** This process has resumed a paused queue. */
  | { type: 'queue-resumed'; queue: string; by: string }
  /** A group changed: its letters made it regress or end its ignoring, or a person acted on it. */
  | ({ type: 'group'; fingerprint: string; title: string } & GroupChange)
  /** Something failed that no caller waits for, such as a sweep or a listener. */
  | { type: 'error'; during: string; error: unknown }

export type EventType = RedriveEvent['type']
export type EventOf<T extends EventType> = Extract<RedriveEvent, { type: T }>
export interface Observer {
  (event: RedriveEvent): unknown
  /** True: what it gets leaves the process, as a log or a notification, so that it is redacted. */
  readonly leavesProcess?: boolean
}

/** All event types. A missing type is a compile error. */
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
  bulk: true,
  'queue-paused': true,
  'queue-resumed': true,
  group: true,
  error: true,
})

/** The event of an action on a letter, besides `changed`. Actions that are missing have none. */
const eventOfAction: Partial<Record<Action, LetterEventType>> = {
  resolve: 'resolved',
  reschedule: 'rescheduled',
  exhaust: 'exhausted',
  park: 'parked',
  release: 'released',
  replay: 'replayed',
}
type LetterEventType = 'resolved' | 'rescheduled' | 'exhausted' | 'parked' | 'released' | 'replayed'

function eventTypeOf(change: Change): LetterEventType | undefined {
  const { action } = change
  return action === 'replay' && !isPublished(change) ? 'parked' : eventOfAction[action]
}

const none: readonly Observer[] = []

/**
 * Delivers events to listeners. Listeners cannot do harm: nothing waits for a listener, an error of
 * a listener becomes an `error` event and never reaches the caller, and each listener gets its own
 * shallow copy of the letter.
 */
export class ObserverHub {
  /** Lists are replaced, never changed, so that listeners may come and go during an event. */
  readonly #listeners = new Map<EventType | '*', readonly Observer[]>()
  #onDue: ((at: Timestamp) => void) | undefined
  #redact: (event: RedriveEvent) => RedriveEvent = (event) => event

  /**
   * Adds a listener for one type of event, or for all with `*`. Returns a function to remove it.
   */
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
        this.#listenersOf(type).filter((other) => other !== listener),
      )
    if (!this.#listenersOf(type).includes(listener))
      this.#listeners.set(type, [...this.#listenersOf(type), listener])
    return remove
  }

  /**
   * Sets the listener for letters that this process has made pending. It gets the time at which the
   * letter is due, without the cost of an event.
   */
  setDueListener(listener: (at: Timestamp) => void): void {
    this.#onDue = listener
  }

  /** Sets how events are redacted for observers with `leavesProcess`. Default: not at all. */
  setRedaction(redact: (event: RedriveEvent) => RedriveEvent): void {
    this.#redact = redact
  }

  emit(event: RedriveEvent): void {
    if (event.type === 'captured') this.#reportDue(event.letter)
    this.#deliver('*', event)
    this.#deliver(event.type, event)
  }

  /**
   * Emits the events of a change that was written: the one of its action, then `changed`. `after`
   * is the letter after the change.
   */
  emitChange(after: DeadLetter, change: Change, durationMs?: number): void {
    const type = eventTypeOf(change)
    const timing = durationMs === undefined || type === 'released' ? {} : { durationMs }
    this.#reportDue(change.set)
    if (type) this.emit({ type, letter: after, ...timing })
    this.emit({ type: 'changed', letter: after, change })
  }

  /** Like `emitChange`, but creates the letter after the change only if somebody listens. */
  emitChangeOf(before: DeadLetter, change: Change, durationMs?: number): void {
    const type = eventTypeOf(change)
    if (
      this.#hasListeners('*') ||
      this.#hasListeners('changed') ||
      (type && this.#hasListeners(type))
    )
      this.emitChange(withChange(before, change), change, durationMs)
    else this.#reportDue(change.set)
  }

  #reportDue({ state, retryAt }: Pick<Patch, 'state' | 'retryAt'>): void {
    if (state === 'pending' && retryAt) this.#onDue?.(retryAt)
  }

  /** Delivers to the listeners that were there at the beginning and still are. */
  #deliver(type: EventType | '*', event: RedriveEvent): void {
    for (const listener of this.#listenersOf(type))
      if (this.#listenersOf(type).includes(listener)) this.#call(listener, event)
  }

  #hasListeners(type: EventType | '*'): boolean {
    return this.#listenersOf(type).length > 0
  }

  #listenersOf(type: EventType | '*'): readonly Observer[] {
    return this.#listeners.get(type) ?? none
  }

  #call(listener: Observer, event: RedriveEvent): void {
    try {
      const given = listener.leavesProcess ? this.#redact(event) : event
      const returned = listener(copyLetter(given))
      if (returned instanceof Promise)
        returned.catch((error: unknown) => this.#reportError(event, error))
    } catch (error) {
      this.#reportError(event, error)
    }
  }

  /** Errors of listeners for `error` are dropped: they would cause further ones without end. */
  #reportError(event: RedriveEvent, error: unknown): void {
    if (event.type !== 'error')
      this.emit({ type: 'error', during: `observer of ${event.type}`, error })
  }
}

/** The copy is shallow: letters are large and events frequent. */
function copyLetter(event: RedriveEvent): RedriveEvent {
  if (!('letter' in event) || !event.letter) return event
  const { letter } = event
  return { ...event, letter: { ...letter, payload: { ...letter.payload } } }
}
