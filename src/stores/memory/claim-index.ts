import { isActive, isDone, priorities, type DeadLetter } from '../../letter/letter.ts'
import { claimScore, dueAt, rankOf } from '../../letter/order.ts'
import { toMs } from '../../letter/time.ts'
import type { ClaimRequest } from '../../store.ts'
import { compareIds, type Entry } from './entry.ts'
import { SortedList } from './sorted-list.ts'

/** The active letters of a lane, oldest first, and how many of them are running. */
interface Lane {
  active: SortedList<Entry>
  running: number
}

/**
 * Claimable letters by due time, in one list per queue and priority, so that a claim reads only the
 * heads of lists. Blocked letters are in no list: those that depend on an unresolved letter; and in
 * a lane, all that are not running, except the oldest if none runs.
 */
export class ClaimIndex {
  /** By queue, then by rank of priority. */
  readonly #lists = new Map<string, SortedList<Entry>[]>()
  /** By queue and lane. */
  readonly #lanes = new Map<string, Lane>()
  /** Letters that wait, by the id they wait for. */
  readonly #waiting = new Map<string, Set<Entry>>()

  /** Entries that are due, in claim order, at most `limit`. */
  due(request: ClaimRequest, nowMs: number): Entry[] {
    const { limit } = request
    return this.#requested(request)
      .flatMap((list) => list.head(limit).filter((entry) => entry.due!.atMs <= nowMs))
      .sort((a, b) => scoreOf(a) - scoreOf(b) || compareIds(a, b))
      .slice(0, limit)
  }

  /** When the next entry of the requested queues becomes due. Infinity: never. */
  nextMs(request: ClaimRequest): number {
    const heads = this.#requested(request).flatMap((list) => list.first()?.due!.atMs ?? [])
    return heads.reduce((a, b) => Math.min(a, b), Infinity)
  }

  /** Follows the insert, change or removal of a letter. Returns the earliest new due time. */
  update(entry: Entry, before: DeadLetter | undefined, after: DeadLetter | undefined): number {
    if (!before || !after) this.#updateWaiting(entry, after !== undefined)
    const affected = new Set([entry])
    if (after && isDone(after))
      for (const dependent of this.#releaseDependents(after.id)) affected.add(dependent)
    if (entry.letter.lane !== undefined && before?.state !== after?.state)
      for (const other of this.#updateLane(entry, before, after)) affected.add(other)
    let dueMs = Infinity
    for (const one of affected)
      dueMs = Math.min(dueMs, this.#place(one, one === entry && !after ? undefined : one.letter))
    return dueMs
  }

  #requested({ queues, except }: ClaimRequest): SortedList<Entry>[] {
    const names = [...(queues ? new Set(queues) : this.#lists.keys())]
    return names.flatMap((name) => (except?.includes(name) ? [] : (this.#lists.get(name) ?? [])))
  }

  /** Moves the entry to the due time of the letter. Undefined: removes the entry. */
  #place(entry: Entry, letter: DeadLetter | undefined): number {
    const { queue, priority } = entry.letter
    if (entry.due) {
      entry.due.list.delete(entry)
      delete entry.due
      if (this.#lists.get(queue)?.every((list) => list.size === 0)) this.#lists.delete(queue)
    }
    const at = letter && !this.#isBlocked(entry) ? dueAt(letter) : undefined
    if (at === undefined) return Infinity
    const lists = this.#lists.get(queue) ?? priorities.map(() => new SortedList(compareDue))
    this.#lists.set(queue, lists)
    // An invalid timestamp counts as overdue, so that the letter is claimed rather than forgotten.
    entry.due = { atMs: toMs(at) || 0, list: lists[rankOf(priority)]! }
    entry.due.list.add(entry)
    return entry.due.atMs
  }

  #isBlocked({ letter, waitsFor }: Entry): boolean {
    if (waitsFor.size > 0) return true
    if (letter.lane === undefined || letter.state === 'retrying') return false
    const lane = this.#lanes.get(JSON.stringify([letter.queue, letter.lane]))
    return lane !== undefined && (lane.running > 0 || lane.active.first()?.id !== letter.id)
  }

  /** Returns the first two of the lane: what was or is next to run is one of them, or `entry`. */
  #updateLane(
    entry: Entry,
    before: DeadLetter | undefined,
    after: DeadLetter | undefined,
  ): Entry[] {
    const key = JSON.stringify([entry.letter.queue, entry.letter.lane])
    const lane = this.#lanes.get(key) ?? { active: new SortedList<Entry>(compareIds), running: 0 }
    lane.active.delete(entry)
    if (after && isActive(after.state)) lane.active.add(entry)
    lane.running += Number(after?.state === 'retrying') - Number(before?.state === 'retrying')
    if (lane.active.size > 0) this.#lanes.set(key, lane)
    else this.#lanes.delete(key)
    return lane.active.head(2)
  }

  #updateWaiting(entry: Entry, isStored: boolean): void {
    for (const id of entry.waitsFor) {
      const waiting = this.#waiting.get(id) ?? new Set()
      if (isStored) waiting.add(entry)
      else waiting.delete(entry)
      if (waiting.size > 0) this.#waiting.set(id, waiting)
      else this.#waiting.delete(id)
    }
  }

  #releaseDependents(id: string): Entry[] {
    const dependents = [...(this.#waiting.get(id) ?? [])]
    this.#waiting.delete(id)
    for (const { waitsFor } of dependents) waitsFor.delete(id)
    return dependents
  }
}

function compareDue(a: Entry, b: Entry): number {
  return a.due!.atMs - b.due!.atMs || compareIds(a, b)
}

function scoreOf({ letter, due }: Entry): number {
  return claimScore(rankOf(letter.priority), due!.atMs)
}
