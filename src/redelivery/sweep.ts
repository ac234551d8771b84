import type { Clock } from '../clock.ts'
import { forgetOrphanedEdits } from '../edits.ts'
import type { LetterSummary, Reason } from '../letter/letter.ts'
import { archive, park, wake, withChange, type Change, type Mover } from '../letter/moves.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'
import { Roster } from './roster.ts'
import { announce } from './settle.ts'

/** How long letters stay: the first from resolved or exhausted to the archive, the second from the archive to nowhere. */
export interface Retention {
  archiveAfterMs?: number
  removeAfterMs?: number
}

export interface SweepOptions {
  store: Store
  clock: Clock
  hub: ObserverHub
  worker: string
  sweepMs: number
  /** Queues that this process has handlers for. */
  queues: () => string[]
  retentionFor: (queue: string) => Retention | undefined
}

/** Letters that one sweep moves at the most, per kind of work; the rest waits for the next. */
const sweepLimit = 500
/** Whole letters that are in memory together. */
const wholePage = 20
/** Edits are as large as payloads, and seldom those of a letter that is gone: they are looked at less often than the rest. */
const editsEveryMs = 60_000
/** A letter that nobody can run is put aside once it has been due for so long. */
const unhandledMs = 1000

/**
 * Keeps house every `sweepMs`: archives and removes what is past its retention, parks what has expired, what
 * nobody can run and what waits for a letter that will never be resolved, and forgets what letters were that are gone. Any
 * number of processes may sweep the same store: each change is guarded by the version that was looked at, so two sweeps never
 * undo each other.
 */
export class Sweeper {
  readonly #options: SweepOptions
  readonly #roster: Roster
  #cancel: (() => void) | undefined
  #sweeping: Promise<void> | undefined
  #stopped = true
  /** What each living worker can run, as of the last sweep. */
  #living: ReadonlySet<string>[] = []
  /** Where the next look for orphans goes on. */
  #orphansFrom: string | undefined
  /** Where the next look for edits of letters that are gone goes on. */
  #editsFrom: string | undefined
  #editsLookedMs = -Infinity

  constructor(options: SweepOptions) {
    this.#options = options
    this.#roster = new Roster(options.sweepMs)
  }

