import type { QueryClient } from '@tanstack/react-query'
import { createClient, type FeedEvent } from 'redrive/api'
import { api, isSignedOut } from './client.ts'

/** `connecting`: not yet connected. `lost`: the page shows what was true at `since`. */
export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'lost'; since: number }

type LettersEvent = Extract<FeedEvent, { type: 'letters' }>
type Listener<T> = (value: T) => void

/** What an event makes outdated is read again at most this often. */
const refreshMs = 2000
const recentLetters = 50

/**
 * The live feed of the server. It says which answers are outdated, and passes new letters on to the
 * pages that announce them.
 */
export class Feed {
  #connection: Connection = { state: 'connecting' }
  #onConnection = new Set<() => void>()
  #onLetters = new Set<Listener<LettersEvent>>()
  #outdated = new Set<string>()
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #queryClient: QueryClient

  constructor(queryClient: QueryClient) {
    this.#queryClient = queryClient
  }

  get connection(): Connection {
    return this.#connection
  }

  onConnection = (listener: () => void): (() => void) => subscribe(this.#onConnection, listener)

  onLetters = (listener: Listener<LettersEvent>): (() => void) =>
    subscribe(this.#onLetters, listener)

  /** Reads events until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const client = createClient({ url: '', fetch: (input, init) => this.#connect(input, init) })
    for (;;) {
      try {
        for await (const event of client.watchEvents({}, { signal })) this.#take(event)
        return
      } catch (error) {
        if (signal.aborted || isSignedOut(error)) return
        this.#lose()
        await pause(signal)
        if (signal.aborted) return
      }
    }
  }

  /** The stream calls this for each connection, so that a second call means that one was lost. */
  async #connect(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    if (this.#connection.state === 'live') this.#lose()
    const response = await fetch(input, init)
    if (!response.ok) return response
    const before = this.#connection.state
    this.#set({ state: 'live' })
    if (before === 'lost') void this.#queryClient.invalidateQueries()
    if (before === 'connecting') void this.#announceRecent()
    return response
  }

  /** Letters that came after a page read its list, and before the feed was connected. */
  async #announceRecent(): Promise<void> {
    try {
      const { items } = await api.listLetters({ limit: recentLetters })
      this.#take({ type: 'letters', items: items.toReversed() })
    } catch {
      // The feed announces later letters all the same.
    }
  }

  #lose(): void {
    if (this.#connection.state !== 'lost') this.#set({ state: 'lost', since: Date.now() })
  }

  #set(connection: Connection): void {
    this.#connection = connection
    for (const listener of this.#onConnection) listener()
  }

  #take(event: FeedEvent): void {
    switch (event.type) {
      case 'letters':
        for (const listener of this.#onLetters) listener(event)
        return this.#refresh('groups', 'series')
      case 'counts':
        return this.#refresh('counts', 'queues', 'letter')
      case 'group':
        return this.#refresh('groups')
      case 'bulk-action':
        return this.#refresh('bulk-actions')
      case 'alert':
        return this.#refresh('alerts')
      case 'reset':
        void this.#queryClient.invalidateQueries()
        return
      default:
        return
    }
  }

  #refresh(...subjects: string[]): void {
    for (const subject of subjects) this.#outdated.add(subject)
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const outdated = this.#outdated
      this.#outdated = new Set()
      for (const subject of outdated)
        void this.#queryClient.invalidateQueries({ queryKey: keyOf(subject) })
    }, refreshMs)
  }
}

/** A list of letters is read again when the reader asks for it; single letters at once. */
function keyOf(subject: string): string[] {
  return subject === 'letter' ? ['letters', 'one'] : [subject]
}

function subscribe<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, refreshMs)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })
}
