import type { FeedEvent } from '../../api/schemas/feed.ts'
import type { SummaryView } from '../../api/schemas/letter.ts'
import type { Scope } from '../../api/permissions.ts'
import type { Clock } from '../../clock/clock.ts'
import type { LetterSummary } from '../../letter/letter.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import type { Viewer } from '../viewer.ts'
import { mayReadContent, viewSummary } from '../view.ts'
import type { Activity, Happening } from './activity.ts'
import { QueueCounts } from './counts.ts'
import { toText } from './event-text.ts'
import { isPosition } from './letter-position.ts'
import { maxLetters, NewLetters } from './new-letters.ts'
import type { Subscriber } from './subscriber.ts'

/** Letters of one event, and the length of their text. */
const maxItems = 100
const maxItemsLength = 256 * 1024
/** Text of the letters that a client gets when it comes back. */
const maxCatchUpLength = 1024 * 1024

/** The part of the store that a stream is about. */
export interface FeedFilter {
  queue?: string[]
  tenant?: string
}

/** The feed of one filter, for all clients that have it. */
export class ScopeFeed {
  readonly #dlq: DeadLetterQueue
  readonly #filter: FeedFilter
  readonly #activity: Activity
  readonly #letters: NewLetters
  readonly #counts = new QueueCounts()
  readonly #subscribers = new Set<Subscriber>()
  /** Clients that have not got the current state yet. */
  readonly #joining = new Set<Subscriber>()

  constructor(dlq: DeadLetterQueue, filter: FeedFilter, activity: Activity, clock: Clock) {
    this.#dlq = dlq
    this.#filter = filter
    this.#activity = activity
    this.#letters = new NewLetters({ find: (query) => dlq.find(query), filter, clock })
  }

  get subscribers(): Subscriber[] {
    return [...this.#subscribers, ...this.#joining]
  }

  /** The client gets the current state with the next read, and then all changes. */
  join(subscriber: Subscriber): void {
    this.#joining.add(subscriber)
  }

  leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber)
    this.#joining.delete(subscriber)
  }

  /** Sends what is in the scope. */
  publish(happenings: readonly Happening[]): void {
    for (const { isIn, eventFor } of happenings) if (isIn(this.#scope)) this.#send(eventFor)
  }

  /**
   * Reads what has changed, and sends it. Everything that was read is sent before the next read, so
   * that an error loses nothing.
   */
  async read(): Promise<void> {
    const letters = await this.#letters.read()
    if (letters.length > 0)
      this.#send((caller) => lettersEvent(letters, caller), this.#letters.position)
    if (this.#hasCounts) {
      const changed = await this.#counts.read(this.#dlq.store, this.#filter)
      if (changed) this.#send(() => changed)
    }
    for (const subscriber of this.#joining) await this.#admit(subscriber)
  }

  get #scope(): Scope {
    const { queue, tenant } = this.#filter
    return {
      ...(queue === undefined ? {} : { queues: queue }),
      ...(tenant === undefined ? {} : { tenants: [tenant] }),
    }
  }

  /** Counts of a tenant are not maintained: they would be made by reading all of its letters. */
  get #hasCounts(): boolean {
    return this.#filter.tenant === undefined
  }

  /** Sends the letters that the client has missed, the current state, and from now on changes. */
  async #admit(subscriber: Subscriber): Promise<void> {
    const { caller, after } = subscriber
    const missed = after === undefined ? '' : await this.#missedSince(after, caller)
    // The client may have gone meanwhile.
    if (!this.#joining.delete(subscriber)) return
    subscriber.push(missed)
    if (this.#hasCounts) subscriber.push(toText(this.#counts.current()))
    for (const { isIn, eventFor } of this.#activity.current())
      if (isIn(this.#scope)) subscriber.push(toText(eventFor(caller)))
    subscriber.push(toText({ type: 'ready' }, this.#letters.position))
    this.#subscribers.add(subscriber)
  }

  async #missedSince(position: string, caller: Viewer): Promise<string> {
    if (!isPosition(position)) return resetText('the id of the last event is unknown')
    const letters = await this.#letters.since(position)
    const text = letters && missedText(letters, caller)
    return text ?? resetText(`more than ${maxLetters} letters or much text came meanwhile`)
  }

  /** What a client sees depends only on whether it may read content. */
  #send(eventFor: (caller: Viewer) => FeedEvent, id?: string): void {
    const rendered = new Map<boolean, string>()
    for (const subscriber of this.#subscribers) {
      const key = mayReadContent(subscriber.caller)
      const text = rendered.get(key) ?? toText(eventFor(subscriber.caller), id)
      rendered.set(key, text)
      subscriber.push(text)
    }
  }
}

function resetText(reason: string): string {
  return toText({ type: 'reset', reason })
}

/** Undefined: too long. */
function missedText(letters: readonly LetterSummary[], caller: Viewer): string | undefined {
  let text = ''
  for (let from = 0; from < letters.length; from += maxItems) {
    const some = letters.slice(from, from + maxItems)
    text += toText(lettersEvent(some, caller), some.at(-1)!.id)
    if (text.length > maxCatchUpLength) return undefined
  }
  return text
}

/** New letters, the newest of them if they are many. */
function lettersEvent(letters: readonly LetterSummary[], caller: Viewer): FeedEvent {
  const items: SummaryView[] = []
  let length = 0
  for (const letter of letters.slice(-maxItems).toReversed()) {
    const view = viewSummary(letter, caller)
    length += JSON.stringify(view).length
    if (length > maxItemsLength) break
    items.unshift(view)
  }
  const more = letters.length - items.length
  return { type: 'letters', items, ...(more > 0 ? { more } : {}) }
}
