/** What a record of the run will do to its node. */
export type Plan = 'good' | 'flaky' | 'bad' | 'poison' | 'malformed'

const malformed = 20

/** 5 % fail for good, as many fail at first, a few end their process, and some cannot be read. Spread over all. */
export function planOf(n: number, { records, poisons }: Planned): Plan {
  if (n % Math.floor(records / poisons) === 7) return 'poison'
  if (n % Math.floor(records / malformed) === 11) return 'malformed'
  if (n % 20 === 3) return 'bad'
  return n % 20 === 13 ? 'flaky' : 'good'
}

/** How many records, and how many of them end their process. */
export interface Planned {
  records: number
  poisons: number
}

export function idOf(n: number, planned: Planned): string {
  return `${planOf(n, planned)}-${n}`
}

export const maxDeliveries = 5

/** What a child is told when it is spawned, as JSON in its only argument. */
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

/** Wrong on purpose: each must be caught. */
export const bugNames = ['commit-before-send', 'commit-past-failed', 'drop-malformed'] as const
export type BugName = (typeof bugNames)[number]
