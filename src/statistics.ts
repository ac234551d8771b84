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
} from './letter/letter.ts'
import { checkKeys, checkOneOf, keysOf } from './keys.ts'
import { escapeHidden } from './letter/payload-view.ts'
import type { Alert } from './policy/alerts.ts'
import type { SpoolStatus, Store, StoreHealth, Total } from './store.ts'

export type { SpoolStatus } from './store.ts'

/** How things stand, and what happened since the store was made. */
export interface Statistics {
  /** Letters kept, archived ones aside. */
  size: number
  /** Null when there is no limit. */
  maxItems: number | null
  /** Percent of `maxItems`; 0 when there is no limit. */
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
  lifetime: Lifetime
  processor: Processor
}

export interface StatisticsOptions {
  /** More to count letters by. No store maintains these counts: it may read every letter that is not archived. */
  by?: readonly ('severity' | 'source')[]
}

const statisticsKeys = keysOf<StatisticsOptions>({ by: true })

export function checkStatistics(options: StatisticsOptions): void {
  checkKeys('the options of stats', options, statisticsKeys)
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
  /** Runs begun, those given back uncounted aside. */
  retried: number
  resolved: number
  rescheduled: number
  exhausted: number
  /** Put aside after capture. Letters that are parked as they are captured count as captured. */
  parked: number
  /** Retries that a person asked for. */
  manuallyRetried: number
  reviewed: number
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

/** Reads maintained counts only, unless `by` asks for more: what it costs does not grow with the number of letters. */
export async function readStatistics(
  store: Store,
  maxItems: number,
  processor: Processor,
  { by = [] }: StatisticsOptions = {},
): Promise<Statistics> {
  const everything = { state: [...states] }
  const [byState, byCategory, byPriority, byPolicy, byQueue, totals] = await Promise.all([
    store.tally('state', everything),
    store.tally('category'),
    store.tally('priority'),
    store.tally('policy'),
    store.tally('queue'),
    store.totals(),
  ])
  const standing = complete(states, byState)
  const size = states.reduce((sum, state) => sum + (state === 'archived' ? 0 : standing[state]), 0)
  const limited = Number.isFinite(maxItems)
  return {
    size,
    maxItems: limited ? maxItems : null,
    utilisation: limited ? Math.round((size / maxItems) * 10_000) / 100 : 0,
    states: standing,
    categories: complete(categories, byCategory),
    priorities: complete(priorities, byPriority),
    policies: Object.fromEntries(byPolicy),
    queues: Object.fromEntries(byQueue),
    ...(by.includes('severity')
      ? { severities: complete(severities, await store.tally('severity')) }
      : {}),
    ...(by.includes('source')
      ? { sources: complete(sourceKinds, await store.tally('source')) }
      : {}),
    lifetime: lifetimeOf(totals),
    processor,
  }
}

function complete<K extends string>(
  keys: readonly K[],
  counts: ReadonlyMap<string, number>,
): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, counts.get(key) ?? 0])) as Record<K, number>
}

function lifetimeOf(totals: readonly Total[]): Lifetime {
  const count = (action: Total['action']): number => sum(totals, action, 'count')
  return {
    captured: count('capture'),
    occurrences: count('occur'),
    retried: count('claim') - count('release'),
    resolved: count('resolve'),
    rescheduled: count('reschedule'),
    exhausted: count('exhaust'),
    parked: count('park'),
    manuallyRetried: count('retry'),
    reviewed: count('review'),
    archived: count('archive'),
    restored: count('restore'),
    removed: count('remove'),
    evicted: count('evict'),
  }
}

function sum(
  totals: readonly Total[],
  action: Total['action'],
  field: 'count' | 'retries' | 'backoffMs',
): number {
  return totals.reduce((total, row) => total + (row.action === action ? row[field] : 0), 0)
}

/** The counters and averages of lifetime totals, by priority and by queue, all exact. */
export interface Metrics {
  totalEnqueued: number
  totalRetried: number
  totalSuccesses: number
  totalAbandoned: number
  totalManualReviews: number
  enqueuedByPriority: Record<Priority, number>
  enqueuedByType: Record<string, number>
  successByPriority: Record<Priority, number>
  successByType: Record<string, number>
  abandonedByPriority: Record<Priority, number>
  abandonedByType: Record<string, number>
  /** Retries of a letter when it was resolved or exhausted, on average. */
  avgRetryCount: number
  /** The wait before a retry, on average. */
  avgBackoffMs: number
  maxRetryCount: number
  /** Shares of what was enqueued, from 0 to 1. */
  successRate: number
  abandonmentRate: number
  /** Where there is a spool. */
  spool?: SpoolStatus
}

