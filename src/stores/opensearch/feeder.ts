import type { Clock } from '../../clock/clock.ts'
import { Backoff } from '../../clock/retry.ts'
import { states } from '../../letter/letter.ts'
import { toTimestamp, type Timestamp } from '../../letter/time.ts'
import type { Store } from '../../store.ts'
import type { SearchIndex } from './search-index.ts'

/** Progress of the full comparison, stored in the records of the store. */
interface Progress {
  cursor?: string
  /** The last compared id. */
  after?: string
  completedAt?: Timestamp
}

export interface FeederStatus {
  /** Changed letters that are not in the index yet. */
  waiting: number
  /** When the last full comparison completed. */
  completedAt?: Timestamp
  /** Why the index cannot be fed at present. */
  problem?: string
}

const recordKind = 'search-index'
const maxChanged = 10_000
const batchSize = 200
const pageSize = 500
const failureDelay = { firstMs: 1000, maxMs: 60_000 }

/**
 * Feeds an index from a store, asynchronously and at least once. Changes of this process are fed
 * immediately. A full comparison finds changes that were lost because a process died or the index
 * was unreachable. It runs at the start, periodically, and whenever it is unknown what changed.
 */
export class Feeder {
  readonly #store: Store
  readonly #index: SearchIndex
  readonly #clock: Clock
  readonly #passMs: number
  /** Ids of changed letters that are not fed yet. */
  readonly #changed = new Set<string>()
  #comparisonRequested = true
  /** Progress of the comparison. Undefined until it was read from the records. */
  #progress: Progress | undefined
  #completedAt: Timestamp | undefined
  #state: 'new' | 'started' | 'stopping' = 'new'
  #indexIsOpen = false
  /** The run in progress. */
  #running: Promise<void> | undefined
  #problem: string | undefined
  readonly #backoff: Backoff
  /** Cancels the delay after a failure. Undefined if there is no delay. */
  #cancelDelay: (() => void) | undefined
  /** Callers of `caughtUp`. */
  #waiters: (() => void)[] = []
  /** Cancels the next scheduled comparison. */
  #cancelNextComparison: (() => void) | undefined
  /** Whether the current comparison was begun by an earlier process. */
  #resumed = false
  /** Ids of letters that the index rejects. */
  readonly #rejected = new Set<string>()

  constructor(store: Store, index: SearchIndex, clock: Clock, passMs: number) {
    this.#store = store
    this.#index = index
    this.#clock = clock
    this.#backoff = new Backoff(clock, failureDelay)
    this.#passMs = passMs
  }

  start(): void {
    if (this.#state === 'new') this.#state = 'started'
    this.#wake()
  }

  /** Queues changed letters to be fed. Above a limit, requests a full comparison instead. */
  queueChanges(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#changed.size < maxChanged) this.#changed.add(id)
      else this.#comparisonRequested = true
    }
    this.#wake()
  }

  /** Requests a full comparison, since it is unknown what changed. */
  requestComparison(): void {
    this.#comparisonRequested = true
    this.#wake()
  }

  status(): FeederStatus {
    const [rejected] = this.#rejected
    const problem =
      this.#problem ??
      (rejected &&
        `the index rejects ${this.#rejected.size} letters, such as ${rejected}: correct or remove them`)
    return {
      waiting: this.#changed.size,
      ...this.#completion(),
      ...(problem === undefined ? {} : { problem }),
    }
  }

  /** Resolves once the index has everything that the store had at the time of the call. */
  caughtUp(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve)
      this.#wake()
    })
  }

  /** Feeds the known changes, unless the index is unreachable, and stops. */
  async stop(): Promise<void> {
    this.#state = 'stopping'
    this.#cancelDelay?.()
    this.#cancelNextComparison?.()
    await this.#running
    for (const resolve of this.#waiters.splice(0)) resolve()
  }

  #wake(): void {
    const hasWork = this.#changed.size > 0 || this.#comparisonRequested || this.#waiters.length > 0
    if (this.#state !== 'started' || this.#cancelDelay || !hasWork) return
    this.#running ??= this.#feedAll().finally(() => {
      this.#running = undefined
      this.#wake()
    })
  }

  async #feedAll(): Promise<void> {
    try {
      if (!this.#indexIsOpen) await this.#index.open()
      this.#indexIsOpen = true
      for (;;) {
        if (this.#changed.size > 0) await this.#feedChanged()
        else if (this.#comparisonRequested && this.#state === 'started') await this.#comparePage()
        else break
      }
      this.#problem = undefined
      this.#backoff.reset()
      for (const resolve of this.#waiters.splice(0)) resolve()
      this.#scheduleComparison()
    } catch (error) {
      this.#problem = (error as Error).message
      // The index may have been deleted: open it again, which recreates it.
      this.#indexIsOpen = false
      this.#startDelay()
    }
  }

  #scheduleComparison(): void {
    this.#cancelNextComparison?.()
    if (this.#state === 'started')
      this.#cancelNextComparison = this.#clock.timer(this.#passMs, () => this.requestComparison())
  }

  /** Nothing is fed during the delay. */
  #startDelay(): void {
    if (this.#state !== 'started') return
    this.#cancelDelay = this.#clock.timer(this.#backoff.nextMs(), () => {
      this.#cancelDelay = undefined
      this.#wake()
    })
  }

  async #feedChanged(): Promise<void> {
    const ids = [...this.#changed].slice(0, batchSize)
    for (const id of ids) this.#changed.delete(id)
    try {
      await this.#feed(ids)
    } catch (error) {
      for (const id of ids) this.#changed.add(id)
      throw error
    }
  }

  async #feed(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const letters = await this.#store.get(ids)
    for (const id of ids) this.#rejected.delete(id)
    for (const id of await this.#index.feed(letters)) this.#rejected.add(id)
    const existing = new Set(letters.map(({ id }) => id))
    await this.#index.drop(ids.filter((id) => !existing.has(id)))
  }

  /** Compares one page, in the order of ids. The progress survives a restart. */
  async #comparePage(): Promise<void> {
    const { records } = this.#store
    const { cursor, after } = this.#progress ?? (await this.#readProgress())
    const page = await this.#store.find({
      state: [...states],
      order: 'oldest',
      limit: pageSize,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const last = page.cursor === undefined ? undefined : page.items.at(-1)!.id
    const indexed = await this.#index.versions(after, last)
    const stale = page.items.filter(({ id, version }) => indexed.get(id) !== version)
    const existing = new Set(page.items.map(({ id }) => id))
    await this.#feed([
      ...stale.map(({ id }) => id),
      ...[...indexed.keys()].filter((id) => !existing.has(id)),
    ])
    if (page.cursor !== undefined && last !== undefined) {
      this.#progress = { cursor: page.cursor, after: last, ...this.#completion() }
      await records.put(recordKind, this.#index.name, { ...this.#progress })
      return
    }
    // After the rest of a comparison of an earlier process, a whole comparison follows.
    this.#comparisonRequested = this.#resumed
    this.#resumed = false
    this.#completedAt = toTimestamp(this.#clock.now())
    this.#progress = {}
    await records.put(recordKind, this.#index.name, { ...this.#completion() })
  }

  async #readProgress(): Promise<Progress> {
    const record = await this.#store.records.get(recordKind, this.#index.name)
    const progress = (record?.value ?? {}) as Progress
    this.#completedAt ??= progress.completedAt
    this.#resumed = progress.cursor !== undefined
    return progress
  }

  #completion(): { completedAt?: Timestamp } {
    return this.#completedAt === undefined ? {} : { completedAt: this.#completedAt }
  }
}
