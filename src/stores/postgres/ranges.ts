import type { LetterFilter, Order } from '../../letter/query.ts'
import { pending, retrying, wait, type Cell } from '../rows/codes.ts'
import type { Place } from '../search.ts'
import { sourceKey } from '../rows/source-key.ts'
import { cellTest, type Codes } from './filter.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { toText } from './text.ts'

/** The sort key within a range set. */
export type Key = 'id' | 'due' | 'settled' | 'none' | 'mixed'

/** Index ranges that are read runBatch and merged into one order. */
export interface RangeSet {
  key: Key
  down: boolean
  /**
   * The parameters of the ranges: one list for each of r.a, r.b and r.c. Empty: there is one range.
   */
  lists: number[][]
  /** The condition of a range; `put` adds a value and returns its placeholder. */
  where: (put: (value: unknown) => string) => string
  after: Place | undefined
}

/** The maximum number of ranges to merge; beyond it, letters are read by id. */
const maxRanges = 512
/** The maximum number of letters to sort where an index finds them in another order. */
const maxPoints = 1000
/** Up to this number of candidates, reading all of them is faster than any index. */
const maxCandidates = 2000

/** The sort key of letters without a key: after all others. */
export const keyless = '~'

/**
 * Whether a letter is ordered by its due time: leased and new letters have a due time too, but no
 * `retryAt`.
 */
export const isDue = 'l.retry_at IS NOT NULL AND l.state <> 1'

/** The filter of a search, as given and in codes. */
export interface FilterQuery {
  filter: LetterFilter
  codes: Codes
  order: Order
}

/** A search, with the current counts. */
export interface CountedQuery extends FilterQuery {
  cells: readonly [Cell, number][]
}

/**
 * The ranges that contain all possible matches, in the order of the search. In orders by time,
 * letters without that time come last.
 */
export async function rangeSetsOf(
  tx: Transaction,
  query: CountedQuery,
  after: Place | undefined,
): Promise<RangeSet[]> {
  const { filter, order } = query
  const down = order === 'newest'
  const byId = down || order === 'oldest'
  const points = await pointsOf(tx, filter)
  if (points) {
    const where: RangeSet['where'] = (put) => `l.id = ANY(${put(points)}::text[])`
    return [{ key: byId ? 'id' : 'mixed', down, lists: [], where, after }]
  }
  if (byId) return [{ key: 'id', down, ...idRanges(query), after }]
  const timed: RangeSet = {
    key: order,
    down,
    ...(order === 'due' ? dueRanges(query) : settledRanges(query)),
    after,
  }
  const without = order === 'due' ? `NOT (${isDue})` : 'l.settled_at IS NULL'
  const last: RangeSet = {
    key: 'none',
    down,
    ...rangesByState(query, without),
    after: after?.key === keyless ? after : undefined,
  }
  if (after?.key === keyless) return [last]
  return order === 'settled' && filter.settledBefore !== undefined ? [timed] : [timed, last]
}

/** The ids, if they are given or an index shows that they are few. */
async function pointsOf(
  tx: Transaction,
  { ids, sourceId, expiresBefore }: LetterFilter,
): Promise<string[] | undefined> {
  if (ids) return ids.map(toText)
  const few = async (end: string, value: string): Promise<string[] | undefined> => {
    const sql = `SELECT id FROM @letters WHERE ${end} LIMIT $2`
    const found = await tx.rows(sql, [value, maxPoints + 1])
    return found.length > maxPoints ? undefined : found.map(([id]) => id as string)
  }
  if (sourceId !== undefined) {
    const points = await few('source_id = $1 ORDER BY source_id, id', toText(sourceKey(sourceId)))
    if (points) return points
  }
  if (expiresBefore === undefined) return undefined
  return few('expires_at < $1 ORDER BY expires_at, id', expiresBefore)
}

type Ranges = Pick<RangeSet, 'lists' | 'where'>

const narrowColumns: [field: keyof LetterFilter, column: string][] = [
  ['lane', 'lane'],
  ['group', 'fingerprint'],
  ['reason', 'reason'],
  ['tenant', 'tenant'],
]

/**
 * The ranges of every queue and state that are not empty, while they are short or the filter has no
 * narrower field; otherwise an index of the narrower field.
 */
function idRanges(query: CountedQuery): Ranges {
  const { filter } = query
  const narrow = matching(query) > maxCandidates ? narrowest(filter) : undefined
  if (narrow) return { lists: [], where: narrow }
  const all = rangesByState(query)
  return all.lists[0]!.length > maxRanges ? { lists: [], where: () => 'true' } : all
}

function narrowest(filter: LetterFilter): RangeSet['where'] | undefined {
  const { tag } = filter
  if (tag !== undefined)
    return (put) => `l.id IN (SELECT t.id FROM @tags t WHERE t.tag = ${put(toText(tag))}::text)`
  const { sourceId } = filter
  if (sourceId !== undefined)
    return (put) => `l.source_id = ${put(toText(sourceKey(sourceId)))}::text`
  for (const [field, column] of narrowColumns) {
    const value = filter[field]
    if (typeof value === 'string') return (put) => `l.${column} = ${put(toText(value))}::text`
  }
  return filter.dependent === true ? () => 'l.dependent = 1' : undefined
}

function matching({ codes, cells }: CountedQuery): number {
  const passes = cellTest(codes)
  return cells.reduce((sum, [cell, n]) => (passes(cell) ? sum + n : sum), 0)
}

/** Every queue and state with letters that may match. */
function rangesByState({ codes, cells }: CountedQuery, and = 'true'): Ranges {
  const passes = cellTest(codes)
  const found = new Map<number, Cell>()
  for (const [cell] of cells) if (passes(cell)) found.set(cell.queue * 8 + cell.state, cell)
  const all = [...found.values()]
  return {
    lists: [all.map(({ queue }) => queue), all.map(({ state }) => state)],
    where: () => `l.queue = r.a AND l.state = r.b AND ${and}`,
  }
}

/**
 * The ranges by retryAt: the due index orders the letters of a queue and priority, separated by
 * wait state.
 */
function dueRanges({ codes, cells }: CountedQuery): Ranges {
  const passes = cellTest(codes)
  const places = new Set<string>()
  for (const [cell] of cells) {
    if (!passes(cell) || cell.state === retrying) continue
    const waits = cell.state === pending ? [wait.ready, wait.held] : [wait.resting]
    for (const place of waits) places.add(`${cell.queue} ${place} ${cell.priority}`)
  }
  const all = [...places].map((place) => place.split(' ').map(Number))
  return {
    lists: [0, 1, 2].map((at) => all.map((place) => place[at]!)),
    where: () => 'l.queue = r.a AND l.wait = r.b AND l.priority = r.c AND l.due_at IS NOT NULL',
  }
}

function settledRanges(query: CountedQuery): Ranges {
  const { settledBefore } = query.filter
  const { lists } = rangesByState(query)
  return {
    lists,
    where: (put) =>
      `l.queue = r.a AND l.state = r.b AND l.settled_at IS NOT NULL` +
      (settledBefore === undefined ? '' : ` AND l.settled_at < ${put(settledBefore)}::text`),
  }
}
