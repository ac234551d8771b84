import type { Clock } from '../clock/clock.ts'
import { endsWithin } from '../clock/ends-within.ts'
import type { App, DeadLetter } from '../letter/letter.ts'
import type { Change } from '../letter/moves.ts'
import { toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import { afterFailures, type GroupState } from './life-cycle.ts'
import { Merges } from './merges.ts'
import type { GroupRecords } from './records.ts'
import { mergeSeen, PendingGroup, type Seen, type TrackedFailure } from './seen.ts'

/** Time between the first failure and the write. */
export const flushMs = 5000
/** Pause after a write that failed. */
const retryMs = 30_000
/** A write is followed by a pause of so many times its duration, to bound the load. */
const pauseFactor = 10
/** Groups that are written at once. */
const groupsAtOnce = 50
/** Groups in memory. Failures of further groups are not tracked until the next write. */
const maxGroups = 10_000
/** Maximum time that a stop waits for the last write. */
const stopMs = 5000

export interface GroupTrackerOptions {
  records: GroupRecords
  clock: Clock
  hub: ObserverHub
  /** The program that runs letters. */
  app: App
}

/**
 * Learns of every failure that this process captures or that a retry in it has, and writes what it
 * learns about their groups every few seconds, by compare-and-set, since other processes do the
 * same. Nothing waits for it: after a crash, the trends lack the last seconds. The counts of
 * letters are those of the store.
 */
export class GroupTracker {
  readonly #options: GroupTrackerOptions
  /** Failures since the last write began. */
  #fresh = new Map<string, PendingGroup>()
  /** Failures that are being written, or whose write failed. */
  readonly #unwritten = new Map<string, Seen>()
  #cancelTimer: (() => void) | undefined
  #flushing: Promise<void> | undefined

  constructor(options: GroupTrackerOptions) {
    this.#options = options
  }

  /** Adds the failure of a captured letter. Costs the caller no store call. */
  add(failure: TrackedFailure): void {
    const { fingerprint } = failure
    const group = this.#fresh.get(fingerprint)
    if (group) return group.add(failure)
    if (this.#fresh.size >= maxGroups) return
    const added = new PendingGroup()
    this.#fresh.set(fingerprint, added)
    added.add(failure)
    if (!this.#cancelTimer && !this.#flushing) this.#wait(flushMs)
  }

  /**
   * Adds the failure of a later run, which may have another fingerprint and another version of the
   * application than the capture. Costs the caller no store call.
   */
  addRun({ id, queue, tenant }: DeadLetter, { set, entry }: Change): void {
    const { app } = this.#options
    const { failure, category, fingerprint } = set
    if (!failure || !category || !fingerprint) return
    this.add({ id, queue, tenant, category, failure, fingerprint, app, deadLetteredAt: entry.at })
  }

  /** What this process knows about a fingerprint and has not written yet. */
  pending(fingerprint: string): Seen | undefined {
    const fresh = this.#fresh.get(fingerprint)?.seen()
    const unwritten = this.#unwritten.get(fingerprint)
    return fresh && unwritten ? mergeSeen(unwritten, fresh) : (fresh ?? unwritten)
  }

  /** All that is pending. A fingerprint may come twice. */
  *allPending(): Generator<[string, Seen]> {
    yield* this.#unwritten
    for (const [fingerprint, group] of this.#fresh) yield [fingerprint, group.seen()]
  }

  /** Writes everything now. Never rejects: what could not be written is written later. */
  async flush(): Promise<void> {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    // Two writes at once would count the same failures twice.
    while (this.#flushing) await this.#flushing
    this.#flushing = this.#write().finally(() => (this.#flushing = undefined))
    return this.#flushing
  }

  /** Writes everything, and waits for it for a bounded time. */
  async stop(): Promise<void> {
    if (this.#flushing || this.#fresh.size > 0 || this.#unwritten.size > 0)
      await endsWithin(this.#options.clock, this.flush(), stopMs)
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #wait(ms: number): void {
    const fire = (): void => void this.flush()
    this.#cancelTimer = this.#options.clock.timer(ms, fire, { background: true })
  }

  async #write(): Promise<void> {
    const { clock, hub } = this.#options
    const startMs = clock.mono()
    for (const [fingerprint, group] of this.#fresh) {
      const earlier = this.#unwritten.get(fingerprint)
      if (earlier || this.#unwritten.size < maxGroups)
        this.#unwritten.set(fingerprint, earlier ? mergeSeen(earlier, group.seen()) : group.seen())
    }
    this.#fresh = new Map()
    let pauseMs = flushMs
    try {
      await this.#writeGroups()
      pauseMs = Math.max(flushMs, pauseFactor * (clock.mono() - startMs))
    } catch (error) {
      pauseMs = retryMs
      hub.emit({ type: 'error', during: 'tracking groups', error })
    }
    if (this.#fresh.size > 0 || this.#unwritten.size > 0) this.#wait(pauseMs)
  }

  async #writeGroups(): Promise<void> {
    const all = [...this.#unwritten]
    if (all.length === 0) return
    const states = await this.#options.records.states()
    const merges = new Merges(states)
    for (let start = 0; start < all.length; start += groupsAtOnce) {
      const some = all.slice(start, start + groupsAtOnce)
      const results = await Promise.allSettled(
        some.map(([fingerprint, fresh]) => this.#writeGroup(fingerprint, fresh, states, merges)),
      )
      const failed = results.find((result) => result.status === 'rejected')
      if (failed) throw failed.reason
    }
  }

  async #writeGroup(
    fingerprint: string,
    fresh: Seen,
    states: ReadonlyMap<string, GroupState>,
    merges: Merges,
  ): Promise<void> {
    const { records } = this.#options
    const root = merges.rootOf(fingerprint)
    const status = states.get(root)?.status
    // Before the failures are written: if it fails, it is repeated with them.
    if (status === 'ignored' || status === 'resolved')
      await this.#applyLifeCycle(root, merges.membersOf(root), fresh)
    await records.addSeen(fingerprint, fresh)
    this.#unwritten.delete(fingerprint)
  }

  /** Two processes may see the change; the compare-and-set makes only one of them report it. */
  async #applyLifeCycle(root: string, members: readonly string[], fresh: Seen): Promise<void> {
    const { records, clock, hub } = this.#options
    const seen = await records.seen(members)
    const all = [...seen.values()].reduce((sum, one) => mergeSeen(one, sum), fresh)
    const at = toTimestamp(clock.now())
    const { before, after } = await records.update(root, (state) =>
      afterFailures(state, fresh, all, at),
    )
    const change = after.history.at(-1)
    if (!change || after.status === before.status) return
    hub.emit({ type: 'group', fingerprint: root, title: all.newest.title, ...change })
  }
}
