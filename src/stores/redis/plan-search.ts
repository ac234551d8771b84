import type { LetterFilter, Order } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import type { Reply, RedisConnection } from '../../backends/redis/connection.ts'
import { toText } from '../../backends/redis/connection.ts'
import { reasonCode, states, wait } from '../rows/codes.ts'
import { narrowRanges, planStages, type NarrowIndex, type Range, type Stage } from '../rows/plan.ts'
import { sourceKey } from '../rows/source-key.ts'
import { cellCodes, listed } from '../rows/tally.ts'
import type { StoreContext } from './context.ts'
import type { Hint } from './decode.ts'
import { cell } from './fields.ts'

/** The maximum number of zsets that one script reads. */
const maxGroupKeys = 512

/** Up to this number, letters are read by id and sorted here if no index has their order. */
const maxSorted = 2000

const narrowKeys: Record<NarrowIndex, string> = {
  source: 'f',
  tag: 't',
  lane: 'n',
  group: 'g',
  tenant: 'o',
}

export interface SearchPlan {
  filter: LetterFilter
  order: Order
  stages: Stage<string>[]
  /** The list ranges of all queues and states of the filter. */
  all: Range<string>[]
}

/** Decides which indexes a search reads. */
export async function planSearch(
  { connection, tag }: StoreContext,
  filter: LetterFilter,
  order: Order,
): Promise<SearchPlan> {
  const ids = await fewIds(connection, tag, filter, order)
  const queues = ids ? [] : await queuesOf(connection, tag, filter)
  const wanted = statesOf(filter)
  const all = queues.flatMap((queue) =>
    wanted.map((state): Range<string> => ({ index: 'list', queue, state })),
  )
  const preferNarrow = !ids && (await isNarrow(connection, tag, filter, all))
  const stages = planStages({ filter, order, queues, states: wanted, ids, preferNarrow })
  return { filter, order, stages, all }
}

function statesOf(filter: LetterFilter): number[] {
  return cellCodes(filter).states ?? [...states.keys()]
}

async function queuesOf(
  connection: RedisConnection,
  tag: string,
  { queue }: LetterFilter,
): Promise<string[]> {
  if (queue !== undefined) return [...new Set(listed(queue).map((name) => name.toWellFormed()))]
  const cells = (await connection.send('HKEYS', `${tag}:cells`)) as Buffer[]
  return [...new Set(cells.map((cell) => cell.toString().replace(/^\d+:/, '')))]
}

/** The ids, if they are given or an index shows that they are few but in another order. */
async function fewIds(
  connection: RedisConnection,
  tag: string,
  filter: LetterFilter,
  order: Order,
): Promise<string[] | undefined> {
  if (filter.ids) return [...new Set(filter.ids)]
  const ranges: string[][] = []
  if (filter.expiresBefore !== undefined)
    ranges.push(['x', '-inf', `(${toMs(filter.expiresBefore)}`, 'BYSCORE'])
  const narrow = order === 'due' || order === 'settled' ? narrowRanges<string>(filter) : undefined
  if (narrow?.length === 1) ranges.push([keyOf(narrow[0]!), '-', '+', 'BYLEX'])
  for (const [key, ...range] of ranges) {
    const limit = ['LIMIT', '0', String(maxSorted + 1)]
    const found = await connection.send('ZRANGE', `${tag}:${key}`, ...range, ...limit)
    const ids = (found as Reply[]).map(toText)
    if (ids.length <= maxSorted) return ids
  }
  return undefined
}

/** Whether the index of one field has fewer letters than the lists of the queues. */
async function isNarrow(
  connection: RedisConnection,
  tag: string,
  filter: LetterFilter,
  lists: readonly Range<string>[],
): Promise<boolean> {
  const narrow = narrowRanges<string>(filter)
  if (!narrow || filter.queue === undefined) return narrow !== undefined
  const sizeOf = async (ranges: readonly Range<string>[]): Promise<number> => {
    const sizes = await Promise.all(
      ranges.map((range) => connection.send('ZCARD', `${tag}:${keyOf(range)}`)),
    )
    return sizes.reduce<number>((sum, size) => sum + Number(size), 0)
  }
  const [size, others] = await Promise.all([sizeOf(narrow), sizeOf(lists)])
  return size <= others
}

/** The zset of a range, without the hash tag. */
function keyOf(range: Range<string>): string {
  switch (range.index) {
    case 'list':
      return `i:${range.state}:${range.queue}`
    case 'settled':
      return `s:${range.state}:${range.queue}`
    case 'due':
      return range.wait === wait.ready ? `d:${range.priority}:${range.queue}` : `w:${range.queue}`
    case 'unmet':
      return 'y'
    case 'ids':
    case 'all':
      throw new TypeError(`no zset has the range ${range.index}`)
    default:
      return `${narrowKeys[range.index]}:${range.value.toWellFormed()}`
  }
}

/**
 * The zsets of a stage, in groups, each read by one script. All zsets of a queue are in one group,
 * so that a letter, which may change its state meanwhile but never its queue, is neither missed nor
 * seen twice.
 */
export function groupKeys({ all }: SearchPlan, { ranges }: Stage<string>): string[][] {
  const byQueue = new Map<string, Set<string>>()
  for (const range of ranges.some(({ index }) => index === 'all') ? all : ranges) {
    const queue = 'queue' in range ? range.queue : ''
    const keys = byQueue.get(queue) ?? new Set()
    byQueue.set(queue, keys.add(keyOf(range)))
  }
  const groups: string[][] = []
  for (const keys of byQueue.values()) {
    const last = groups.at(-1)
    if (last && last.length + keys.size <= maxGroupKeys) last.push(...keys)
    else groups.push([...keys])
  }
  return groups
}

/** What the name of a zset tells about its letters. */
export function hintOf(key: string): Hint {
  const [, state, queue] = /^[is]:(\d):([\s\S]*)$/.exec(key) ?? []
  return state === undefined ? {} : { state: Number(state), queue: queue! }
}

/**
 * A filter for scripts: the conditions on fields of the letter. `among` has the values that are
 * allowed, by cell or field, `kinds` those of queues and groups; times are in milliseconds.
 * `matches` decides.
 */
export function fieldFilter(filter: LetterFilter): object {
  const { queue, reason, group, lane, tenant, sourceId, tag, dependent } = filter
  const codes = cellCodes(filter)
  const text = (value: string | string[] | undefined): string[] | undefined =>
    value === undefined ? undefined : listed(value).map((one) => one.toWellFormed())
  const ms = (at: string | undefined): number | undefined => (at === undefined ? at : toMs(at))
  return {
    among: {
      [cell['state']!]: codes.states,
      [cell['category']!]: codes.categories,
      [cell['priority']!]: codes.priorities,
      [cell['policy']!]: codes.policies,
      [cell['reason']!]: reason === undefined ? undefined : [reasonCode(reason)],
      la: text(lane),
      te: text(tenant),
      so: sourceId === undefined ? undefined : [sourceKey(sourceId)],
    },
    kinds: { q: text(queue), g: text(group) },
    tag: tag?.toWellFormed(),
    since: ms(filter.since),
    until: ms(filter.until),
    settledBefore: ms(filter.settledBefore),
    expiresBefore: ms(filter.expiresBefore),
    dependent,
  }
}
