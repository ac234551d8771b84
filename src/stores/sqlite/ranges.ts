import { toMs } from '../../letter/time.ts'
import type { SqlValue } from '../rows/columns.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { comparePlaces, keyless, keyTime, timeKey, type Range, type Stage } from '../rows/plan.ts'
import type { Place, Search } from '../search.ts'
import type { StoreContext } from './context.ts'
import { conditionOf, type Condition } from './filter.ts'
import { idOf } from './schema.ts'
import { formatId } from './transfer.ts'

/** A letter in an index: its place in the order, and whether it matches. */
export interface IndexEntry {
  place: Place
  seq: number
  fits: boolean
}

export interface RangePart {
  entries: IndexEntry[]
  /** The range was read up to here. Absent: to its end. */
  end?: Place
}

/** Where entries of a range are read from. The parameters follow the condition. */
const sources: Record<Exclude<Range<number>['index'], 'ids'>, string> = {
  list: 'letters INDEXED BY letters_list WHERE queue = ? AND state = ?',
  due: `letters INDEXED BY letters_due
    WHERE queue = ? AND wait = ? AND priority = ? AND due_at IS NOT NULL`,
  settled: `letters INDEXED BY letters_settled
    WHERE queue = ? AND state = ? AND settled_at IS NOT NULL AND settled_at < ?`,
  source: 'letters INDEXED BY letters_source WHERE source_id = ?',
  lane: 'letters INDEXED BY letters_lane WHERE lane = ?',
  group: 'letters INDEXED BY letters_group WHERE fingerprint = ?',
  tenant: 'letters INDEXED BY letters_tenant WHERE tenant = ?',
  tag: 'tags CROSS JOIN letters ON letters.seq = tags.seq WHERE tags.tag = ?',
  unmet: 'letters INDEXED BY letters_unmet WHERE unmet > 0',
  all: 'letters INDEXED BY letters_id WHERE 1',
}

/** Later than all timestamps. */
const endOfTime = 10 ** 15

function paramsOf(range: Range<number>, { filter }: Pick<Search, 'filter'>): SqlValue[] {
  switch (range.index) {
    case 'list':
      return [range.queue, range.state]
    case 'due':
      return [range.queue, range.wait, range.priority]
    case 'settled':
      return [
        range.queue,
        range.state,
        filter.settledBefore ? toMs(filter.settledBefore) : endOfTime,
      ]
    case 'ids':
    case 'unmet':
    case 'all':
      return []
    default:
      return [range.value]
  }
}

/** Whether a letter is ordered by its due time: leased and new letters have one, but no retryAt. */
const hasRetryAt = 'retry_at IS NOT NULL AND state <> 1'

/** The time of an order. Null: the letter has none. */
const timeOf = { due: `iif(${hasRetryAt}, retry_at, NULL)`, settled: 'settled_at' } as const

/** What letters of a stage must match besides their range. "1": nothing. */
export function stageCondition(
  context: StoreContext,
  { filter, order }: Pick<Search, 'filter' | 'order'>,
  { ranges: [range], key }: Stage<number>,
): Condition {
  const { sql, params } = conditionOf(context, filter, range!.index)
  if (key === 'due') return { sql: `${sql} AND ${hasRetryAt}`, params }
  if (key !== 'none') return { sql, params }
  const isTimed = order === 'due' ? hasRetryAt : 'settled_at IS NOT NULL'
  return { sql: `${sql} AND NOT (${isTimed})`, params }
}

export interface RangeRequest {
  search: Pick<Search, 'filter' | 'order'>
  stage: Stage<number>
  fits: Condition
  after: Place | undefined
  /** Maximum number of entries. */
  count: number
}

/** Reads the next entries of a range. */
export function readRange(
  context: StoreContext,
  range: Range<number>,
  { search, stage, fits, after, count }: RangeRequest,
): RangePart {
  if (range.index === 'ids')
    return readIds(context, range.ids, { search, stage, fits, after, count })
  const id = range.index === 'tag' ? 'tags.id' : 'letters.id'
  const time = stage.key === 'due' ? 'due_at' : stage.key === 'settled' ? 'settled_at' : undefined
  const next = time
    ? `AND (${time}, id) > (?, ${idOf('?')})`
    : `AND ${id} ${stage.isDown ? '<' : '>'} ${idOf('?')}`
  const order = time ? `${time}, id` : `${id}${stage.isDown ? ' DESC' : ''}`
  const from: SqlValue[] = !after ? [] : time ? [keyTime(after.key), after.id] : [after.id]
  const sql = `SELECT hex(letters.id), letters.seq, ${fits.sql}, ${time ?? 'NULL'}
    FROM ${sources[range.index]} ${after ? next : ''} ORDER BY ${order} LIMIT ?`
  const rows = context.db.all(sql, ...fits.params, ...paramsOf(range, search), ...from, count)
  const entries = rows.map((row) => entryOf(row, stage))
  return entries.length < count ? { entries } : { entries, end: entries.at(-1)!.place }
}

/** Ordered by id, letters are looked up as needed; ordered by time, all at once. */
function readIds(
  context: StoreContext,
  ids: readonly string[],
  { search: { order }, stage, fits, after, count }: RangeRequest,
): RangePart {
  const isById = stage.key === 'id'
  const isAfter = (id: string): boolean => !after || (stage.isDown ? id < after.id : id > after.id)
  const sorted = [...new Set(ids)].filter((id) => isLetterId(id) && (!isById || isAfter(id))).sort()
  if (stage.isDown) sorted.reverse()
  const some = isById ? sorted.slice(0, count) : sorted
  const time = order === 'due' || order === 'settled' ? timeOf[order] : 'NULL'
  const sql = `SELECT hex(letters.id), seq, ${fits.sql}, ${time} FROM json_each(?) AS wanted
    CROSS JOIN letters ON letters.id = ${idOf('wanted.value')}`
  const entries = context.db
    .all(sql, ...fits.params, JSON.stringify(some))
    .map((row) => entryOf(row, stage))
  if (!isById) return { entries: entries.filter(({ place }) => !after || isBehind(place, after)) }
  const last = some.at(-1)
  return sorted.length > some.length ? { entries, end: { key: last!, id: last! } } : { entries }
}

const isBehind = (place: Place, after: Place): boolean => comparePlaces(place, after, false) > 0

function entryOf([hex, seq, fit, ms]: SqlValue[], { key }: Stage<number>): IndexEntry {
  const id = formatId(hex as string)
  const time = ms === null ? keyless : timeKey(ms as number)
  return { place: { key: key === 'id' ? id : time, id }, seq: seq as number, fits: fit === 1 }
}
