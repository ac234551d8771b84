import type { LetterFilter, Order } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import { pending, retrying, wait, type Cell } from '../rows/codes.ts'
import { cellsWhere } from './counters.ts'
import { cellTest, conditionOf, type Condition } from './filter.ts'
import type { Place } from '../search.ts'
import { sourceKey } from '../rows/source-key.ts'
import type { SqlValue } from '../rows/row.ts'

/** A letter in an index: its position in the requested order, and whether it matches. */
export interface IndexEntry {
  key: string
  id: string
  seq: number
  fits: boolean
}

/**
 * Reads the next entries of an index range, after the given one or from the start of the search.
 */
export type Stream = (after: IndexEntry | undefined, count: number) => IndexEntry[]

/** Index ranges that are merged in this order. */
export interface Stage {
  streams: Stream[]
  before: (a: IndexEntry, b: IndexEntry) => boolean
}

/** With more ranges than this, all letters are scanned by id instead. */
const maxStreams = 512

/**
 * Up to this many letters are sorted in memory when an index finds them in another order.
 */
const maxPoints = 1000

/**
 * Up to this many candidates are scanned; no index would be faster.
 */
const maxCandidates = 2000

/** Sort key of letters without a timestamp: after all others. */
const keyless = '~'

/** Sort key of a due time: digits of fixed length. */
const dueKey = (ms: number): string => String(ms).padStart(16, '0')

const byId = (a: IndexEntry, b: IndexEntry): boolean => a.id < b.id
const byIdDown = (a: IndexEntry, b: IndexEntry): boolean => a.id > b.id
const byKey = (a: IndexEntry, b: IndexEntry): boolean =>
  a.key < b.key || (a.key === b.key && a.id < b.id)

/**
 * The index ranges that contain all matches, in the requested order. When ordered by time, letters
 * without a timestamp come last.
 */
export function stagesOf(
  context: StoreContext,
  filter: LetterFilter,
  order: Order,
  after: Place | undefined,
): Stage[] {
  const points = pointsOf(context, filter)
  if (points) return [pointStage(context, points, filter, order, after)]
  if (order === 'newest' || order === 'oldest') {
    const down = order === 'newest'
    return [{ streams: idStreams(context, filter, down, after), before: down ? byIdDown : byId }]
  }
  const timed = order === 'due' ? dueStreams : settledStreams
  const last: Stage = { streams: keylessStreams(context, filter, order, after), before: byId }
  if (after?.key === keyless) return [last]
  const first: Stage = { streams: timed(context, filter, after), before: byKey }
  return order === 'settled' && filter.settledBefore !== undefined ? [first] : [first, last]
}

/** The ids, if they are given or an index shows that they are few. */
function pointsOf(
  { db }: StoreContext,
  { ids, sourceId, expiresBefore }: LetterFilter,
): string[] | undefined {
  if (ids) return [...new Set(ids)]
  const few = (condition: string, value: string): string[] | undefined => {
    const sql = `SELECT id FROM letters WHERE ${condition} LIMIT ?`
    const found = db.all(sql, value, maxPoints + 1)
    return found.length > maxPoints ? undefined : found.map(([id]) => id as string)
  }
  return (
    (sourceId === undefined ? undefined : few('source_id = ?', sourceKey(sourceId))) ??
    (expiresBefore === undefined ? undefined : few('expires_at < ?', expiresBefore))
  )
}

/**
 * Ordered by id, letters are looked up as needed; ordered by time, all at once.
 */
function pointStage(
  context: StoreContext,
  ids: string[],
  filter: LetterFilter,
  order: Order,
  after: Place | undefined,
): Stage {
  const down = order === 'newest'
  if (down || order === 'oldest') {
    const sorted = ids.sort()
    if (down) sorted.reverse()
    const stream: Stream = (last, count) => {
      const from = last?.id ?? after?.id
      const start =
        from === undefined ? 0 : sorted.findIndex((id) => (down ? id < from : id > from))
      return start === -1
        ? []
        : entriesAt(context, sorted.slice(start, start + count), filter, order)
    }
    return { streams: [stream], before: down ? byIdDown : byId }
  }
  const entries = entriesAt(context, ids, filter, order)
    .filter((entry) => !after || byKey({ ...after, seq: 0, fits: true }, entry))
    .sort((a, b) => (byKey(a, b) ? -1 : 1))
  return { streams: [(last) => (last ? [] : entries)], before: byKey }
}

