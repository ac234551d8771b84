import { isActive, type Action, type DeadLetter } from '../../src/letter/letter.ts'
import { dueAt } from '../../src/letter/order.ts'
import type { Timestamp } from '../../src/letter/time.ts'

/** One letter as it must be, by what the oracle saw happen to it. */
export interface Known {
  /** A short name for traces. */
  name: string
  letter: DeadLetter
  /** As captured. */
  bytes: Uint8Array
  /** What `retries` must be: claims less releases since the last fresh budget. */
  counted: number
  /** Epochs of the claims that are counted in the present budget. */
  budget: Set<number>
  /** When each epoch was claimed, on the monotonic clock. */
  claims: Map<number, number>
  /** Epochs whose handler was started, and by whom. */
  starts: Map<number, string>
  /** How the handlers of these epochs ended, if they did. */
  ends: Map<number, 'done' | 'failed' | 'done late' | 'failed late'>
  /** Epochs whose claim was answered, and to whom. */
  answered: Map<number, string>
  /** Accepted results by epoch. */
  settles: Map<number, { action: Action; actor: string }>
  /** Accepted changes by the version that they made. */
  versions: Map<number, Action>
  /** Letters that must be resolved first. */
  waitsFor: Set<string>
}

export const isDone = (letter: DeadLetter): boolean =>
  letter.state === 'resolved' || letter.archivedFrom === 'resolved'

export const isAtRest = ({ state }: DeadLetter): boolean => !isActive(state)

/** Runs that a letter may have before a person has to act. One without retries still runs once when asked for. */
export const limitOf = ({ maxRetries }: DeadLetter): number => Math.max(1, maxRetries)

/** The letters as they must be, by id. */
export class Letters extends Map<string, Known> {
  /** Of a lane only the letter in flight may be claimed, when its lease has lapsed, or else the oldest. */
  isHeld({ letter, waitsFor }: Known): boolean {
    if (waitsFor.size > 0) return true
    if (letter.lane === undefined || letter.state === 'retrying') return false
    const isAhead = ({ state, id }: DeadLetter): boolean =>
      state === 'retrying' || (state === 'pending' && id < letter.id)
    return this.laneOf(letter).some((other) => isAhead(other.letter))
  }

  laneOf({ queue, lane }: DeadLetter): Known[] {
    const others: Known[] = []
    for (const other of this.values())
      if (other.letter.lane === lane && other.letter.queue === queue) others.push(other)
    return others
  }

  /** Whether a claim at this moment may take it. */
  isClaimable(known: Known, now: Timestamp): boolean {
    const due = dueAt(known.letter)
    return due !== undefined && due <= now && !this.isHeld(known)
  }

  /** All but the archived. */
  occupied(): number {
    return this.count(({ state }) => state !== 'archived')
  }

  count(which: (letter: DeadLetter) => boolean): number {
    let count = 0
    for (const { letter } of this.values()) if (which(letter)) count++
    return count
  }
}
