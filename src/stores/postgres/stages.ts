import type { LetterFilter, Order } from '../../letter/query.ts'
import { pending, retrying, wait, type Cell } from '../rows/codes.ts'
import type { Place } from '../search.ts'
import { sourceKey } from '../rows/source-key.ts'
import { cellTest, type Codes } from './filter.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { toText } from './text.ts'

/** What letters are put in order by within a stage. */
export type Key = 'id' | 'due' | 'settled' | 'none' | 'mixed'

/** Index ranges that are read side by side and merged into one order. */
export interface Stage {
  key: Key
  down: boolean
  /** What tells the ranges apart: one list for each of r.a, r.b and r.c. Empty: there is one range. */
  lists: number[][]
  /** The condition of a range; `put` adds a value and gives its name. */
  where: (put: (value: unknown) => string) => string
  after: Place | undefined
}

/** More ranges than this are not merged; the letters are walked by id instead. */
const maxRanges = 512
/** As many letters as this are sorted on the spot where an index finds them but in another order. */
const maxPoints = 1000
/** As few candidates as this are walked through whatever the filter says; no index would be faster. */
const maxCandidates = 2000

/** What letters without a key sort by: after all that have one. */
export const keyless = '~'

/** Whether a letter is ordered by its due time: a lease and a capture have one too, but no `retryAt`. */
export const isDue = 'l.retry_at IS NOT NULL AND l.state <> 1'

/** What a search goes by: its filter, as words and as numbers. */
export interface Sought {
  filter: LetterFilter
  codes: Codes
  order: Order
}

/** A search with the counts of what there is at the moment. */
export interface Moment extends Sought {
  cells: readonly [Cell, number][]
}

/** Which ranges hold all that can match, in the order asked. In orders by time, letters that have none come last. */
export async function stagesOf(
  tx: Transaction,
  sought: Moment,
  after: Place | undefined,
): Promise<Stage[]> {
  const { filter, order } = sought
  const down = order === 'newest'
  const byId = down || order === 'oldest'
  const points = await pointsOf(tx, filter)
  if (points) {
    const where: Stage['where'] = (put) => `l.id = ANY(${put(points)}::text[])`
    return [{ key: byId ? 'id' : 'mixed', down, lists: [], where, after }]
  }
  if (byId) return [{ key: 'id', down, ...idRanges(sought), after }]
  const timed: Stage = {
    key: order,
    down,
    ...(order === 'due' ? dueRanges(sought) : settledRanges(sought)),
    after,
  }
  const without = order === 'due' ? `NOT (${isDue})` : 'l.settled_at IS NULL'
  const last: Stage = {
    key: 'none',
    down,
    ...shelves(sought, without),
    after: after?.key === keyless ? after : undefined,
  }
  if (after?.key === keyless) return [last]
  return order === 'settled' && filter.settledBefore !== undefined ? [timed] : [timed, last]
}

/** The ids themselves, where they are given or an index says that they are few. */
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

type Ranges = Pick<Stage, 'lists' | 'where'>

const narrowColumns: [field: keyof LetterFilter, column: string][] = [
  ['lane', 'lane'],
  ['group', 'fingerprint'],
  ['reason', 'reason'],
  ['tenant', 'tenant'],
]

/**
 * The lists of every queue and state that the counts say are not empty, while they are short or nothing narrower is
 * asked; otherwise one index that knows the narrower.
 */
function idRanges(sought: Moment): Ranges {
  const { filter } = sought
  const narrow = matching(sought) > maxCandidates ? narrowest(filter) : undefined
  if (narrow) return { lists: [], where: narrow }
  const all = shelves(sought)
  return all.lists[0]!.length > maxRanges ? { lists: [], where: () => 'true' } : all
}

function narrowest(filter: LetterFilter): Stage['where'] | undefined {
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

function matching({ codes, cells }: Moment): number {
  const passes = cellTest(codes)
  return cells.reduce((sum, [cell, n]) => (passes(cell) ? sum + n : sum), 0)
}

/** Every queue and state that has letters which may match. */
function shelves({ codes, cells }: Moment, and = 'true'): Ranges {
  const passes = cellTest(codes)
  const found = new Map<number, Cell>()
  for (const [cell] of cells) if (passes(cell)) found.set(cell.queue * 8 + cell.state, cell)
  const all = [...found.values()]
  return {
    lists: [all.map(({ queue }) => queue), all.map(({ state }) => state)],
    where: () => `l.queue = r.a AND l.state = r.b AND ${and}`,
  }
}

/** By retryAt: the due index has the letters of a queue and a priority in this order, apart by where they wait. */
function dueRanges({ codes, cells }: Moment): Ranges {
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

function settledRanges(sought: Moment): Ranges {
  const { settledBefore } = sought.filter
  const { lists } = shelves(sought)
  return {
    lists,
    where: (put) =>
      `l.queue = r.a AND l.state = r.b AND l.settled_at IS NOT NULL` +
      (settledBefore === undefined ? '' : ` AND l.settled_at < ${put(settledBefore)}::text`),
  }
}
