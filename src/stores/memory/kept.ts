import type { DeadLetter, Payload } from '../../letter/letter.ts'
import type { Sorted } from './sorted.ts'

/** A letter in its place. The letter itself is never changed, only replaced. */
export interface Kept {
  readonly id: string
  letter: DeadLetter
  /** The payload as it was captured. */
  readonly original: Payload
  /** Letters that must be resolved before this one can be claimed. What was resolved once is taken off for good. */
  readonly waitsFor: Set<string> | undefined
  /** What it sorts by in lists; beside the letter, since comparing is what is done most. */
  retryKey: string
  settledKey: string
  /** When it can be claimed, and the due list that it stands in, if in any. */
  dueMs: number
  dueIn: Sorted<Kept> | undefined
}

export function byId(a: Kept, b: Kept): boolean {
  return a.id < b.id
}

/** Two names as one, such that no other two make the same. */
export function pair(first: string, second: string): string {
  return `${first.length} ${first}${second}`
}