/** Entries for these ids. A missing letter gets an entry that does not match. */
function entriesAt(
  context: StoreContext,
  ids: string[],
  filter: LetterFilter,
  order: Order,
): IndexEntry[] {
  const fits = conditionOf(context, filter, ['ids'])
  const sql = `SELECT seq, ${fits.sql}, CASE WHEN ${isDue} THEN due_at END, settled_at FROM letters WHERE id = ?`
  return ids.map((id) => {
    const row = context.db.get(sql, ...fits.params, id)
    if (!row) return { key: keyless, id, seq: 0, fits: false }
    const [seq, fit, dueAt, settledAt] = row as [number, SqlValue, number | null, string | null]
    const due = dueAt === null ? null : dueKey(dueAt)
    const key = order === 'due' ? due : order === 'settled' ? settledAt : id
    return { key: key ?? keyless, id, seq, fits: fit === 1 }
  })
}

/**
 * One stream per queue and state with letters. If those have many letters and the filter is
 * narrower, one stream of a narrower index.
 */
function idStreams(
  context: StoreContext,
  filter: LetterFilter,
  down: boolean,
  after: Place | undefined,
): Stream[] {
  const { ranges, letters } = rangesOf(context, filter)
  const narrow = letters > maxCandidates ? narrowest(filter) : undefined
  if (narrow === 'tag') return [tagStream(context, filter, filter.tag!, down, after)]
  if (narrow || ranges.length > maxStreams) {
    const from = narrow ? `letters INDEXED BY ${narrow.index} WHERE ${narrow.where}` : everything
    const fits = conditionOf(context, filter, narrow ? [narrow.field] : [])
    return [idStream(context, from, narrow?.params ?? [], fits, down, after)]
  }
  const fits = conditionOf(context, filter, ['queue', 'state'])
  return ranges.map(({ queue, state }) =>
    idStream(context, queueAndState, [queue, state], fits, down, after),
  )
}

interface Narrow {
  field: keyof LetterFilter
  where: string
  index: string
  params: SqlValue[]
}

/**
 * SQLite uses a partial index only if the SQL itself implies the condition of the index.
 */
const narrowIndexes: Omit<Narrow, 'params'>[] = [
  { field: 'sourceId', where: 'source_id = ?', index: 'letters_source' },
  { field: 'lane', where: 'lane = ?', index: 'letters_lane' },
  { field: 'group', where: 'fingerprint = ?', index: 'letters_group' },
  { field: 'dependent', where: 'dependent = 1', index: 'letters_dependent' },
  { field: 'reason', where: 'reason = ?', index: 'letters_reason' },
  { field: 'tenant', where: 'tenant = ?', index: 'letters_tenant' },
]

function narrowest(filter: LetterFilter): Narrow | 'tag' | undefined {
  if (filter.tag !== undefined) return 'tag'
  for (const narrow of narrowIndexes) {
    const value = filter[narrow.field]
    if (narrow.field === 'sourceId' && filter.sourceId !== undefined)
      return { ...narrow, params: [sourceKey(filter.sourceId)] }
    if (typeof value === 'string') return { ...narrow, params: [value] }
    if (value === true) return { ...narrow, params: [] }
  }
  return undefined
}

const everything = 'letters INDEXED BY letters_id WHERE 1'
const queueAndState = 'letters INDEXED BY letters_list WHERE queue = ? AND state = ?'

function idStream(
  { db }: StoreContext,
  from: string,
  params: SqlValue[],
  fits: Condition,
  down: boolean,
  after: Place | undefined,
): Stream {
  const start = `SELECT id, seq, ${fits.sql} FROM ${from}`
  const end = `ORDER BY id ${down ? 'DESC' : ''} LIMIT ?`
  const further = `${start} AND id ${down ? '<' : '>'} ? ${end}`
  return (last, count) => {
    const id = last?.id ?? after?.id
    const rows =
      id === undefined
        ? db.all(`${start} ${end}`, ...fits.params, ...params, count)
        : db.all(further, ...fits.params, ...params, id, count)
    return rows.map(([id, seq, fit]) => toIndexEntry(id, id, seq, fit))
  }
}

function tagStream(
  context: StoreContext,
  filter: LetterFilter,
  tag: string,
  down: boolean,
  after: Place | undefined,
): Stream {
  const fits = conditionOf(context, filter, ['tag'])
  const sql = `SELECT letters.id, letters.seq, ${fits.sql} FROM tags CROSS JOIN letters ON letters.seq = tags.seq
    WHERE tags.tag = ? AND tags.id ${down ? '<' : '>'} ? ORDER BY tags.id ${down ? 'DESC' : ''} LIMIT ?`
  const edge = down ? '\u{10ffff}' : ''
  return (last, count) =>
    context.db
      .all(sql, ...fits.params, tag, last?.id ?? after?.id ?? edge, count)
      .map(([id, seq, fit]) => toIndexEntry(id, id, seq, fit))
}

