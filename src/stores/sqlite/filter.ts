import type { LetterFilter } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import { reasonCode, type Cell } from '../rows/codes.ts'
import type { SqlValue } from '../rows/columns.ts'
import type { Range } from '../rows/plan.ts'
import { metadataTexts, sourceKey } from '../rows/source-key.ts'
import { among, cellCodes, listed, passes } from '../rows/tally.ts'
import type { StoreContext } from './context.ts'

/** An SQL condition with its parameters. */
export interface Condition {
  sql: string
  params: SqlValue[]
}

/** Tests whether a cell of the counts can contain matching letters. */
export function cellTest(context: StoreContext, filter: LetterFilter): (cell: Cell) => boolean {
  const queues = queuesOf(context, filter)
  const wanted = cellCodes(filter)
  return (cell) => among(queues, cell.queue) && passes(wanted, cell)
}

/** The numbers of the queues that the filter allows. Undefined: any. */
export function queuesOf(context: StoreContext, { queue }: LetterFilter): number[] | undefined {
  if (queue === undefined) return undefined
  return listed(queue).map((name) => context.queues.find(name) ?? -1)
}

/** The fields that all letters of an index range match. */
const covered: Record<Range<number>['index'], readonly (keyof LetterFilter)[]> = {
  ids: ['ids'],
  list: ['queue', 'state'],
  due: ['queue'],
  settled: ['queue', 'state', 'settledBefore'],
  source: ['sourceId'],
  tag: ['tag'],
  lane: ['lane'],
  group: ['group'],
  tenant: ['tenant'],
  unmet: [],
  all: [],
}

/**
 * The part of a filter that a range of this index does not cover, as SQL: "1" if it covers all.
 * Must agree with `matches` in `letter/query.ts`. If `needsReading` is true, the SQL only narrows
 * the search.
 */
export function conditionOf(
  context: StoreContext,
  filter: LetterFilter,
  index: Range<number>['index'],
): Condition {
  const parts: string[] = []
  const params: SqlValue[] = []
  const require = (field: keyof LetterFilter, sql: string, value?: SqlValue): void => {
    if (filter[field] === undefined || covered[index].includes(field)) return
    parts.push(sql)
    if (value !== undefined) params.push(value)
  }
  const requireCode = (column: string, wanted: readonly number[] | undefined): void => {
    if (wanted) parts.push(`${column} IN (${wanted.join(', ')})`)
  }
  const codes = cellCodes(filter)
  const { reason, group, sourceId, since, until, settledBefore, expiresBefore } = filter
  if (!covered[index].includes('queue')) requireCode('queue', queuesOf(context, filter))
  if (!covered[index].includes('state')) requireCode('state', codes.states)
  requireCode('category', codes.categories)
  requireCode('priority', codes.priorities)
  requireCode('policy', codes.policies)
  require('reason', 'reason = ?', reason && reasonCode(reason))
  if (group !== undefined && !covered[index].includes('group')) {
    parts.push(
      `fingerprint IN (${listed(group)
        .map(() => '?')
        .join()})`,
    )
    params.push(...listed(group))
  }
  require('lane', 'lane = ?', filter.lane)
  require('tenant', 'tenant = ?', filter.tenant)
  require('sourceId', 'source_id = ?', sourceId === undefined ? sourceId : sourceKey(sourceId))
  require('tag', 'EXISTS (SELECT 1 FROM tags WHERE tag = ? AND tags.id = letters.id)', filter.tag)
  require('since', 'captured_at >= ?', since && toMs(since))
  require('until', 'captured_at < ?', until && toMs(until))
  require('settledBefore', 'settled_at < ?', settledBefore && toMs(settledBefore))
  require('expiresBefore', 'expires_at < ?', expiresBefore && toMs(expiresBefore))
  require('dependent', filter.dependent ? 'unmet > 0' : 'unmet = 0')
  for (const text of metadataTexts(filter)) require('metadata', 'instr(metadata, ?) > 0', text)
  return { sql: parts.length > 0 ? parts.join(' AND ') : '1', params }
}
