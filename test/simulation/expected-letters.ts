import { isActive, type Action, type DeadLetter } from '../../src/letter/letter.ts'
import { dueAt } from '../../src/letter/order.ts'
import type { Timestamp } from '../../src/letter/time.ts'

/** The expected state of one letter, from the calls that the oracle observed. */
export interface ExpectedLetter {
  /** A short name for traces. */
  name: string
  letter: DeadLetter
  /** The captured bytes. */
  bytes: Uint8Array
  /** Expected `retries`: claims minus releases since the last reset of the retry budget. */
  counted: number
  /** Epochs of the claims that count in the current retry budget. */
  budget: Set<number>
  /** Monotonic time of the claim or the newest renewal, by epoch. */
  leasedMs: Map<number, number>
  /** The process that started the handler, by epoch. */
  starts: Map<number, string>
  /** The end of the handler, by epoch. */
  ends: Map<number, 'done' | 'failed' | 'done late' | 'failed late'>
  /** The process that received the answer of the claim, by epoch. */
  answered: Map<number, string>
  /** Accepted results by epoch. */
  settles: Map<number, { action: Action; actor: string }>
  /** Accepted changes by the resulting version. */
  versions: Map<number, Action>
  /** Letters that must be resolved first. */
  waitsFor: Set<string>
}

export const isDone = (letter: DeadLetter): boolean =>
  letter.state === 'resolved' || letter.archivedFrom === 'resolved'

export const isAtRest = ({ state }: DeadLetter): boolean => !isActive(state)

/**
 * Maximum number of runs before a person must act. A letter without retries can still run once on
 * request.
 */
export const limitOf = ({ maxRetries }: DeadLetter): number => Math.max(1, maxRetries)

/** The expected letters, by id. */
export class ExpectedLetters extends Map<string, ExpectedLetter> {
  /**
   * In a lane, only the letter in flight (after its lease expired) or else the oldest can be
   * claimed.
   */
  isHeld({ letter, waitsFor }: ExpectedLetter): boolean {
    if (waitsFor.size > 0) return true
    if (letter.lane === undefined || letter.state === 'retrying') return false
    const isAhead = ({ state, id }: DeadLetter): boolean =>
      state === 'retrying' || (state === 'pending' && id < letter.id)
    return this.laneOf(letter).some((other) => isAhead(other.letter))
  }

  laneOf({ queue, lane }: DeadLetter): ExpectedLetter[] {
    const others: ExpectedLetter[] = []
    for (const other of this.values())
      if (other.letter.lane === lane && other.letter.queue === queue) others.push(other)
    return others
  }

  /** Whether a claim at this time may return the letter. */
  isClaimable(known: ExpectedLetter, now: Timestamp): boolean {
    const due = dueAt(known.letter)
    return due !== undefined && due <= now && !this.isHeld(known)
  }

  /** Number of letters that are not archived. */
  countOccupied(): number {
    return this.count(({ state }) => state !== 'archived')
  }

  count(which: (letter: DeadLetter) => boolean): number {
    let count = 0
    for (const { letter } of this.values()) if (which(letter)) count++
    return count
  }
}
