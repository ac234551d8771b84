import { checkFilter } from '../check/filter.ts'
import { checkKeys, describeValue, keysOf } from '../check/keys.ts'
import { RedriveError } from '../errors.ts'
import { isOpen, states, type State } from '../letter/letter.ts'
import type { PausedQueue } from '../letter/paused-queue.ts'
import { maxLimit, type LetterFilter, type Page } from '../letter/query.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'
import { withZeros } from './statistics.ts'

/** A queue that has letters or is paused. */
export interface QueueSummary {
  queue: string
  /** Number of letters, excluding archived ones. */
  count: number
  states: Record<State, number>
  /** The oldest letter that is neither resolved nor archived. */
  oldest?: { id: string; at: Timestamp }
  paused?: PausedQueue
}

export interface QueuesQuery extends Pick<LetterFilter, 'queue' | 'tenant'> {
  /** Page size, from 1 to 1,000. Default: 100. */
  limit?: number
  cursor?: string
}

const queryKeys = keysOf<QueuesQuery>({ queue: true, tenant: true, limit: true, cursor: true })
const defaultQueues = 100
/** Queues whose oldest letter is looked up at once. */
const lookupsAtOnce = 20

/**
 * Queues by name, a page at a time. Counts are maintained by the store, unless `tenant` is given:
 * then it reads the letters of the tenant.
 */
export async function listQueues(
  store: Pick<Store, 'tally' | 'find'>,
  paused: readonly PausedQueue[],
  query: QueuesQuery,
): Promise<Page<QueueSummary>> {
  checkKeys('queues query', query, queryKeys)
  const { limit = defaultQueues, cursor = '', ...filter } = query
  checkFilter(filter)
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw new RedriveError(
      'INVALID_INPUT',
      `limit must be an integer from 1 to ${maxLimit}, got ${describeValue(limit)}`,
    )
  const byState = new Map(
    await Promise.all(
      states.map(
        async (state) => [state, await store.tally('queue', { ...filter, state })] as const,
      ),
    ),
  )
  const wanted = filter.queue === undefined ? undefined : [filter.queue].flat()
  const pausedByName = new Map(
    paused.filter(({ queue }) => wanted?.includes(queue) ?? true).map((one) => [one.queue, one]),
  )
  const withLetters = [...byState.values()].flatMap((counts) => [...counts.keys()])
  // A queue without letters belongs to no tenant.
  const empty = filter.tenant === undefined ? pausedByName.keys() : []
  const after = [...new Set([...withLetters, ...empty])].filter((name) => name > cursor).sort()
  const names = after.slice(0, limit)
  const items: QueueSummary[] = []
  for (let from = 0; from < names.length; from += lookupsAtOnce)
    items.push(
      ...(await Promise.all(
        names
          .slice(from, from + lookupsAtOnce)
          .map((queue) => summarize(store, { ...filter, queue }, byState, pausedByName.get(queue))),
      )),
    )
  return after.length > limit ? { items, cursor: names.at(-1)! } : { items }
}

async function summarize(
  store: Pick<Store, 'find'>,
  filter: LetterFilter & { queue: string },
  byState: ReadonlyMap<State, ReadonlyMap<string, number>>,
  paused: PausedQueue | undefined,
): Promise<QueueSummary> {
  const { queue } = filter
  const counts = withZeros(
    states,
    new Map([...byState].map(([state, queues]) => [state, queues.get(queue) ?? 0])),
  )
  const open = states.filter((state) => isOpen(state) && counts[state] > 0)
  const query = { ...filter, state: open, order: 'oldest', limit: 1 } as const
  const [oldest] = open.length > 0 ? (await store.find(query)).items : []
  return {
    queue,
    count: states.reduce((sum, state) => sum + (state === 'archived' ? 0 : counts[state]), 0),
    states: counts,
    ...(oldest ? { oldest: { id: oldest.id, at: oldest.deadLetteredAt } } : {}),
    ...(paused ? { paused } : {}),
  }
}
