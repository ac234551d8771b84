import type { HistoryEntry } from '../../letter/letter.ts'
import type { SqlValue } from './row.ts'

/**
 * A letter as it is written: the row, the body, and optional extras. A tuple, since tuples are
 * cheap to send between threads.
 */
export type PackedLetter = [
  row: SqlValue[],
  queue: string,
  origin: string,
  originCrc: number,
  bytes: Uint8Array,
  bytesCrc: number,
  extras: PackedExtras | null,
]

export interface PackedExtras {
  dedupeKey?: string
  tags?: string[]
  dependsOn?: string[]
  /** The source id as indexed: see `sourceKey`. */
  source?: string
  /** History entries beyond the first, which is in the origin. */
  history?: HistoryEntry[]
}

/** A letter as it is read. Null: not requested, or unreadable for the reason in `problem`. */
export type LoadedLetter = [
  row: SqlValue[],
  queue: string,
  origin: string | null,
  originCrc: number,
  bytes: Uint8Array | null,
  bytesCrc: number,
  /** Entries beyond the first, as JSON. */
  history: string[],
  problem: string | null,
]
