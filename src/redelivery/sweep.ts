import type { Retention } from '../policy/retention.ts'
import type { Clock } from '../clock/clock.ts'
import { forgetOrphanedEdits } from '../admin/edits.ts'
import type { LetterSummary, Reason } from '../letter/letter.ts'
import { archive, park, wake, withChange, type Change, type Mover } from '../letter/moves.ts'
import { toMs, toTimestamp } from '../letter/time.ts'
import type { ObserverHub } from '../observer.ts'
import type { Store } from '../store.ts'
import { isOrphan, waitingForThemselves } from './hopeless.ts'
import { Roster } from './roster.ts'
import { announce } from './settle.ts'

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

/** Letters that one sweep moves at the most, per kind of work; the rest waits for the next, which then comes soon. */
const sweepLimit = 500
/** Long enough for others to have their turn, and short enough that more can go than come. */
const catchUpMs = 100
/** Letters that are looked at to see whether some wait for each other: a longer circle is not noticed. */
const maxAhead = 2000
/** How often the store is asked for that. In a long row each answer names only the next one, and the sweep has other things to do. */
const maxStepsAhead = 100
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
  #leaving = Promise.resolve()
  /** Whether the last sweep moved as many as it may, so that there are probably more. */
  #behind = false
  /** What each living worker can run, as of the last sweep. */
  #living: ReadonlySet<string>[] = []
  /** Where the next look at those that wait for others goes on. */
  #waitingFrom: string | undefined
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

  /** Waits for the sweep under way, and takes this worker off the roster. Safe twice: all calls wait for the same end. */
  stop(): Promise<void> {
    if (this.#stopped) return this.#leaving
    this.#stopped = true
    this.#cancel?.()
    this.#leaving = this.#leave()
    return this.#leaving
  }

  async #leave(): Promise<void> {
    const { store, worker } = this.#options
    await this.#sweeping
    // It may have been started again meanwhile.
    if (this.#stopped) await store.records.remove('worker', worker).catch(() => false)
  }

  /** How many living workers run any of these queues. At least this one, which may not have swept yet. */
  workersFor(queues: readonly string[]): number {
    const others = this.#living.filter((handled) => queues.some((queue) => handled.has(queue)))
    return Math.max(1, others.length)
  }

  #run(): void {
    this.#sweeping = this.sweep()
      .catch((error: unknown) => this.#options.hub.emit({ type: 'error', during: 'sweep', error }))
      .finally(() => {
        this.#sweeping = undefined
        if (this.#stopped) return
        const { clock, sweepMs } = this.#options
        const pauseMs = this.#behind ? Math.min(catchUpMs, sweepMs) : sweepMs
        this.#cancel = clock.timer(pauseMs, () => this.#run())
      })
  }

  /** One round of housekeeping. */
  async sweep(): Promise<void> {
    const nowMs = this.#options.clock.now()
    this.#behind = false
    const handled = await this.#checkIn(nowMs)
    const { archived, removed } = await this.#retain(nowMs)
    let parked = await this.#expire(nowMs)
    parked += await this.#parkUnhandled(handled, nowMs)
    parked += await this.#parkHopeless(nowMs)
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
   * A letter that waits for one that was put away or removed before it was resolved would wait for ever, and so would letters that wait for each other.
   * Who still waits is asked once more at the end, since a dependency may be resolved and go while we look. Each sweep looks at
   * the next of those that wait, and begins anew after the last.
   */
  async #parkHopeless(nowMs: number): Promise<number> {
    const { store } = this.#options
    const waiting = { state: 'pending', dependent: true, limit: sweepLimit } as const
    const from = this.#waitingFrom
    const { items, cursor } = await store.find(from ? { ...waiting, cursor: from } : waiting)
    const there = await this.#ahead(items)
    const still = async (hopeless: LetterSummary[]): Promise<LetterSummary[]> => {
      const ids = hopeless.map(({ id }) => id)
      return ids.length > 0 ? (await store.find({ ...waiting, ids })).items : []
    }
    const round = waitingForThemselves(there)
    const circle = await still(items.filter(({ id }) => round.has(id)))
    const orphans = await still(items.filter((letter) => isOrphan(letter, there)))
    const goneBy = this.#mover(nowMs, 'a letter that it depends on was archived or removed')
    const roundBy = this.#mover(
      nowMs,
      'letters that depend on each other wait for ever: resolve one',
    )
    const parked =
      (await this.#park(orphans, goneBy, 'dependency-failed')) +
      (await this.#park(circle, roundBy, 'dependency-failed'))
    this.#waitingFrom = cursor
    return parked
  }

  /** Those that letters wait for, and those that these wait for in their turn. */
  async #ahead(letters: readonly LetterSummary[]): Promise<Map<string, LetterSummary>> {
    const there = new Map(letters.map((letter) => [letter.id, letter]))
    const asked = new Set<string>()
    let next = letters
    for (let step = 0; next.length > 0 && asked.size < maxAhead && step < maxStepsAhead; step++) {
      const wanted = next.flatMap(({ dependsOn = [] }) => dependsOn)
      const left = new Set(wanted.filter((id) => !there.has(id) && !asked.has(id)))
      for (const id of left) asked.add(id)
      next = await this.#summaries([...left])
      for (const letter of next) there.set(letter.id, letter)
    }
    return there
  }

  async #forgetEdits(): Promise<void> {
    const { store, clock } = this.#options
    if (clock.mono() - this.#editsLookedMs < editsEveryMs) return
    this.#editsFrom = await forgetOrphanedEdits(store, this.#editsFrom)
    this.#editsLookedMs = clock.mono()
  }

  /** Of these letters those that are there, without their payloads. */
  async #summaries(ids: readonly string[]): Promise<LetterSummary[]> {
    const found: LetterSummary[] = []
    for (let start = 0; start < ids.length; start += sweepLimit) {
      const some = ids.slice(start, start + sweepLimit)
      found.push(...(await this.#options.store.find({ ids: some, limit: sweepLimit })).items)
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
    this.#count(listed.length, parked)
    return parked
  }

  async #write(changes: Change[]): Promise<number> {
    const { length } = await this.#written(changes)
    this.#count(changes.length, length)
    return length
  }

  /** Where nothing was written, others were first, or a search is behind: to hurry would not help. */
  #count(listed: number, written: number): void {
    if (listed >= sweepLimit && written > 0) this.#behind = true
  }

  /** Those that were written: the others came too late. */
  async #written(changes: Change[]): Promise<Change[]> {
    if (changes.length === 0) return []
    const results = await this.#options.store.apply(changes)
    return changes.filter((_, index) => results[index] === 'written')
  }
}