function toIndexEntry(
  key: SqlValue | undefined,
  id: SqlValue | undefined,
  seq: SqlValue | undefined,
  fit: SqlValue | undefined,
): IndexEntry {
  return { key: key as string, id: id as string, seq: seq as number, fits: fit === 1 }
}

interface IndexRanges {
  ranges: Pick<Cell, 'queue' | 'state'>[]
  letters: number
}

/** Queues and states with letters that may match, and the number of these letters. */
function rangesOf(context: StoreContext, filter: LetterFilter): IndexRanges {
  const ranges = new Map<number, Pick<Cell, 'queue' | 'state'>>()
  let letters = 0
  for (const [{ queue, state }, n] of cellsWhere(context.counters, cellTest(context, filter))) {
    ranges.set(queue * 8 + state, { queue, state })
    letters += n
  }
  return { ranges: [...ranges.values()], letters }
}

/**
 * Whether a letter is ordered by its due time. Leased and new letters have a due time but no
 * `retryAt`.
 */
const isDue = 'retry_at IS NOT NULL AND state <> 1'

/**
 * Ordered by retryAt. The due index has this order per queue, wait code and priority.
 */
function dueStreams(
  context: StoreContext,
  filter: LetterFilter,
  after: Place | undefined,
): Stream[] {
  const places = new Set<string>()
  for (const [{ queue, state, priority }] of cellsWhere(
    context.counters,
    cellTest(context, filter),
  )) {
    if (state === pending)
      places.add(`${queue} ${wait.ready} ${priority}`).add(`${queue} ${wait.held} ${priority}`)
    else if (state !== retrying) places.add(`${queue} ${wait.resting} ${priority}`)
  }
  const fits = conditionOf(context, filter)
  const sql = `SELECT due_at, id, seq, ${fits.sql} AND ${isDue}
    FROM letters INDEXED BY letters_due
    WHERE queue = ? AND wait = ? AND priority = ? AND due_at IS NOT NULL AND (due_at, id) > (?, ?)
    ORDER BY due_at, id LIMIT ?`
  return [...places].map((place) => {
    const params = place.split(' ').map(Number)
    return (last, count) => {
      const from = last ?? after
      return context.db
        .all(sql, ...fits.params, ...params, from ? Number(from.key) : -1, from?.id ?? '', count)
        .map(([dueAt, id, seq, fit]) => toIndexEntry(dueKey(dueAt as number), id, seq, fit))
    }
  })
}

function settledStreams(
  context: StoreContext,
  filter: LetterFilter,
  after: Place | undefined,
): Stream[] {
  const fits = conditionOf(context, filter, ['queue', 'state'])
  const until = filter.settledBefore === undefined ? '' : 'AND settled_at < ?'
  const sql = `SELECT settled_at, id, seq, ${fits.sql} FROM letters INDEXED BY letters_settled
    WHERE queue = ? AND state = ? AND settled_at IS NOT NULL AND (settled_at, id) > (?, ?) ${until}
    ORDER BY settled_at, id LIMIT ?`
  return rangesOf(context, filter).ranges.map(({ queue, state }) => (last, count) => {
    const from = last ?? after
    const bound = filter.settledBefore === undefined ? [] : [filter.settledBefore]
    return context.db
      .all(sql, ...fits.params, queue, state, from?.key ?? '', from?.id ?? '', ...bound, count)
      .map(([key, id, seq, fit]) => toIndexEntry(key, id, seq, fit))
  })
}

/** Letters without a timestamp, ordered by id. */
function keylessStreams(
  context: StoreContext,
  filter: LetterFilter,
  order: 'due' | 'settled',
  after: Place | undefined,
): Stream[] {
  const fits = conditionOf(context, filter, ['queue', 'state'])
  const without = order === 'due' ? `NOT (${isDue})` : 'settled_at IS NULL'
  const own: Condition = { sql: `${fits.sql} AND ${without}`, params: fits.params }
  const from = after?.key === keyless ? after : undefined
  return rangesOf(context, filter).ranges.map(({ queue, state }) => {
    const stream = idStream(context, queueAndState, [queue, state], own, false, from)
    return (last, count) => stream(last, count).map((entry) => ({ ...entry, key: keyless }))
  })
}
