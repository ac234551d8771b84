import { copyOf } from '../../letter/copy.ts'
import type { DeadLetter, LetterSummary, Payload } from '../../letter/letter.ts'
import type { StoredLetter } from '../../store.ts'
import type { SortedList } from './sorted-list.ts'

/** A stored letter. `letter` is replaced by every change and never mutated. */
export interface Entry {
  readonly id: string
  letter: DeadLetter
  /** The payload as captured. */
  readonly original: Payload
  /** Ids of letters that this letter depends on and that have not been resolved since. */
  readonly waitsFor: Set<string>
  /** When the letter can be claimed, and the list that holds it. Absent: it cannot be. */
  due?: { atMs: number; list: SortedList<Entry> }
}

export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function compareIds(a: { id: string }, b: { id: string }): number {
  return compareStrings(a.id, b.id)
}

/** The letter without bytes and history. */
export function summaryOf(letter: DeadLetter): LetterSummary {
  const { bytes: _, ...payload } = letter.payload
  const { history: __, ...rest } = letter
  return copyOf({ ...rest, payload })
}

export function storedOf({ letter, original, waitsFor }: Entry): StoredLetter {
  return {
    letter: copyOf(letter),
    ...(original === letter.payload ? {} : { original: copyOf(original) }),
    ...(waitsFor.size > 0 ? { waitsFor: [...waitsFor] } : {}),
  }
}
