import {
  categories,
  priorities,
  severities,
  states,
  type ErrorCategory,
  type Priority,
  type Severity,
  type Source,
  type State,
} from '../letter/letter.ts'
import { checkKeys, checkOneOf, keysOf } from '../check/keys.ts'
import type { PausedQueue } from '../letter/paused-queue.ts'
import type { Store, Total } from '../store.ts'

/** Current counts, and totals since the store was created. */
export interface Statistics {
  /** Number of stored letters, without archived ones. */
  size: number
  /** Null: no limit. */
  maxItems: number | null
  /** Percentage of `maxItems`; 0 without a limit. */
  utilisation: number
  states: Record<State, number>
  categories: Record<ErrorCategory, number>
  priorities: Record<Priority, number>
  policies: Record<string, number>
  queues: Record<string, number>
  /** Only with `by: ['severity']`. */
  severities?: Record<Severity, number>
  /** By kind of source. Only with `by: ['source']`. */
  sources?: Record<Source['kind'], number>
  /**
   * Runs per captured letter over the lifetime of the store: `lifetime.retried /
   * lifetime.captured`.
   */
  avgRetryCount: number
  lifetime: Lifetime
  processor: Processor
  /** Queues whose letters are not run until a person resumes them. */
  pausedQueues: PausedQueue[]
}

export interface StatisticsOptions {
  /** Additional counts. No store maintains them: it may read every letter that is not archived. */
  by?: readonly ('severity' | 'source')[]
}

const statisticsKeys = keysOf<StatisticsOptions>({ by: true })

export function checkStatistics(options: StatisticsOptions): void {
  checkKeys('stats options', options, statisticsKeys)
  if (options.by !== undefined) checkOneOf('by', options.by, ['severity', 'source'])
}

const sourceKinds = [
  'operation',
  'mailbox',
  'workflow',
  'pipeline',
] as const satisfies Source['kind'][]

export interface Lifetime {
  captured: number
  /** Captures that added an occurrence to a letter. */
  occurrences: number
  /** Runs, including those reported with `fail`, without runs that were released uncounted. */
  retried: number
  /** By a run, by a person, or by a review. */
  resolved: number
  rescheduled: number
  exhausted: number
  /** Including letters that were parked at capture. */
  parked: number
  /** Retries by a person, also by a review. */
  manuallyRetried: number
  reviewed: number
  /** Letters published to their source. They count neither as retried nor as resolved. */
  replayed: number
  /** By a person, a retention, or a review. */
  archived: number
  restored: number
  removed: number
  evicted: number
}

export interface Processor {
  running: boolean
  active: number
  pollMs: number
}

/**
 * Reads maintained counts, so the cost does not grow with the number of letters, except for `by`.
 */
export async function readStatistics(
  store: Store,
  maxItems: number,
  processor: Processor,
  { by = [] }: StatisticsOptions = {},
): Promise<Omit<Statistics, 'pausedQueues'>> {
  const everything = { state: [...states] }
  const [byState, byCategory, byPriority, byPolicy, byQueue, totals] = await Promise.all([
    store.tally('state', everything),
    store.tally('category'),
    store.tally('priority'),
    store.tally('policy'),
    store.tally('queue'),
    store.totals(),
  ])
  const counts = withZeros(states, byState)
  const size = states.reduce((sum, state) => sum + (state === 'archived' ? 0 : counts[state]), 0)
  const limited = Number.isFinite(maxItems)
  const lifetime = lifetimeOf(totals)
  return {
    size,
    maxItems: limited ? maxItems : null,
    utilisation: limited ? Math.round((size / maxItems) * 10_000) / 100 : 0,
    states: counts,
    categories: withZeros(categories, byCategory),
    priorities: withZeros(priorities, byPriority),
    policies: Object.fromEntries(byPolicy),
    queues: Object.fromEntries(byQueue),
    ...(by.includes('severity')
      ? { severities: withZeros(severities, await store.tally('severity')) }
      : {}),
    ...(by.includes('source')
      ? { sources: withZeros(sourceKinds, await store.tally('source')) }
      : {}),
    avgRetryCount: lifetime.captured > 0 ? lifetime.retried / lifetime.captured : 0,
    lifetime,
    processor,
  }
}

/** The counts of all keys, 0 for those without a count. */
export function withZeros<K extends string>(
  keys: readonly K[],
  counts: ReadonlyMap<string, number>,
): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, counts.get(key) ?? 0])) as Record<K, number>
}

export function lifetimeOf(totals: readonly Total[]): Lifetime {
  const count = (action: Total['action']): number => sumTotals(totals, action, 'count')
  return {
    captured: count('capture'),
    occurrences: count('occur'),
    retried: count('claim') + count('fail') - count('release'),
    resolved: count('resolve'),
    rescheduled: count('reschedule'),
    exhausted: count('exhaust'),
    parked: count('park') + count('park-at-capture'),
    manuallyRetried: count('retry'),
    reviewed: count('review'),
    replayed: count('replay'),
    archived: count('archive'),
    restored: count('restore'),
    removed: count('remove'),
    evicted: count('evict'),
  }
}

/** The sum of one field over all totals of an action. */
export function sumTotals(
  totals: readonly Total[],
  action: Total['action'],
  field: 'count' | 'retries' | 'backoffMs',
): number {
  return totals.reduce((total, row) => total + (row.action === action ? row[field] : 0), 0)
}
