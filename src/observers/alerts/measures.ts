import { toMs } from '../../letter/time.ts'
import type { AlertRule } from '../../policy/alert-rule.ts'
import type { Measures, QueueMeasures } from '../../policy/alert-measures.ts'
import type { Store, Total } from '../../store.ts'

/** Maintained counts of a store, as `tally` and `totals` give them. */
export interface Counts {
  /** Number of stored letters, excluding archived ones. */
  size: number
  /** Infinity: no limit. */
  maxItems: number
  /** Letters by queue, for each of these states. */
  exhausted: ReadonlyMap<string, number>
  parked: ReadonlyMap<string, number>
  pending: ReadonlyMap<string, number>
  totals: readonly Total[]
}

/**
 * A run counts as failed if its letter was rescheduled, exhausted or parked. Totals do not record
 * who did it, so letters that people and sweeps resolve or park count as well.
 */
export const outcomeOfAction: Partial<Record<Total['action'], 'resolved' | 'failed' | 'captured'>> =
  {
    capture: 'captured',
    occur: 'captured',
    resolve: 'resolved',
    reschedule: 'failed',
    exhaust: 'failed',
    park: 'failed',
  }

export function measuresOf(counts: Counts): Measures {
  const queues = new Map<string, QueueMeasures>()
  const all = createMeasures()
  const count = (queue: string, what: Counted, by: number): void => {
    const own = queues.get(queue) ?? createMeasures()
    queues.set(queue, own)
    own[what] += by
    all[what] += by
  }
  for (const state of ['exhausted', 'parked', 'pending'] as const)
    for (const [queue, letters] of counts[state]) count(queue, state, letters)
  for (const total of counts.totals) {
    const outcome = outcomeOfAction[total.action]
    if (outcome) count(total.queue, outcome, total.count)
  }
  const { size, maxItems } = counts
  const utilisation = Number.isFinite(maxItems) ? { utilisation: size / maxItems } : {}
  return { ...utilisation, all, queues }
}

type Counted = Exclude<keyof QueueMeasures, 'pendingAgeMs'>

function createMeasures(): QueueMeasures {
  return { exhausted: 0, parked: 0, pending: 0, resolved: 0, failed: 0, captured: 0 }
}

/** Reads maintained counts only: the cost does not grow with the number of letters. */
export async function readMeasures(
  store: Pick<Store, 'tally' | 'totals'>,
  maxItems: number,
): Promise<Measures> {
  const [byState, exhausted, parked, pending, totals] = await Promise.all([
    store.tally('state'),
    store.tally('queue', { state: 'exhausted' }),
    store.tally('queue', { state: 'parked' }),
    store.tally('queue', { state: 'pending' }),
    store.totals(),
  ])
  const size = [...byState.values()].reduce((sum, letters) => sum + letters, 0)
  return measuresOf({ size, maxItems, exhausted, parked, pending, totals })
}

/** Adds the age of the oldest pending letter, for the rules that need it. */
export async function addPendingAges(
  measures: Measures,
  store: Pick<Store, 'find'>,
  rules: readonly AlertRule[],
  nowMs: number,
): Promise<void> {
  const queues = rules.flatMap(({ when, queue }) => (when.metric === 'pending-age' ? [queue] : []))
  for (const queue of new Set(queues)) {
    const where = queue === undefined ? {} : { queue }
    const page = await store.find({ ...where, state: 'pending', order: 'oldest', limit: 1 })
    const [oldest] = page.items
    const counts = queue === undefined ? measures.all : measures.queues.get(queue)
    if (oldest && counts) counts.pendingAgeMs = nowMs - toMs(oldest.deadLetteredAt)
  }
}
