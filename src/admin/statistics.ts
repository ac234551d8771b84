import { RedriveError } from '../errors.ts'
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
import { escapeHidden } from '../letter/payload-view.ts'
import type { Alert } from '../policy/alerts.ts'
import type { SpoolStatus, Store, StoreHealth, Total } from '../store.ts'

export type { SpoolStatus } from '../store.ts'

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
  /** Runs after capture per captured letter, over the lifetime of the store: `lifetime.retried / lifetime.captured`. */
  avgRetryCount: number
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
  /** Runs, also those reported with `fail`. Runs that were given back uncounted are left out. */
  retried: number
  /** By a run, by a person, or by a review. */
  resolved: number
  rescheduled: number
  exhausted: number
  /** Also the letters that were parked as they were captured. */
  parked: number
  /** Retries that a person asked for, also by a review. */
  manuallyRetried: number
  reviewed: number
  /** Letters published to their source again. They count neither as retried nor as resolved. */
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
  const lifetime = lifetimeOf(totals)
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
    avgRetryCount: lifetime.captured > 0 ? lifetime.retried / lifetime.captured : 0,
    lifetime,
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

function sum(
  totals: readonly Total[],
  action: Total['action'],
  field: 'count' | 'retries' | 'backoffMs',
): number {
  return totals.reduce((total, row) => total + (row.action === action ? row[field] : 0), 0)
}

/** Counters and averages, by priority and by queue, all exact. */
export interface Metrics {
  totalEnqueued: number
  /**
   * Runs, also those reported with `fail`. Runs that were given back uncounted are left out: with `since`, one that was counted
   * before and given back after takes one off.
   */
  totalRetried: number
  totalSuccesses: number
  totalAbandoned: number
  /** Letters that were parked, also those parked as they were captured. */
  totalManualReviews: number
  /** Letters published to their source again. */
  totalReplayed: number
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
  /** The most retries of a letter once its run had ended. With `since`, null unless it has grown: the store does not know a lower maximum of a part of its lifetime. */
  maxRetryCount: number | null
  /** Shares of what was enqueued, from 0 to 1. With `since`, above 1 when older letters were settled. */
  successRate: number
  abandonmentRate: number
  /** What `avgRetryCount` is the average of: retries of all letters when they were resolved or exhausted. */
  totalSettledRetries: number
  /** What `avgBackoffMs` is the average of: the number of waits, and their sum. */
  totalWaits: number
  totalBackoffMs: number
  /** True for a result of `metrics({ since })`. It counts a part of the lifetime, so it cannot be a `since` itself. */
  partial?: true
  /** Where there is a spool: how it stands now, with or without `since`. */
  spool?: SpoolStatus
}

export interface MetricsQuery {
  /** An earlier result of `metrics()` of the same store: only what happened after it counts. */
  since?: Metrics
}

type Counters = Omit<
  Metrics,
  'avgRetryCount' | 'avgBackoffMs' | 'successRate' | 'abandonmentRate' | 'partial' | 'spool'
>

export function metricsOf(totals: readonly Total[], { since }: MetricsQuery = {}): Metrics {
  const now = countersOf(totals)
  const counters = since === undefined ? now : countersAfter(now, checkMetrics(since))
  const { totalEnqueued, totalSuccesses, totalAbandoned } = counters
  const share = (part: number, whole: number): number => (whole > 0 ? part / whole : 0)
  return {
    ...counters,
    avgRetryCount: share(counters.totalSettledRetries, totalSuccesses + totalAbandoned),
    avgBackoffMs: share(counters.totalBackoffMs, counters.totalWaits),
    successRate: share(totalSuccesses, totalEnqueued),
    abandonmentRate: share(totalAbandoned, totalEnqueued),
    ...(since === undefined ? {} : { partial: true }),
  }
}

function countersOf(totals: readonly Total[]): Counters {
  const lifetime = lifetimeOf(totals)
  const total = (field: 'count' | 'retries' | 'backoffMs', action: Total['action']): number =>
    sum(totals, action, field)
  return {
    totalEnqueued: lifetime.captured,
    totalRetried: lifetime.retried,
    totalSuccesses: lifetime.resolved,
    totalAbandoned: lifetime.exhausted,
    totalManualReviews: lifetime.parked,
    totalReplayed: lifetime.replayed,
    enqueuedByPriority: byPriority(totals, 'capture'),
    enqueuedByType: byQueue(totals, 'capture'),
    successByPriority: byPriority(totals, 'resolve'),
    successByType: byQueue(totals, 'resolve'),
    abandonedByPriority: byPriority(totals, 'exhaust'),
    abandonedByType: byQueue(totals, 'exhaust'),
    totalSettledRetries: total('retries', 'resolve') + total('retries', 'exhaust'),
    // A letter that is captured as parked waits for nothing.
    totalWaits: lifetime.captured - total('count', 'park-at-capture') + lifetime.rescheduled,
    totalBackoffMs:
      total('backoffMs', 'capture') -
      total('backoffMs', 'park-at-capture') +
      total('backoffMs', 'reschedule'),
    // A claim may yet be given back, or its letter not be fit to run.
    maxRetryCount: totals.reduce(
      (max, { action, maxRetries }) => (action === 'claim' ? max : Math.max(max, maxRetries)),
      0,
    ),
  }
}

/** Rejects what is no result of `metrics()` without `since`. */
function checkMetrics(since: Metrics): Counters {
  if ((since as Metrics | null)?.partial)
    throw new RedriveError(
      'INVALID_INPUT',
      '`since` must be a result of metrics() without `since`: this one counts only a part of the lifetime',
    )
  const empty = countersOf([])
  const isCounts = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((count) => Number.isFinite(count))
  for (const [key, kind] of Object.entries(empty)) {
    const value: unknown = (since as Partial<Metrics> | null)?.[key as keyof Metrics]
    if (typeof kind === 'object' ? !isCounts(value) : !Number.isFinite(value))
      throw new RedriveError(
        'INVALID_INPUT',
        `\`since\` must be an earlier result of metrics(): its ${key} is ${String(value).slice(0, 80)}`,
      )
  }
  return since
}

/** What was counted after the earlier ones. */
function countersAfter(now: Counters, earlier: Counters): Counters {
  const after: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(now)) {
    const before = earlier[key as keyof Counters]
    if (key === 'maxRetryCount') after[key] = Number(value) > Number(before) ? value : null
    else if (typeof value === 'number') after[key] = value - Number(before)
    else after[key] = countsAfter(key, value as Counts, before as Counts)
    if (key !== 'totalRetried' && Number(after[key]) < 0) throw ofAnother(key)
  }
  return after as unknown as Counters
}

type Counts = Record<string, number>

/** Priorities are all named, also without a count; of queues only those that were counted. */
function countsAfter(name: string, now: Counts, before: Counts): Counts {
  const counts = new Map(Object.entries(now))
  for (const [key, count] of Object.entries(before)) counts.set(key, (counts.get(key) ?? 0) - count)
  if ([...counts.values()].some((count) => count < 0)) throw ofAnother(name)
  const all = [...counts].filter(([, count]) => count > 0 || name.endsWith('ByPriority'))
  return Object.fromEntries(all)
}

function ofAnother(key: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `\`since\` counts more ${key} than this store: it is newer, or of another store`,
  )
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
    `- Max Retry Count: ${metrics.maxRetryCount ?? 'unknown'}`,
    ...(metrics.spool ? spoolLines(metrics.spool) : []),
  ].join('\n')
}

function spoolLines(spool: SpoolStatus): string[] {
  const aside = spool.damaged + spool.refused + spool.unreadable
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
