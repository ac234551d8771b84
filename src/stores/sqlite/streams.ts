import type { LetterFilter, Order } from '../../letter/query.ts'
import type { StoreContext } from './context.ts'
import { pending, retrying, wait, type Cell } from '../rows/codes.ts'
import { cellsWhere } from './counters.ts'
import { cellTest, conditionOf, type Condition } from './filter.ts'
import type { Place } from '../search.ts'
import { sourceKey } from '../rows/source-key.ts'
import type { SqlValue } from '../rows/row.ts'

/** A letter's place in the order asked, and whether the filter lets it through. */
export interface Spot {
  key: string
  id: string
  seq: number
  fits: boolean
}

/** Reads the next spots of one index range, after the given one or from where the search stands. */
export type Stream = (after: Spot | undefined, count: number) => Spot[]

/** Ranges that are read side by side, in this order. */
export interface Stage {
  streams: Stream[]
  before: (a: Spot, b: Spot) => boolean
}

/** More ranges than this are not merged; the letters are walked by id instead. */
const maxStreams = 512

/**
 * As many letters as this are sorted on the spot where an index finds them but in another order.
 */
const maxPoints = 1000

/**
 * As few candidates as this are walked through whatever the filter says; no index would be faster.
 */
const maxCandidates = 2000

/** What letters without a key sort by: after all that have one. */
const keyless = '~'

/** What letters sort by in order of due time: digits, all of one length. */
const dueKey = (ms: number): string => String(ms).padStart(16, '0')

const byId = (a: Spot, b: Spot): boolean => a.id < b.id
const byIdDown = (a: Spot, b: Spot): boolean => a.id > b.id
const byKey = (a: Spot, b: Spot): boolean => a.key < b.key || (a.key === b.key && a.id < b.id)

/**
 * Which ranges hold all that can match, in the order asked. In orders by time, letters that have
 * none come last.
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

/** The ids themselves, where they are given or an index says that they are few. */
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
 * By id they are looked up as they are needed; by time, all at once, since only then their order is
 * known.
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
      return start === -1 ? [] : spotsAt(context, sorted.slice(start, start + count), filter, order)
    }
    return { streams: [stream], before: down ? byIdDown : byId }
  }
  const spots = spotsAt(context, ids, filter, order)
    .filter((spot) => !after || byKey({ ...after, seq: 0, fits: true }, spot))
    .sort((a, b) => (byKey(a, b) ? -1 : 1))
  return { streams: [(last) => (last ? [] : spots)], before: byKey }
}

/** The letters with these ids, and for those that are gone a spot that fits nobody. */
function spotsAt(context: StoreContext, ids: string[], filter: LetterFilter, order: Order): Spot[] {
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
 * The lists of every queue and state that the counts say are not empty, while they are short or
 * nothing narrower is asked; otherwise one index that knows the narrower.
 */
function idStreams(
  context: StoreContext,
  filter: LetterFilter,
  down: boolean,
  after: Place | undefined,
): Stream[] {
  const { shelves, letters } = shelvesOf(context, filter)
  const narrow = letters > maxCandidates ? narrowest(filter) : undefined
  if (narrow === 'tag') return [tagStream(context, filter, filter.tag!, down, after)]
  if (narrow || shelves.length > maxStreams) {
    const from = narrow ? `letters INDEXED BY ${narrow.index} WHERE ${narrow.where}` : everything
    const fits = conditionOf(context, filter, narrow ? [narrow.field] : [])
    return [idStream(context, from, narrow?.params ?? [], fits, down, after)]
  }
  const fits = conditionOf(context, filter, ['queue', 'state'])
  return shelves.map(({ queue, state }) =>
    idStream(context, shelf, [queue, state], fits, down, after),
  )
}

interface Narrow {
  field: keyof LetterFilter
  where: string
  index: string
  params: SqlValue[]
}

/**
 * SQLite uses an index of some rows only where it can see from the text that no others are asked
 * for.
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
const shelf = 'letters INDEXED BY letters_list WHERE queue = ? AND state = ?'

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
    return rows.map(([id, seq, fit]) => spotOf(id, id, seq, fit))
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
      .map(([id, seq, fit]) => spotOf(id, id, seq, fit))
}

function spotOf(
  key: SqlValue | undefined,
  id: SqlValue | undefined,
  seq: SqlValue | undefined,
  fit: SqlValue | undefined,
): Spot {
  return { key: key as string, id: id as string, seq: seq as number, fits: fit === 1 }
}

interface Shelves {
  shelves: Pick<Cell, 'queue' | 'state'>[]
  letters: number
}

/** The queues and states that have letters which may match, and how many these are. */
function shelvesOf(context: StoreContext, filter: LetterFilter): Shelves {
  const shelves = new Map<number, Pick<Cell, 'queue' | 'state'>>()
  let letters = 0
  for (const [{ queue, state }, n] of cellsWhere(context.counters, cellTest(context, filter))) {
    shelves.set(queue * 8 + state, { queue, state })
    letters += n
  }
  return { shelves: [...shelves.values()], letters }
}

/**
 * Whether a letter is ordered by its due time: a lease and a capture have one too, but no
 * `retryAt`.
 */
const isDue = 'retry_at IS NOT NULL AND state <> 1'

/**
 * By retryAt: the due index has the letters of a queue and a priority in this order, apart by where
 * they wait.
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
        .map(([dueAt, id, seq, fit]) => spotOf(dueKey(dueAt as number), id, seq, fit))
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
  return shelvesOf(context, filter).shelves.map(({ queue, state }) => (last, count) => {
    const from = last ?? after
    const bound = filter.settledBefore === undefined ? [] : [filter.settledBefore]
    return context.db
      .all(sql, ...fits.params, queue, state, from?.key ?? '', from?.id ?? '', ...bound, count)
      .map(([key, id, seq, fit]) => spotOf(key, id, seq, fit))
  })
}

/** Letters that have no time to be ordered by, by id. */
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
  return shelvesOf(context, filter).shelves.map(({ queue, state }) => {
    const stream = idStream(context, shelf, [queue, state], own, false, from)
    return (last, count) => stream(last, count).map((spot) => ({ ...spot, key: keyless }))
  })
}
