import type { LetterFilter, Order } from '../../letter/query.ts'
import { encodeTime } from '../rows/times.ts'
import { keyless, keyTime, type Range, type Stage, type StepRequest } from '../rows/plan.ts'
import { needsReading } from '../rows/source-key.ts'
import type { StoreContext } from './context.ts'
import { conditionOf, preselectText, type Codes } from './filter.ts'
import { loadedColumns, type Extent } from './rows.ts'
import { toText } from './text.ts'

/** Index entries that one step reads. Reading whole letters costs more than reading columns. */
const stepEntries = 1000
const readStepEntries = 300
/** The least number of entries read from a range. */
const leastOfRange = 16

/** Payloads past this number of bytes are left out of a step: the page ends before them. */
const maxStepBytes = 32 * 2 ** 20

/** The cells before those of the letter: whether its range ends here, fits, key, size and id. */
export const firstCell = 5
export const idCell = 4

export interface StepInput {
  filter: LetterFilter
  order: Order
  codes: Codes
  request: StepRequest<number>
  /** `ids`: only the states of the letters, without their bodies. */
  extent: Extent | 'ids'
}

type Put = (value: unknown) => string

/** The key of letters without the time of the order, where all are sorted at once. */
export const keylessMs = Number.MAX_SAFE_INTEGER

/**
 * Whether a letter is ordered by its due time: leased and new letters have a due time too, but no
 * `retryAt`.
 */
const isDue = 'l.retry_at IS NOT NULL AND l.state <> 1'

/**
 * The statement of a step: the start of every range, merged into one order, with the bodies of the
 * letters that fit.
 */
export async function stepStatement(
  context: StoreContext,
  { filter, order, codes, request, extent }: StepInput,
): Promise<{ sql: string; values: unknown[]; limit: number }> {
  const { stage, wanted } = request
  const values: unknown[] = []
  const put: Put = (value) => `$${values.push(value)}`
  const { from, where } = rangesOf(stage, filter, put)
  const by = keysOf(stage, order)
  const fits = [conditionOf(filter, codes, values)]
  if (stage.key === 'due') fits.push(`(${isDue})`)
  if (filter.text !== undefined) fits.push(await preselectText(context, filter.text, values))
  const conditions = [where, ...afterCondition(request, by, put)]
  if (stage.key === 'none')
    conditions.push(order === 'due' ? `NOT (${isDue})` : 'l.settled_at IS NULL')
  const limit = Math.max(wanted, leastOfRange)
  const chunk = chunkOf(filter, stage, limit)
  const bodies = filter.text === undefined ? '' : 'LEFT JOIN @bodies b ON b.id = l.id'
  const down = stage.isDown ? ' DESC' : ''
  const sorted = (alias: string): string =>
    by.isTimed ? `${alias}.key${down}, ${alias}.id${down}` : `${alias}.id${down}`
  const inner = `SELECT l.*, ${by.key} AS key, ${fits.join(' AND ')} AS fits,
      row_number() OVER (ORDER BY ${by.order.join(`${down}, `)}${down}) = ${put(chunk)} AS is_end
    FROM @letters l ${bodies} WHERE ${conditions.join(' AND ')}
    ORDER BY ${by.order.join(`${down}, `)}${down} LIMIT ${put(chunk)}`
  const merged = (
    columns: string,
  ): string => `SELECT ${columns} FROM ${from} CROSS JOIN LATERAL (${inner}) AS s
    WHERE s.fits OR s.is_end ORDER BY ${sorted('s')} LIMIT ${put(limit)}`
  if (extent === 'ids')
    return { sql: merged('s.is_end, s.fits, s.key, s.size, s.id'), values, limit }
  const before = `sum(s.size) FILTER (WHERE s.fits) OVER (ORDER BY ${sorted('s')}) - s.size AS before`
  const sql = `SELECT p.is_end, p.fits, p.key, p.size, p.id, ${loadedColumns('p', 'b', extent)}
    FROM (${merged(extent === 'whole' ? `s.*, ${before}` : 's.*')}) AS p
    LEFT JOIN @bodies b ON b.id = p.id AND p.fits${extent === 'whole' ? ` AND p.before <= ${maxStepBytes}` : ''}
    ORDER BY ${sorted('p')}`
  return { sql, values, limit }
}

/** A filter that the ranges cover needs no more entries than letters. */
function chunkOf(filter: LetterFilter, { ranges }: Stage<number>, limit: number): number {
  const fields = Object.entries(filter).filter(([, value]) => value !== undefined)
  const most = needsReading(filter) ? readStepEntries : stepEntries
  const share = Math.max(leastOfRange, Math.ceil(most / ranges.length))
  const isCovered = fields.every(([field]) => ['queue', 'state', 'ids'].includes(field))
  return isCovered ? Math.min(limit, 2 * share) : share
}

