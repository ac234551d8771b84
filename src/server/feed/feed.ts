import type { Clock } from '../../clock/clock.ts'
import { Repeater } from '../../clock/repeater.ts'
import { RedriveError } from '../../errors.ts'
import type { DeadLetterQueue } from '../../queue/queue.ts'
import { Activity } from './activity.ts'
import { GroupChanges } from './group-changes.ts'
import { heartbeat, streamStart } from './event-text.ts'
import { ScopeFeed, type FeedFilter } from './scope-feed.ts'
import { Subscriber, type SubscriberOptions } from './subscriber.ts'

/** Pause between two reads of the store. */
const readMs = 1000
/** Pause between something that this process did and the read that finds it. */
const ownReadMs = 100
/** Reads take at most a fifth of the time, however slow the store is. */
const pauseShare = 4
const heartbeatMs = 15_000
/** How often it is checked whether clients still have access. */
const accessMs = 5000
const checksAtOnce = 50
const maxStreams = 1000
/** Each filter costs some reads of the store every second. */
const maxFilters = 100

export interface FeedOptions {
  dlq: DeadLetterQueue
  clock: Clock
  /** Reports the first error of a series: the store is unreachable, for example. */
  onError: (error: unknown) => void
}

export interface SubscribeOptions extends SubscriberOptions {
  filter: FeedFilter
  /** Whether the client may still see what it sees. Rejects if that is unknown at present. */
  isStillAllowed: () => Promise<boolean>
  /** Aborts when the client has gone. */
  signal: AbortSignal
}

/**
 * The live feed. While clients are connected, it reads the store about every second, and sends what
 * has changed. Changes by other processes are found in the same way as those by this one, which
 * only cause an earlier read. Nothing is read while nobody is connected.
 */
export class Feed {
  readonly #options: FeedOptions
  readonly #activity: Activity
  readonly #groups: GroupChanges
  readonly #scopes = new Map<string, ScopeFeed>()
  readonly #checks = new Map<Subscriber, () => Promise<boolean>>()
  readonly #reads: Repeater
  readonly #accessChecks: Repeater
  #readTookMs = 0
  #hasFailed = false
  #isClosed = false
  #cancelOwnRead: (() => void) | undefined
  #cancelHeartbeat: (() => void) | undefined
  #stopListening: (() => void) | undefined

  constructor(options: FeedOptions) {
    const { dlq, clock } = options
    this.#options = options
    this.#activity = new Activity(dlq)
    this.#groups = new GroupChanges(dlq, clock)
    this.#reads = new Repeater({ clock, round: () => this.#readRound() })
    this.#accessChecks = new Repeater({ clock, round: () => this.#checkAccess() })
  }

  /** The text of a stream, until the client goes, loses its access, or the feed closes. */
  subscribe({
    filter,
    isStillAllowed,
    signal,
    ...options
  }: SubscribeOptions): AsyncIterable<string> {
    if (this.#isClosed) throw new RedriveError('SERVER_STOPPING', 'the server is stopping')
    const key = JSON.stringify([filter.queue?.toSorted(), filter.tenant])
    const isFull = this.#checks.size >= maxStreams
    if (isFull || (!this.#scopes.has(key) && this.#scopes.size >= maxFilters))
      throw new RedriveError(
        'TOO_MANY_REQUESTS',
        `the server has ${isFull ? `${maxStreams} streams` : `streams with ${maxFilters} different filters`}, which is its limit: try again later`,
      )
    const { dlq, clock } = this.#options
    const scope = this.#scopes.get(key) ?? new ScopeFeed(dlq, filter, this.#activity, clock)
    const subscriber = new Subscriber(options)
    this.#scopes.set(key, scope)
    this.#checks.set(subscriber, isStillAllowed)
    scope.join(subscriber)
    subscriber.push(streamStart)
    const leave = (): void => this.#leave(subscriber, scope, key)
    this.#start()
    if (signal.aborted) leave()
    // A response that is not read any more never reaches the end of its chunks.
    signal.addEventListener('abort', leave, { once: true })
    return chunksOf(subscriber, leave)
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const subscriber of this.#checks.keys()) subscriber.end()
    await Promise.all([this.#reads.stop(), this.#accessChecks.stop()])
    this.#stopTimers()
  }

  /** May be called twice. */
  #leave(subscriber: Subscriber, scope: ScopeFeed, key: string): void {
    subscriber.end()
    scope.leave(subscriber)
    this.#checks.delete(subscriber)
    if (scope.subscribers.length === 0 && this.#scopes.get(key) === scope) this.#scopes.delete(key)
    if (this.#checks.size === 0) this.#stop()
  }

  #start(): void {
    this.#reads.start()
    this.#accessChecks.start()
    this.#reads.wake()
    this.#stopListening ??= this.#options.dlq.on('*', ({ type }) => {
      // An error of the store must not cause the next read of the store.
      if (type !== 'error') this.#readSoon()
    })
    this.#cancelHeartbeat ??= this.#options.clock.timer(heartbeatMs, () => this.#sendHeartbeat())
  }

  #stop(): void {
    void this.#reads.stop()
    void this.#accessChecks.stop()
    this.#stopTimers()
  }

  #stopTimers(): void {
    this.#stopListening?.()
    this.#cancelOwnRead?.()
    this.#cancelHeartbeat?.()
    this.#stopListening = undefined
    this.#cancelOwnRead = undefined
    this.#cancelHeartbeat = undefined
  }

  /** This process has changed something. */
  #readSoon(): void {
    const pauseMs = Math.max(ownReadMs, pauseShare * this.#readTookMs)
    this.#cancelOwnRead ??= this.#options.clock.timer(pauseMs, () => {
      this.#cancelOwnRead = undefined
      this.#reads.wake()
    })
  }

  #sendHeartbeat(): void {
    for (const subscriber of this.#checks.keys()) subscriber.push(heartbeat)
    this.#cancelHeartbeat = this.#options.clock.timer(heartbeatMs, () => this.#sendHeartbeat())
  }

  async #readRound(): Promise<number> {
    const { clock, onError } = this.#options
    const startedMs = clock.mono()
    try {
      await this.#read()
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) onError(error)
      this.#hasFailed = true
    }
    this.#readTookMs = clock.mono() - startedMs
    return Math.max(readMs, pauseShare * this.#readTookMs)
  }

  async #read(): Promise<void> {
    const happenings = [...(await this.#activity.read()), ...(await this.#groups.read())]
    for (const scope of this.#scopes.values()) scope.publish(happenings)
    for (const scope of this.#scopes.values()) await scope.read()
  }

  async #checkAccess(): Promise<number> {
    const all = [...this.#checks]
    for (let from = 0; from < all.length; from += checksAtOnce)
      await Promise.all(
        all.slice(from, from + checksAtOnce).map(async ([subscriber, isStillAllowed]) => {
          // Unknown while the store is unreachable, and then nothing is sent either.
          if (!(await isStillAllowed().catch(() => true))) subscriber.end()
        }),
      )
    return accessMs
  }
}

async function* chunksOf(subscriber: Subscriber, leave: () => void): AsyncGenerator<string> {
  try {
    yield* subscriber.chunks()
  } finally {
    leave()
  }
}
