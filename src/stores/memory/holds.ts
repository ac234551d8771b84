import { isActive, type DeadLetter } from '../../letter/letter.ts'
import { byId, pair, type Kept } from './kept.ts'
import { Sorted } from './sorted.ts'

/** The active letters of a lane, oldest first, and those of them that run. */
interface Lane {
  active: Sorted<Kept>
  running: Set<Kept>
}

/**
 * Who must wait although its time has come: in a lane everyone while one of them runs, and else everyone but the oldest;
 * and whoever depends on a letter that is not resolved. Held letters are kept out of the due lists, so that a claim never
 * meets them.
 */
export class Holds {
  /** A lane belongs to one queue. */
  readonly #lanes = new Map<string, Lane>()
  /** Who waits, by the id that is waited for. */
  readonly #waiting = new Map<string, Set<Kept>>()

  isHeld(kept: Kept): boolean {
    if (kept.waitsFor?.size) return true
    const { lane: name, queue } = kept.letter
    const lane = name === undefined ? undefined : this.#lanes.get(pair(queue, name))
    if (!lane || lane.running.has(kept)) return false
    return lane.running.size > 0 || lane.active.first() !== kept
  }

  /** Follows a letter from one standing to the next. Answers whose turn may have come or gone with it. */
  move(kept: Kept, before: DeadLetter | undefined, after: DeadLetter | undefined): Kept[] {
    if (!before) this.#wait(kept)
    if (!after) this.#forget(kept)
    const freed = after && isDone(after) && !(before && isDone(before)) ? this.#free(after.id) : []
    if (kept.letter.lane === undefined || before?.state === after?.state) return freed
    return [...freed, ...this.#moveInLane(kept, kept.letter.lane, after)]
  }

  /** Answers the first two of the lane: whoever is or was next to run is among them, or is the letter itself. */
  #moveInLane(kept: Kept, name: string, after: DeadLetter | undefined): Kept[] {
    const key = pair(kept.letter.queue, name)
    const lane = this.#lanes.get(key) ?? { active: new Sorted(byId), running: new Set() }
    lane.active.delete(kept)
    lane.running.delete(kept)
    if (after && isActive(after.state)) lane.active.add(kept)
    if (after?.state === 'retrying') lane.running.add(kept)
    if (lane.active.size > 0) this.#lanes.set(key, lane)
    else this.#lanes.delete(key)
    const [head, second] = lane.active.ascend()
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