interface Keys {
  key: string
  order: string[]
  isTimed: boolean
}

/** The sort key of a stage. Letters found by id are sorted by a key that no index has. */
function keysOf({ key, ranges }: Stage<number>, order: Order): Keys {
  if (key === 'id' || key === 'none') {
    const sorted = ranges[0]!.index === 'list' ? ['l.queue', 'l.id'] : ['l.id']
    return { key: 'NULL::bigint', order: sorted, isTimed: false }
  }
  const column =
    key === 'computed' ? (order === 'due' ? 'l.due_at' : 'l.settled_at') : `l.${key}_at`
  if (key !== 'computed') return { key: column, order: [column, 'l.id'], isTimed: true }
  const isTimed = order === 'due' ? isDue : 'l.settled_at IS NOT NULL'
  const computed = `(CASE WHEN ${isTimed} THEN ${column} ELSE ${keylessMs} END)`
  return { key: computed, order: [computed, 'l.id'], isTimed: true }
}

function afterCondition({ after, stage }: StepRequest<number>, by: Keys, put: Put): string[] {
  if (!after) return []
  const sign = stage.isDown ? '<' : '>'
  if (!by.isTimed) return [`l.id ${sign} ${put(after.id)}::uuid`]
  const key = put(after.key === keyless ? keylessMs : keyTime(after.key))
  return [`(${by.order.join(', ')}) ${sign} (${key}::bigint, ${put(after.id)}::uuid)`]
}

/**
 * Unlike an equality, an array lets the order by queue and id count: only the index `letters_list`
 * has it. The planner would otherwise read the primary key, which is in the order of ids too, and
 * read all letters for a range that has few.
 */
const isInQueueOfList = 'l.queue = ANY (ARRAY[r.queue])'

/** SQL for the ranges of a stage as a table `r`, and for the condition that selects one of them. */
function rangesOf(
  { ranges }: Stage<number>,
  filter: LetterFilter,
  put: Put,
): { from: string; where: string } {
  const [first] = ranges
  const list = (pick: (range: Extract<Range<number>, { queue: number }>) => number): string =>
    `${put((ranges as Extract<Range<number>, { queue: number }>[]).map(pick))}::int[]`
  switch (first!.index) {
    case 'list':
    case 'settled': {
      const [queue, state] = [
        list((range) => range.queue),
        list((range) => ('state' in range ? range.state : 0)),
      ]
      const { settledBefore } = filter
      const isList = first!.index === 'list'
      const isInQueue = isList ? isInQueueOfList : 'l.queue = r.queue'
      const settled = isList ? '' : ' AND l.settled_at IS NOT NULL'
      const before =
        settled === '' || settledBefore === undefined
          ? ''
          : ` AND l.settled_at < ${put(encodeTime(settledBefore))}::bigint`
      return {
        from: `unnest(${queue}, ${state}) AS r(queue, state)`,
        where: `${isInQueue} AND l.state = r.state${settled}${before}`,
      }
    }
    case 'due': {
      const [queue, wait, priority] = [
        list((range) => range.queue),
        list((range) => ('wait' in range ? range.wait : 0)),
        list((range) => ('priority' in range ? range.priority : 0)),
      ]
      return {
        from: `unnest(${queue}, ${wait}, ${priority}) AS r(queue, wait, priority)`,
        where:
          'l.queue = r.queue AND l.wait = r.wait AND l.priority = r.priority AND l.due_at IS NOT NULL',
      }
    }
    case 'group': {
      const values = ranges.map((range) => ('value' in range ? toText(range.value) : ''))
      return {
        from: `unnest(${put(values)}::text[]) AS r(fingerprint)`,
        // A letter is in one group only, also if an entry of a former group is left.
        where: `l.id IN (SELECT g.id FROM @groups g WHERE g.fingerprint = r.fingerprint)
          AND l.fingerprint = r.fingerprint`,
      }
    }
    default:
      return { from: '(SELECT 1) AS r', where: singleRange(first!, put) }
  }
}

const narrowColumns = { source: 'source_id', lane: 'lane', tenant: 'tenant' }

function singleRange(range: Range<number>, put: Put): string {
  switch (range.index) {
    case 'ids':
      return `l.id = ANY(${put(range.ids)}::uuid[])`
    case 'tag':
      return `l.id IN (SELECT t.id FROM @tags t WHERE t.tag = ${put(toText(range.value))}::text)`
    case 'source':
    case 'lane':
    case 'tenant':
      return `l.${narrowColumns[range.index]} = ${put(toText(range.value))}::text`
    case 'unmet':
      return 'l.unmet > 0'
    default:
      return 'true'
  }
}
