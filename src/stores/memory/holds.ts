import { isActive, type DeadLetter } from '../../letter/letter.ts'
import { byId, pair, type Kept } from './kept.ts'
import { Sorted } from './sorted.ts'

/**
 * Who must wait although its time has come: in a lane everyone but the oldest active letter, and whoever depends on
 * a letter that is not resolved. Held letters are kept out of the due lists, so that a claim never meets them.
 */
export class Holds {
  /** The active letters of each lane, oldest first. A lane belongs to one queue. */
  readonly #lanes = new Map<string, Sorted<Kept>>()
  /** Who waits, by the id that is waited for. */
  readonly #waiting = new Map<string, Set<Kept>>()

  isHeld(kept: Kept): boolean {
    if (kept.waitsFor?.size) return true
    const { lane, queue } = kept.letter
    return lane !== undefined && this.#lanes.get(pair(queue, lane))?.first() !== kept
  }

  /** Follows a letter from one standing to the next. Answers whose turn may have come or gone with it. */
  move(kept: Kept, before: DeadLetter | undefined, after: DeadLetter | undefined): Kept[] {
    if (!before) this.#wait(kept)
    if (!after) this.#forget(kept)
    const freed = after && isDone(after) && !(before && isDone(before)) ? this.#free(after.id) : []
    const active = after !== undefined && isActive(after.state)
    const wasActive = before !== undefined && isActive(before.state)
    if (kept.letter.lane === undefined || active === wasActive) return freed
    return [...freed, ...this.#moveInLane(kept, kept.letter.lane, active)]
  }

  /** Answers the first two of the lane: whoever is or was its head is among them, or is the letter itself. */
  #moveInLane(kept: Kept, name: string, active: boolean): Kept[] {
    const key = pair(kept.letter.queue, name)
    const lane = this.#lanes.get(key) ?? new Sorted(byId)
    if (active) lane.add(kept)
    else lane.delete(kept)
    if (lane.size > 0) this.#lanes.set(key, lane)
    else this.#lanes.delete(key)
    const [head, second] = lane.ascend()
    return [head, second].filter((one) => one !== undefined)
  }

  #wait(kept: Kept): void {
    for (const id of kept.waitsFor ?? []) {
      const waiting = this.#waiting.get(id)
      if (waiting) waiting.add(kept)
      else this.#waiting.set(id, new Set([kept]))
    }
  }

  #forget(kept: Kept): void {
    for (const id of kept.waitsFor ?? []) {
      const waiting = this.#waiting.get(id)
      waiting?.delete(kept)
      if (waiting?.size === 0) this.#waiting.delete(id)
    }
  }

  /** Who waited for this letter waits for it no more. Answers those who now wait for nothing. */
  #free(id: string): Kept[] {
    const waiting = this.#waiting.get(id)
    if (!waiting) return []
    this.#waiting.delete(id)
    for (const kept of waiting) kept.waitsFor?.delete(id)
    return [...waiting].filter((kept) => kept.waitsFor?.size === 0)
  }
}

/** Resolved, or put away after it was. */
export function isDone(letter: DeadLetter): boolean {
  return letter.state === 'resolved' || letter.archivedFrom === 'resolved'
}
