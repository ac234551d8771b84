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
const maxWaiting = 10_000
const maxFed = 200
const pageSize = 500
const failureDelay = { firstMs: 1000, maxMs: 60_000 }

/**
 * Feeds an index from the store of the letters, asynchronously and at least once. Changes of this
 * process are fed at once. Changes that were lost, with a process that died or an unreachable
 * index, are found by a full comparison: at the start, periodically, and whenever it is unknown
 * what changed.
 */
export class Feeder {
  readonly #truth: Store
  readonly #index: SearchIndex
  readonly #clock: Clock
  readonly #passMs: number
  readonly #changed = new Set<string>()
  #passWanted = true
  /** Undefined while no pass is in progress. */
  #pass: Progress | undefined
  #completedAt: Timestamp | undefined
  #state: 'new' | 'started' | 'ending' = 'new'
  #opened = false
  #working: Promise<void> | undefined
  #problem: string | undefined
  readonly #backoff: Backoff
  /** Ends the delay after a failure, if there is one. */
  #pause: (() => void) | undefined
  #waiters: (() => void)[] = []
  /** Cancels the next scheduled pass. */
  #nextPass: (() => void) | undefined
  /** Whether the current pass was resumed from an earlier process. */
  #resumed = false
  /** Letters that the index rejects, for any reason. */
  readonly #refused = new Set<string>()

  constructor(truth: Store, index: SearchIndex, clock: Clock, passMs: number) {
    this.#truth = truth
    this.#index = index
    this.#clock = clock
    this.#backoff = new Backoff(clock, failureDelay)
    this.#passMs = passMs
  }

  start(): void {
    if (this.#state === 'new') this.#state = 'started'
    this.#wake()
  }

  /** Records changed letters. Above a limit, only records that something changed. */
  note(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#changed.size < maxWaiting) this.#changed.add(id)
      else this.#passWanted = true
    }
    this.#wake()
  }

  /** Something changed, and it is unknown what. */
  noteAny(): void {
    this.#passWanted = true
    this.#wake()
  }

  status(): FeederStatus {
    const left = this.#refused.size
    const problem = this.#problem ?? (left > 0 ? `the index rejects ${left} letters` : undefined)
    return {
      waiting: this.#changed.size,
      ...this.#completed(),
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
  async end(): Promise<void> {
    this.#state = 'ending'
    this.#pause?.()
    this.#nextPass?.()
    await this.#working
    for (const resolve of this.#waiters.splice(0)) resolve()
  }

  #wake(): void {
    const hasWork = this.#changed.size > 0 || this.#passWanted || this.#waiters.length > 0
    if (this.#state !== 'started' || this.#pause || !hasWork) return
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
      this.#wake()
    })
  }

  async #work(): Promise<void> {
    try {
      if (!this.#opened) await this.#index.open()
      this.#opened = true
      for (;;) {
        if (this.#changed.size > 0) await this.#feedChanged()
        else if (this.#passWanted && this.#state === 'started') await this.#comparePage()
        else break
      }
      this.#problem = undefined
      this.#backoff.reset()
      for (const resolve of this.#waiters.splice(0)) resolve()
      this.#schedulePass()
    } catch (error) {
      this.#problem = (error as Error).message
      // The index may have been deleted, and is then recreated.
      this.#opened = false
      this.#startDelay()
    }
  }

  #schedulePass(): void {
    this.#nextPass?.()
    if (this.#state === 'started')
      this.#nextPass = this.#clock.timer(this.#passMs, () => this.noteAny())
  }

  /** Nothing is fed during the delay. */
  #startDelay(): void {
    if (this.#state !== 'started') return
    this.#pause = this.#clock.timer(this.#backoff.nextMs(), () => {
      this.#pause = undefined
      this.#wake()
    })
  }

  async #feedChanged(): Promise<void> {
    const ids = [...this.#changed].slice(0, maxFed)
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
    const letters = await this.#truth.get(ids)
    for (const id of ids) this.#refused.delete(id)
    for (const id of await this.#index.feed(letters)) this.#refused.add(id)
    const there = new Set(letters.map(({ id }) => id))
    await this.#index.drop(ids.filter((id) => !there.has(id)))
  }

  /** Compares one page, in the order of ids. The progress survives a restart. */
  async #comparePage(): Promise<void> {
    const { records } = this.#truth
    const resumed = this.#pass === undefined ? await this.#readProgress() : this.#pass
    const { cursor, after } = resumed
    const page = await this.#truth.find({
      state: [...states],
      order: 'oldest',
      limit: pageSize,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const last = page.cursor === undefined ? undefined : page.items.at(-1)!.id
    const known = await this.#index.versions(after, last)
    const wrong = page.items.filter(({ id, version }) => known.get(id) !== version)
    const here = new Set(page.items.map(({ id }) => id))
    await this.#feed([
      ...wrong.map(({ id }) => id),
      ...[...known.keys()].filter((id) => !here.has(id)),
    ])
    if (page.cursor !== undefined && last !== undefined) {
      this.#pass = { cursor: page.cursor, after: last, ...this.#completed() }
      await records.put(recordKind, this.#index.name, { ...this.#pass })
      return
    }
    // A resumed pass leaves the first part to the next one.
    this.#passWanted = this.#resumed
    this.#resumed = false
    this.#completedAt = toTimestamp(this.#clock.now())
    this.#pass = {}
    await records.put(recordKind, this.#index.name, { ...this.#completed() })
  }

  async #readProgress(): Promise<Progress> {
    const record = await this.#truth.records.get(recordKind, this.#index.name)
    const found = (record?.value ?? {}) as Progress
    this.#completedAt ??= found.completedAt
    this.#resumed = found.cursor !== undefined
    return found
  }

  #completed(): { completedAt?: Timestamp } {
    return this.#completedAt === undefined ? {} : { completedAt: this.#completedAt }
  }
}