export function metricsOf(totals: readonly Total[]): Metrics {
  const lifetime = lifetimeOf(totals)
  const settled = lifetime.resolved + lifetime.exhausted
  const waits = lifetime.captured + lifetime.rescheduled
  const share = (part: number, whole: number): number => (whole > 0 ? part / whole : 0)
  return {
    totalEnqueued: lifetime.captured,
    totalRetried: lifetime.retried,
    totalSuccesses: lifetime.resolved,
    totalAbandoned: lifetime.exhausted,
    totalManualReviews: lifetime.parked,
    enqueuedByPriority: byPriority(totals, 'capture'),
    enqueuedByType: byQueue(totals, 'capture'),
    successByPriority: byPriority(totals, 'resolve'),
    successByType: byQueue(totals, 'resolve'),
    abandonedByPriority: byPriority(totals, 'exhaust'),
    abandonedByType: byQueue(totals, 'exhaust'),
    avgRetryCount: share(
      sum(totals, 'resolve', 'retries') + sum(totals, 'exhaust', 'retries'),
      settled,
    ),
    avgBackoffMs: share(
      sum(totals, 'capture', 'backoffMs') + sum(totals, 'reschedule', 'backoffMs'),
      waits,
    ),
    maxRetryCount: totals.reduce((max, row) => Math.max(max, row.maxRetries), 0),
    successRate: share(lifetime.resolved, lifetime.captured),
    abandonmentRate: share(lifetime.exhausted, lifetime.captured),
  }
}

function byPriority(totals: readonly Total[], action: Total['action']): Record<Priority, number> {
  const counts = new Map<string, number>()
  for (const row of totals)
    if (row.action === action) counts.set(row.priority, (counts.get(row.priority) ?? 0) + row.count)
  return complete(priorities, counts)
}

function byQueue(totals: readonly Total[], action: Total['action']): Record<string, number> {
  const counts = new Map<string, number>()
  for (const row of totals)
    if (row.action === action) counts.set(row.queue, (counts.get(row.queue) ?? 0) + row.count)
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The metrics as text for people. */
export function summaryOf(metrics: Metrics): string {
  const percent = (share: number): string =>
    metrics.totalEnqueued > 0 ? `${(share * 100).toFixed(1)}%` : '0%'
  const { critical, high, medium, low } = metrics.enqueuedByPriority
  const types = Object.entries(metrics.enqueuedByType).map(
    ([type, count]) => `- ${escapeHidden(type)}: ${count}`,
  )
  return [
    'Dead Letter Queue Metrics:',
    '--------------------------',
    `Total Enqueued: ${metrics.totalEnqueued}`,
    `Total Retried: ${metrics.totalRetried}`,
    `Total Successes: ${metrics.totalSuccesses} (${percent(metrics.successRate)})`,
    `Total Abandoned: ${metrics.totalAbandoned} (${percent(metrics.abandonmentRate)})`,
    `Manual Reviews: ${metrics.totalManualReviews}`,
    '',
    'By Priority (Enqueued):',
    `- Critical: ${critical}`,
    `- High: ${high}`,
    `- Medium: ${medium}`,
    `- Low: ${low}`,
    '',
    'By Type (Enqueued):',
    ...types,
    '',
    'Statistics:',
    `- Avg Retry Count: ${metrics.avgRetryCount.toFixed(2)}`,
    `- Avg Backoff: ${Math.round(metrics.avgBackoffMs)} ms`,
    `- Max Retry Count: ${metrics.maxRetryCount}`,
    ...(metrics.spool ? spoolLines(metrics.spool) : []),
  ].join('\n')
}

function spoolLines(spool: SpoolStatus): string[] {
  const aside = spool.damaged + spool.refused + spool.unreadable + spool.torn
  return [
    '',
    'Spool:',
    `- Waiting: ${spool.letters} (${spool.bytes} bytes)`,
    `- Oldest: ${spool.oldestAt ?? 'none'}`,
    `- Drained: ${spool.drained}`,
    `- Set Aside: ${aside}`,
  ]
}

export interface Health {
  ok: boolean
  store: StoreHealth
  processor: { running: boolean; active: number }
  /** Where there is a spool. */
  spool?: SpoolStatus
  /** What stands now, whichever process raised it. */
  alerts: Alert[]
  /** What is wrong, in words. */
  problems: string[]
}

export async function readHealth(
  store: Store,
  processor: Health['processor'],
  stuck: { all: boolean; problems: string[] },
  alerts: Alert[],
  spool: (() => Promise<SpoolStatus>) | undefined,
): Promise<Health> {
  const found = await store.health()
  const raised = alerts.map(({ name, summary }) => `${name}: ${summary}`)
  const problems = [...found.problems, ...raised, ...stuck.problems]
  const health = { ok: found.ok && !stuck.all, store: found, processor, alerts, problems }
  return spool ? { ...health, spool: await spool() } : health
}
