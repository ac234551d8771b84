import type { HistoryEntry } from '../../letter/letter.ts'
import type { SqlValue } from './row.ts'

/** A letter as a driver takes it: the row, the body, and what few letters have. Lists, since lists cross threads fast. */
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
  /** The source id, as indexes hold it: see `sourceKey`. */
  source?: string
  /** Entries beyond the first, which is in the origin. */
  history?: HistoryEntry[]
}

/** A letter as a driver gives it back. What is null was not asked for, or could not be read: `error` says why. */
export type KeptLetter = [
  row: SqlValue[],
  queue: string,
  origin: string | null,
  originCrc: number,
  bytes: Uint8Array | null,
  bytesCrc: number,
  /** Entries beyond the first, as JSON. */
  history: string[],
  trouble: string | null,
]
