/** What a record does to its node. */
export type Plan = 'good' | 'flaky' | 'bad' | 'poison' | 'malformed'

const malformed = 20

/**
 * 5 % fail permanently, 5 % fail once, a few kill their process, and some cannot be decoded. Spread
 * evenly.
 */
export function planOf(n: number, { records, poisons }: RecordCounts): Plan {
  if (poisons > 0 && n % Math.floor(records / poisons) === 7) return 'poison'
  if (n % Math.floor(records / malformed) === 11) return 'malformed'
  if (n % 20 === 3) return 'bad'
  return n % 20 === 13 ? 'flaky' : 'good'
}

/** Number of records, and how many of them kill their process. */
export interface RecordCounts {
  records: number
  poisons: number
}

export function idOf(n: number, counts: RecordCounts): string {
  return `${planOf(n, counts)}-${n}`
}

export const maxDeliveries = 5

/** Settings of a child process, passed as JSON in its only argument. */
export interface ChildSettings {
  url: string
  dir: string
  name: string
  prefix: string
  sessionMs: number
  workMs: number
  transactional: boolean
  bug?: BugName
}

/** Planted bugs: each must be caught. */
export const bugNames = ['commit-before-send', 'commit-past-failed', 'drop-malformed'] as const
export type BugName = (typeof bugNames)[number]
