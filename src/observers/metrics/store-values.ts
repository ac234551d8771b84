import type { Clock } from '../../clock/clock.ts'
import { endsWithin } from '../../clock/ends-within.ts'
import { RedriveError } from '../../errors.ts'
import type { BulkAction } from '../../letter/bulk-action.ts'
import { isOpen, states, type State } from '../../letter/letter.ts'
import type { LetterQuery } from '../../letter/query.ts'
import { toMs, type Timestamp } from '../../letter/time.ts'
import type { Alert } from '../../policy/alert-rule.ts'
import type { SpoolStatus, Store, Total } from '../../store.ts'
import { letterQueueName } from './handled-letter.ts'
import type { LabelValues } from './label-values.ts'
import type { MetricSet } from './metric-set.ts'
import { metricDefinitions, metricNames } from './definitions.ts'

/** The part of a `DeadLetterQueue` that a scrape reads. */
export interface ScrapedQueue {
  readonly store: Pick<Store, 'tally' | 'totals'> & {
    find(query: LetterQuery): Promise<{ items: readonly { deadLetteredAt: Timestamp }[] }>
  }
  health(): Promise<ScrapedHealth>
  activeBulkActions(): Promise<BulkAction[]>
}

/** The part of the health of a queue that is shown as metrics. */
export interface ScrapedHealth {
  ok: boolean
  processor: { active: number }
  spool?: SpoolStatus
  alerts: readonly Alert[]
  pausedQueues: readonly unknown[]
}

export interface StoreValues {
  letters: [State, ReadonlyMap<string, number>][]
  /** When the oldest letter of each open state was stored. */
  oldest: [State, number][]
  totals: readonly Total[]
  actions: readonly BulkAction[]
}

/** Prometheus gives up after 10 seconds, and a scrape must be over before. */
const readTimeoutMs = 5000

/**
 * Reads maintained counts and the start of one index range for each open state, so that the cost
 * does not grow with the number of letters.
 */
export async function readStoreValues(queue: ScrapedQueue, clock: Clock): Promise<StoreValues> {
  const { store } = queue
  const reading = Promise.all([
    Promise.all(
      states.map(async (state): Promise<[State, Map<string, number>]> => {
        return [state, await store.tally('queue', { state })]
      }),
    ),
    Promise.all(
      states.filter(isOpen).map(async (state): Promise<[State, number][]> => {
        const { items } = await store.find({ state, order: 'oldest', limit: 1 })
        return items.map(({ deadLetteredAt }) => [state, toMs(deadLetteredAt)])
      }),
    ),
    store.totals(),
    queue.activeBulkActions(),
  ])
  const [letters, oldest, totals, actions] = await limitTime(clock, reading)
  return { letters, oldest: oldest.flat(), totals, actions }
}

export function readHealth(queue: ScrapedQueue, clock: Clock): Promise<ScrapedHealth> {
  return limitTime(clock, queue.health())
}

async function limitTime<T>(clock: Clock, reading: Promise<T>): Promise<T> {
  if (await endsWithin(clock, reading, readTimeoutMs)) return reading
  throw new RedriveError(
    'STORE_UNAVAILABLE',
    `the store did not answer a scrape within ${readTimeoutMs} ms`,
  )
}

const fromStore = metricNames.filter((name) => metricDefinitions[name].of === 'store')

const fromHealth = [
  'redrive_runs_active',
  'redrive_spool_letters',
  'redrive_spool_bytes',
  'redrive_spool_oldest_age_seconds',
  'redrive_spool_files_set_aside',
] as const

/** Removes all values of the last scrape. A value that cannot be read is left out. */
export function clearReadValues(set: MetricSet): void {
  for (const name of [...fromStore, ...fromHealth]) set.clear(name)
}

