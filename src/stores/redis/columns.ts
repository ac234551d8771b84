/**
 * The positions of a letter's fields in its row: a JSON array that scripts read and write too, so
 * positions are counted from 1 as in Lua. `false` means absent. Rows exist on servers: append, and
 * never reorder.
 */
export const col = {
  id: 1,
  queue: 2,
  state: 3,
  priority: 4,
  category: 5,
  policy: 6,
  reason: 7,
  fingerprint: 8,
  version: 9,
  epoch: 10,
  retries: 11,
  /** As a string, since JSON in Lua has 14 digits. */
  backoffMs: 12,
  retryAt: 13,
  settledAt: 14,
  expiresAt: 15,
  deadLetteredAt: 16,
  updatedAt: 17,
  worker: 18,
  leasedUntil: 19,
  lane: 20,
  tenant: 21,
  /** 1: `dependsOn` is not empty. */
  dependent: 22,
  entries: 23,
  omitted: 24,
  /** 1: the first entry of the history is in the origin. */
  first: 25,
  /** Without duplicates, or false. */
  tags: 26,
  /** The dedupeKey, hashed, or false. */
  dedupe: 27,
  /** 1: it was resolved before it was archived. */
  done: 28,
} as const

export const rowWidth: number = Object.keys(col).length

/** Columns with numbers. The others have strings, false, or the list of tags. */
export const numberColumns: readonly number[] = [
  col.state,
  col.priority,
  col.category,
  col.policy,
  col.version,
  col.epoch,
  col.retries,
  col.dependent,
  col.entries,
  col.omitted,
  col.first,
  col.done,
]

/** Columns that always have a string. */
export const textColumns: readonly number[] = [
  col.id,
  col.queue,
  col.fingerprint,
  col.backoffMs,
  col.deadLetteredAt,
  col.updatedAt,
]
