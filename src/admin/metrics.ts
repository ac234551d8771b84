import { RedriveError } from '../errors.ts'
import { priorities, type Priority } from '../letter/letter.ts'
import { escapeHidden } from '../letter/payload-view.ts'
import type { SpoolStatus, Total } from '../store.ts'
import { lifetimeOf, sumTotals, withZeros } from './statistics.ts'

/** Exact counters and averages, also by priority and queue. */
export interface Metrics {
  totalEnqueued: number
  /**
   * Runs, including those reported with `fail`, without runs that were released uncounted. With
   * `since`, a run that was counted before and released after it subtracts one.
   */
  totalRetried: number
  totalSuccesses: number
  totalAbandoned: number
  /** Letters that were parked, also at capture. */
  totalManualReviews: number
  /** Letters published to their source. */
  totalReplayed: number
  enqueuedByPriority: Record<Priority, number>
  enqueuedByType: Record<string, number>
  successByPriority: Record<Priority, number>
  successByType: Record<string, number>
  abandonedByPriority: Record<Priority, number>
  abandonedByType: Record<string, number>
  /** Average number of retries of a letter when it was resolved or exhausted. */
  avgRetryCount: number
  /** Average delay before a retry. */
  avgBackoffMs: number
  /**
   * Most retries of a letter after a run. With `since`, null unless it has grown: the store knows
   * only the maximum of its lifetime.
   */
  maxRetryCount: number | null
  /**
   * Shares of the enqueued letters, from 0 to 1. With `since`, above 1 if older letters settled.
   */
  successRate: number
  abandonmentRate: number
  /** Sum behind `avgRetryCount`: retries of all letters when they were resolved or exhausted. */
  totalSettledRetries: number
  /** Number and sum of the delays behind `avgBackoffMs`. */
  totalWaits: number
  totalBackoffMs: number
  /** True for a result of `metrics({ since })`, which cannot be used as `since` itself. */
  partial?: true
  /** Present state of the spool, if there is one, with or without `since`. */
  spool?: SpoolStatus
}

export interface MetricsQuery {
  /** An earlier result of `metrics()` of the same store: only later events count. */
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
    sumTotals(totals, action, field)
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
    // A letter that was parked at capture has no delay.
    totalWaits: lifetime.captured - total('count', 'park-at-capture') + lifetime.rescheduled,
    totalBackoffMs:
      total('backoffMs', 'capture') -
      total('backoffMs', 'park-at-capture') +
      total('backoffMs', 'reschedule'),
    // A claim may still be released, or its letter may be unfit to run.
    maxRetryCount: totals.reduce(
      (max, { action, maxRetries }) => (action === 'claim' ? max : Math.max(max, maxRetries)),
      0,
    ),
  }
}

/** Checks that `since` is a result of `metrics()` without `since`. */
function checkMetrics(since: Metrics): Counters {
  if ((since as Metrics | null)?.partial)
    throw new RedriveError(
      'INVALID_INPUT',
      '`since` must be a result of metrics() without `since`: a partial result cannot be used',
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

/** The difference between two sets of counters. */
function countersAfter(now: Counters, earlier: Counters): Counters {
  const after: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(now)) {
    const before = earlier[key as keyof Counters]
    if (key === 'maxRetryCount') after[key] = Number(value) > Number(before) ? value : null
    else if (typeof value === 'number') after[key] = value - Number(before)
    else after[key] = countsAfter(key, value as Counts, before as Counts)
    if (key !== 'totalRetried' && Number(after[key]) < 0) throw notEarlierError(key)
  }
  return after as unknown as Counters
}

type Counts = Record<string, number>

/** Lists all priorities, but only the queues with a count. */
function countsAfter(name: string, now: Counts, before: Counts): Counts {
  const counts = new Map(Object.entries(now))
  for (const [key, count] of Object.entries(before)) counts.set(key, (counts.get(key) ?? 0) - count)
  if ([...counts.values()].some((count) => count < 0)) throw notEarlierError(name)
  const all = [...counts].filter(([, count]) => count > 0 || name.endsWith('ByPriority'))
  return Object.fromEntries(all)
}

function notEarlierError(key: string): RedriveError {
  return new RedriveError(
    'INVALID_INPUT',
    `\`since\` counts more ${key} than this store: it is newer, or from another store`,
  )
}

function byPriority(totals: readonly Total[], action: Total['action']): Record<Priority, number> {
  const counts = new Map<string, number>()
  for (const row of totals)
    if (row.action === action) counts.set(row.priority, (counts.get(row.priority) ?? 0) + row.count)
  return withZeros(priorities, counts)
}

function byQueue(totals: readonly Total[], action: Total['action']): Record<string, number> {
  const counts = new Map<string, number>()
  for (const row of totals)
    if (row.action === action) counts.set(row.queue, (counts.get(row.queue) ?? 0) + row.count)
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The metrics as a string for people. */
export function formatSummary(metrics: Metrics): string {
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
  const setAside = spool.damaged + spool.refused + spool.unreadable
  return [
    '',
    'Spool:',
    `- Waiting: ${spool.letters} (${spool.bytes} bytes)`,
    `- Oldest: ${spool.oldestAt ?? 'none'}`,
    `- Drained: ${spool.drained}`,
    `- Set Aside: ${setAside}`,
  ]
}