export function setStoreValues(
  set: MetricSet,
  values: StoreValues,
  health: ScrapedHealth | undefined,
  labels: { queues: LabelValues; alerts: LabelValues },
  nowMs: number,
): void {
  const { letters, oldest, totals, actions } = values
  const { queues } = labels
  setLetters(set, letters, queues)
  for (const [state, atMs] of oldest)
    set.set('redrive_oldest_letter_age_seconds', { state }, secondsSince(atMs, nowMs))
  for (const { queue, action, count } of totals)
    set.add('redrive_actions_total', { queue: queues.of(queue), action }, count)
  setBulkActions(set, actions)
  if (!health) return
  setAlerts(set, health.alerts, labels.alerts)
  set.set('redrive_paused_queues', {}, health.pausedQueues.length)
}

/** The values of this process. They do not need the store. */
export function setHealth(
  set: MetricSet,
  { processor, spool }: ScrapedHealth,
  nowMs: number,
): void {
  set.set('redrive_runs_active', {}, processor.active)
  set.set('redrive_spool_letters', {}, spool?.letters ?? 0)
  set.set('redrive_spool_bytes', {}, spool?.bytes ?? 0)
  for (const what of ['damaged', 'refused', 'unreadable'] as const)
    set.set('redrive_spool_files_set_aside', { what }, spool?.[what] ?? 0)
  if (!spool?.oldestAt) return
  const oldestMs = toMs(spool.oldestAt)
  set.set('redrive_spool_oldest_age_seconds', {}, secondsSince(oldestMs, nowMs))
}

function secondsSince(sinceMs: number, nowMs: number): number {
  return Math.max(0, nowMs - sinceMs) / 1000
}

function setLetters(set: MetricSet, letters: StoreValues['letters'], queues: LabelValues): void {
  const byState = new Map(letters.map(([state]) => [state, new Map<string, number>()]))
  const depths = new Map<string, number>()
  const names = letters.flatMap(([, counts]) => [...counts])
  // The largest queues first, so that they are the ones with series of their own.
  for (const [name] of names.sort(([, a], [, b]) => b - a)) queues.of(name)
  for (const [state, counts] of letters)
    for (const [name, count] of counts) {
      const queue = queues.of(name)
      const ofState = byState.get(state)!
      ofState.set(queue, (ofState.get(queue) ?? 0) + count)
      depths.set(queue, (depths.get(queue) ?? 0) + (isOpen(state) ? count : 0))
    }
  for (const [queue, depth] of depths) {
    set.set('dlq_queue_depth', { dlq: letterQueueName(queue) }, depth)
    for (const [state, counts] of byState)
      set.set('redrive_letters', { queue, state }, counts.get(queue) ?? 0)
  }
}

function setBulkActions(set: MetricSet, actions: readonly BulkAction[]): void {
  const counts = new Map<string, number>()
  const letters = new Map<string, number>()
  const add = (to: Map<string, number>, key: string, by: number): unknown =>
    to.set(key, (to.get(key) ?? 0) + by)
  for (const { action, state, progress } of actions) {
    add(counts, `${action} ${state}`, 1)
    for (const [outcome, count] of Object.entries(progress))
      add(letters, `${action} ${outcome}`, count)
  }
  for (const [key, count] of counts) {
    const [action = '', state = ''] = key.split(' ')
    set.set('redrive_bulk_actions', { action, state }, count)
  }
  for (const [key, count] of letters) {
    const [action = '', outcome = ''] = key.split(' ')
    set.set('redrive_bulk_letters', { action, outcome }, count)
  }
}

function setAlerts(set: MetricSet, alerts: readonly Alert[], names: LabelValues): void {
  const counts = new Map<string, { alert: string; severity: string; count: number }>()
  for (const { name, severity, group } of alerts) {
    // The name of a group alert ends with its fingerprint, which would be a series per group.
    const alert = names.of(group === undefined ? name : name.slice(0, -group.length - 1))
    const key = `${severity} ${alert}`
    counts.set(key, { alert, severity, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  for (const { alert, severity, count } of counts.values())
    set.set('redrive_alerts_raised', { alert, severity }, count)
}
