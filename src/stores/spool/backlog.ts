import type { DeadLetter } from '../../letter/letter.ts'
import type { Timestamp } from '../../letter/time.ts'
import type { SpoolStatus } from '../../store.ts'

/** A letter that waits for the store, and where it stands in its journal. */
export interface Entry {
  letter: DeadLetter
  start: number
  end: number
}

/** How much was put aside, because the store cannot be given it. */
export type Aside = Pick<SpoolStatus, 'torn' | 'damaged' | 'refused' | 'unreadable'>

export type AsideKind = 'torn' | 'damaged' | 'refused'

/** The letters that wait for the store, oldest first. */
export interface Backlog {
  /** Where it is, for people. */
  readonly place: string
  readonly letters: number
  readonly bytes: number
  readonly oldestAt: Timestamp | undefined
  /** True when nothing waits and nothing is on its way in. */
  readonly empty: boolean
  open(): Promise<void>
  /** Keeps what waits, for the next one to open it. */
  close(): Promise<void>
  /** All or none. When it resolves they are as safe as this backlog can make them. */
  append(letters: readonly DeadLetter[]): Promise<void>
  /** Some of the oldest, at least one; undefined when nothing waits. The same until they are settled. */
  head(): Promise<readonly Entry[] | undefined>
  /** The first so many of the head are in the store or aside, and go. */
  settle(count: number): Promise<void>
  /** Puts a letter aside that the store will never take. To be settled afterwards. */
  refuse(entry: Entry, why: string): Promise<void>
  aside(): Promise<Aside>
}

export type SpoolEvent =
  /** The store is away, and the first letter was kept in its stead. */
  | { type: 'spooling'; place: string; error: unknown }
  /** Nothing waits any more. `duplicates` is how many of them the store had already, or counted as an occurrence. */
  | { type: 'drained'; count: number; duplicates: number }
  | { type: 'set-aside'; what: AsideKind; file: string; why: string }
  | { type: 'error'; during: string; error: unknown }

export type Tell = (event: SpoolEvent) => void
