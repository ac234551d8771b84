import { RedriveError } from '../../errors.ts'
import type { DeadLetter } from '../../letter/letter.ts'
import type { Timestamp } from '../../letter/time.ts'
import type { SpoolStatus } from '../../store.ts'

/** A waiting letter with its position: the file that contains it and its number there. */
export interface Entry {
  letter: DeadLetter
  file: string
  seq: number
}

/** A letter that the store will never accept, and the reason. */
export interface Refusal {
  entry: Entry
  why: string
}

/** Counts of what was set aside or cannot be read. */
export type SetAside = Pick<SpoolStatus, 'damaged' | 'refused' | 'unreadable'>

/** The letters that wait for the store, oldest first. */
export interface Backlog {
  /** Location in words: the folder, or `memory`. */
  readonly place: string
  readonly letters: number
  readonly bytes: number
  readonly oldestAt: Timestamp | undefined
  /** True when no letter waits and no append is in flight. */
  readonly empty: boolean
  open(): Promise<void>
  /** Leaves waiting letters in place for the next open. */
  close(): Promise<void>
  /**
   * Adds all letters or none. When it resolves, they are as durable as this backlog can make them.
   */
  append(letters: readonly DeadLetter[]): Promise<void>
  /** Reads the oldest letters, at most `limit`. Empty when no letter waits. */
  head(limit: number): Promise<Entry[]>
  /** Removes entries from the start of the head. Refused ones are set aside first. */
  settle(entries: readonly Entry[], refused: readonly Refusal[]): Promise<void>
  countSetAside(): Promise<SetAside>
}

export type SpoolEvent =
  /** The store is unavailable, and the first letter waits in `place`. */
  | { type: 'spooling'; place: string; error: unknown }
  /** No letter waits. `duplicates` were in the store already or counted as occurrences. */
  | { type: 'drained'; count: number; duplicates: number }
  | { type: 'set-aside'; what: 'damaged' | 'refused'; file: string; why: string }
  | { type: 'error'; during: string; error: unknown }

export type Emit = (event: SpoolEvent) => void

export function fullError(place: string, maxBytes: number): RedriveError {
  const message = `the spool (${place}) is full (spoolMaxBytes is ${maxBytes}): new letters are refused until the store is back`
  return new RedriveError('STORE_UNAVAILABLE', message)
}
