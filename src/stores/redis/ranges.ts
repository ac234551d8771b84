import type { LetterFilter, Order } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import { priorities } from '../rows/codes.ts'
import type { Place } from '../search.ts'
import { sourceKey } from '../rows/source-key.ts'
import { listed } from '../rows/tally.ts'
import type { RedisConnection } from '../../backends/redis/connection.ts'
import { wantedStates } from './filter.ts'
import type { Hint } from './form.ts'

/**
 * Zsets that are read together, in groups, each by one script. All zsets of a queue are in one
 * group, so that a letter, which may change its state meanwhile but never its queue, is neither
 * missed nor seen twice.
 */
export interface RangeSet {
  groups: string[][]
  by: 'id' | 'time'
  /** A condition on letters in these zsets, which may contain others. */
  need?: 'retry' | 'no retry' | 'settled' | 'not settled'
  /** Only times before this one. */
  before?: number
}

/** The sort key of letters without a time: after all others. */
export const keyless = '~'

/** The maximum number of zsets that one script reads. */
const maxGroupKeys = 512

export interface RangeRequest {
  filter: LetterFilter
  order: Order
  after?: Place | undefined
}

/**
 * The zsets to read now, and those to read after them: in orders by time, letters without that time
 * come last.
 */
export async function rangeSetsOf(
  connection: RedisConnection,
  tag: string,
  request: RangeRequest,
): Promise<[RangeSet, RangeSet?]> {
  const { filter, order, after } = request
  const queues = await queuesOf(connection, tag, filter)
  const wanted = wantedStates(filter)
  const shelves = (kind: string): string[][] =>
    grouped(queues, (queue) => wanted.map((state) => `${kind}:${state}:${queue}`))
  if (order === 'newest' || order === 'oldest') {
    const narrow = await narrowest(connection, tag, filter, shelves('i').flat())
    return [{ groups: narrow === undefined ? shelves('i') : [[narrow]], by: 'id' }]
  }
  const need = order === 'due' ? 'no retry' : 'not settled'
  const last: RangeSet = { groups: shelves('i'), by: 'id', need }
  if (after?.key === keyless) return [last]
  if (order === 'due') return [{ groups: dueGroups(queues), by: 'time', need: 'retry' }, last]
  const timed: RangeSet = { groups: shelves('s'), by: 'time', need: 'settled' }
  if (filter.settledBefore === undefined) return [timed, last]
  return [{ ...timed, before: scoreOf(filter.settledBefore) }]
}

function dueGroups(queues: readonly string[]): string[][] {
  return grouped(queues, (queue) => [
    ...priorities.map((_, rank) => `d:${rank}:${queue}`),
    `w:${queue}`,
  ])
}

function grouped(queues: readonly string[], keysOf: (queue: string) => string[]): string[][] {
  const groups: string[][] = []
  for (const queue of queues) {
    const keys = keysOf(queue)
    const last = groups.at(-1)
    if (last && last.length + keys.length <= maxGroupKeys) last.push(...keys)
    else groups.push(keys)
  }
  return groups
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

/** Zsets by id that are narrower than a queue or a state. */
export function narrowKeys({
  group,
  tag,
  lane,
  tenant,
  reason,
  sourceId,
  dependent,
}: LetterFilter): string[] {
  const source = sourceId === undefined ? undefined : sourceKey(sourceId)
  const named = { f: source, g: group, t: tag, n: lane, o: tenant, r: reason }
  const keys = Object.entries(named).flatMap(([kind, name]) =>
    name === undefined ? [] : [`${kind}:${name.toWellFormed()}`],
  )
  return dependent === true ? [...keys, 'y'] : keys
}

/** The shortest narrower zset, unless those of the queues are shorter together. */
async function narrowest(
  connection: RedisConnection,
  tag: string,
  filter: LetterFilter,
  shelves: readonly string[],
): Promise<string | undefined> {
  const sizesOf = async (keys: readonly string[]): Promise<number[]> =>
    (await Promise.all(keys.map((key) => connection.send('ZCARD', `${tag}:${key}`)))).map(Number)
  const narrow = narrowKeys(filter)
  const sizes = await sizesOf(narrow)
  const least = Math.min(...sizes)
  const best = narrow[sizes.indexOf(least)]
  if (best === undefined || filter.queue === undefined) return best
  const splitReplies = (await sizesOf(shelves)).reduce((sum, size) => sum + size, 0)
  return least <= splitReplies ? best : undefined
}

/** A timestamp as the score of a zset. */
export function scoreOf(at: string): number {
  return toMs(at) || 0
}

/** What the name of a zset tells about its letters. */
export function hintOf(key: string): Hint {
  const [, state, queue] = /^[is]:(\d):([\s\S]*)$/.exec(key) ?? []
  return state === undefined ? {} : { state: Number(state), queue: queue! }
}