  start(): void {
    if (!this.#stopped) return
    this.#stopped = false
    if (!this.#sweeping) this.#run()
  }

  /** Waits for the sweep under way. Safe twice. */
  async stop(): Promise<void> {
    if (this.#stopped) return this.#sweeping
    this.#stopped = true
    this.#cancel?.()
    await this.#sweeping
    await this.#options.store.records.remove('worker', this.#options.worker).catch(() => false)
  }

  /** How many living workers run any of these queues. At least this one, which may not have swept yet. */
  workersFor(queues: readonly string[]): number {
    const others = this.#living.filter((handled) => queues.some((queue) => handled.has(queue)))
    return Math.max(1, others.length)
  }

  #run(): void {
    this.#sweeping = this.sweep()
      .catch((error: unknown) =>
        this.#options.hub.emit({ type: 'trouble', during: 'sweep', error }),
      )
      .finally(() => {
        this.#sweeping = undefined
        if (this.#stopped) return
        this.#cancel = this.#options.clock.timer(this.#options.sweepMs, () => this.#run())
      })
  }

  /** One round of housekeeping. */
  async sweep(): Promise<void> {
    const nowMs = this.#options.clock.now()
    const handled = await this.#checkIn(nowMs)
    const { archived, removed } = await this.#retain(nowMs)
    let parked = await this.#expire(nowMs)
    parked += await this.#parkUnhandled(handled, nowMs)
    parked += await this.#parkOrphans(nowMs)
    await this.#wakeHandled(nowMs)
    await this.#forgetEdits()
    if (archived + removed + parked > 0)
      this.#options.hub.emit({ type: 'swept', archived, removed, parked })
  }

  /** Says that this worker lives and what it can run; learns the same of others, and forgets the silent. */
  async #checkIn(nowMs: number): Promise<Set<string>> {
    const { store, clock, worker, queues, sweepMs } = this.#options
    await store.records.put('worker', worker, {
      queues: queues(),
      seenAt: toTimestamp(nowMs),
      sweepMs,
    })
    const records = await store.records.list('worker', { limit: 1000 })
    const { living, gone } = this.#roster.look(records, clock.mono())
    for (const id of gone) await store.records.remove('worker', id)
    this.#living = living
    return new Set([...queues(), ...living.flatMap((theirs) => [...theirs])])
  }

  async #retain(nowMs: number): Promise<{ archived: number; removed: number }> {
    const { store, retentionFor } = this.#options
    let archived = 0
    let removed = 0
    for (const queue of (await store.tally('queue')).keys()) {
      const { archiveAfterMs } = retentionFor(queue) ?? {}
      if (archiveAfterMs !== undefined) {
        const settledBefore = toTimestamp(nowMs - archiveAfterMs)
        const { items } = await store.find({
          queue,
          state: ['resolved', 'exhausted'],
          settledBefore,
          order: 'settled',
          limit: sweepLimit,
        })
        const by = this.#mover(nowMs, 'past its retention')
        archived += await this.#write(items.map((letter) => archive(letter, by)))
      }
    }
    for (const queue of (await store.tally('queue', { state: 'archived' })).keys()) {
      const { removeAfterMs } = retentionFor(queue) ?? {}
      if (removeAfterMs !== undefined)
        removed += await store.remove({
          queue,
          state: 'archived',
          settledBefore: toTimestamp(nowMs - removeAfterMs),
        })
    }
    return { archived, removed }
  }

  async #expire(nowMs: number): Promise<number> {
    const { items } = await this.#options.store.find({
      state: 'pending',
      expiresBefore: toTimestamp(nowMs),
      limit: sweepLimit,
    })
    const by = this.#mover(nowMs, 'expired before it could be run')
    return this.#park(items, by, 'expired')
  }

  async #parkUnhandled(handled: ReadonlySet<string>, nowMs: number): Promise<number> {
    const { store } = this.#options
    const waiting = await store.tally('queue', { state: 'pending' })
    const queue = [...waiting.keys()].filter((name) => !handled.has(name))
    if (queue.length === 0) return 0
    const { items } = await store.find({ queue, state: 'pending', order: 'due', limit: sweepLimit })
    const due = items.filter(
      (letter) => letter.retryAt !== undefined && toMs(letter.retryAt) <= nowMs - unhandledMs,
    )
    const by = this.#mover(nowMs, 'no worker has a handler for this queue')
    return this.#park(due, by, 'no-handler')
  }

  /** What was parked for want of a handler goes on as soon as there is one. */
  async #wakeHandled(nowMs: number): Promise<void> {
    const { store, queues } = this.#options
    const queue = queues()
    if (queue.length === 0) return
    const { items } = await store.find({
      queue,
      state: 'parked',
      reason: 'no-handler',
      limit: sweepLimit,
    })
    const by = this.#mover(nowMs, 'a handler for this queue is here now')
    await this.#write(items.map((letter) => wake(letter, by)))
  }

  /**
   * A letter that waits for one that was put away or removed before it was resolved would wait for ever. One that is
   * gone may have been resolved before; so as long as another is still on its way, that one is waited for. Who still waits is
   * asked once more at the end, since a dependency may be resolved and go while we look. Each sweep looks at the next of those
   * that wait, and begins anew after the last.
   */
  async #parkOrphans(nowMs: number): Promise<number> {
    const { store } = this.#options
    const waiting = { state: 'pending', dependent: true, limit: sweepLimit } as const
    const from = this.#orphansFrom
    const { items, cursor } = await store.find(from ? { ...waiting, cursor: from } : waiting)
    const there = await this.#summaries(items.flatMap((letter) => letter.dependsOn ?? []))
    const hopeless = items.filter(({ dependsOn = [] }) => {
      const known = dependsOn.map((id) => there.get(id)).filter((letter) => letter !== undefined)
      const unresolved = known.filter(({ state }) => state !== 'resolved')
      const shelved = unresolved.filter(({ state }) => state === 'archived')
      return (
        shelved.some(({ archivedFrom }) => archivedFrom !== 'resolved') ||
        unresolved.length === shelved.length
      )
    })
    const ids = hopeless.map((letter) => letter.id)
    const orphans = ids.length > 0 ? (await store.find({ ...waiting, ids })).items : []
    const by = this.#mover(nowMs, 'a letter that it depends on was archived or removed')
    const parked = await this.#park(orphans, by, 'dependency-failed')
    this.#orphansFrom = cursor
    return parked
  }

  async #forgetEdits(): Promise<void> {
    const { store, clock } = this.#options
    if (clock.mono() - this.#editsLookedMs < editsEveryMs) return
    this.#editsFrom = await forgetOrphanedEdits(store, this.#editsFrom)
    this.#editsLookedMs = clock.mono()
  }

  /** The letters that are there, without their payloads. */
  async #summaries(wanted: readonly string[]): Promise<Map<string, LetterSummary>> {
    const left = [...new Set(wanted)]
    const found = new Map<string, LetterSummary>()
    while (left.length > 0) {
      const ids = left.splice(-sweepLimit)
      const { items } = await this.#options.store.find({ ids, limit: sweepLimit })
      for (const letter of items) found.set(letter.id, letter)
    }
    return found
  }

  #mover(nowMs: number, note: string): Mover {
    return { at: toTimestamp(nowMs), actor: 'sweep', note, guard: 'version' }
  }

  /** Somebody has to act on these, so each is told of, whole. A change that is written was made to the letter as it was read. */
  async #park(listed: readonly LetterSummary[], by: Mover, reason: Reason): Promise<number> {
    const { store, hub } = this.#options
    let parked = 0
    for (let start = 0; start < listed.length; start += wholePage) {
      const changes = listed
        .slice(start, start + wholePage)
        .map((letter) => park(letter, by, { reason }))
      const letters = await store.get(changes.map(({ id }) => id))
      const whole = new Map(letters.map((letter) => [letter.id, letter]))
      for (const change of await this.#written(changes)) {
        parked++
        const letter = whole.get(change.id)
        if (letter) announce(withChange(letter, change), change, hub)
      }
    }
    return parked
  }

  async #write(changes: Change[]): Promise<number> {
    return (await this.#written(changes)).length
  }

  /** Those that were written: the others came too late. */
  async #written(changes: Change[]): Promise<Change[]> {
    if (changes.length === 0) return []
    const results = await this.#options.store.apply(changes)
    return changes.filter((_, index) => results[index] === 'written')
  }
}
