import { matches } from '../../letter/query.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { Place, Search } from '../search.ts'
import { unpack, unpackSummary } from '../rows/unpack.ts'
import { needsReading } from '../rows/source-key.ts'
import type { Books } from './books.ts'
import { readCells } from './counters.ts'
import { isCountable } from '../rows/tally.ts'
import { codesOf, conditionOf, mentioning } from './filter.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { lettersById } from './reading.ts'
import { isDue, keyless, stagesOf, type Key, type Sought, type Stage } from './stages.ts'
import { fromText, toText } from './text.ts'

/** A letter's place in the order asked, and whether the filter lets it through. */
export interface Spot extends Place {
  size: number
  fits: boolean
}

export interface Stride {
  /** What matched, in order; where `needsReading` is true, what may match. */
  spots: Spot[]
  /** Where the next stride goes on. Absent at the end. */
  next?: Place
}

/** Letters that one step looks at. Reading letters costs more than reading columns. */
const strideSpots = 1000
const readStrideSpots = 300
/** Each range is read at least so far. */
const leastOfRange = 16

/** Past this many payload bytes a page ends early: a page may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

/** Looks at the filter, once for all strides of a search. */
export async function soughtBy(
  books: Books,
  { filter, order }: Pick<Search, 'filter' | 'order'>,
): Promise<Sought> {
  return { filter, order, codes: await codesOf(books, filter) }
}

/**
 * One bounded step of a search. Each step starts afresh from a place in the order, so that a letter is seen once, at
 * its place, however long the whole takes and whatever moves meanwhile. The counts say where to look: they are of the same
 * moment, or a letter that moves to where there was none would be missed.
 */
export function searchStride(
  books: Books,
  sought: Sought,
  wanted: number,
  after: Place | undefined,
): Promise<Stride> {
  const look = async (tx: Transaction): Promise<Stride> => {
    const cells = sought.filter.ids ? [] : await readCells((sql, values) => tx.rows(sql, values))
    const moment = { ...sought, cells }
    const spots: Spot[] = []
    for (const stage of await stagesOf(tx, moment, after)) {
      const { read, next } = await readStage(books, tx, moment, stage, wanted)
      spots.push(...read.filter(({ fits }) => fits))
      if (next) return { spots, next }
    }
    return { spots }
  }
  return books.connection.transaction('cold', look, { snapshot: true })
}

const keys: Record<Key, { key: string; order: string; after: string }> = {
  id: { key: 'l.id', order: 'l.id', after: '' },
  none: { key: `'${keyless}'`, order: 'l.id', after: '' },
  due: { key: "lpad(l.due_at::text, 16, '0')", order: 'l.due_at, l.id', after: '(l.due_at, l.id)' },
  settled: { key: 'l.settled_at', order: 'l.settled_at, l.id', after: '(l.settled_at, l.id)' },
  mixed: { key: '', order: '', after: '' },
}

/** Where letters are found by id and put in order of a time, its absence sorts last. */
function mixedKey(order: Sought['order']): (typeof keys)[Key] {
  const key =
    order === 'due'
      ? `CASE WHEN ${isDue} THEN lpad(l.due_at::text, 16, '0') ELSE '${keyless}' END`
      : `coalesce(l.settled_at, '${keyless}')`
  return { key, order: `(${key}) COLLATE "C", l.id`, after: `((${key}) COLLATE "C", l.id)` }
}

/** Reads every range a little way, and puts together what is certain: up to where the first range was not read to its end. */
async function readStage(
  books: Books,
  tx: Transaction,
  sought: Sought,
  stage: Stage,
  wanted: number,
): Promise<{ read: Spot[]; next?: Place }> {
  const { lists, down } = stage
  const ranges = lists.length === 0 ? 1 : lists[0]!.length
  if (ranges === 0) return { read: [] }
  const most = needsReading(sought.filter) ? readStrideSpots : strideSpots
  const share = Math.max(leastOfRange, Math.ceil(most / ranges))
  const chunk = isCountable(sought.filter) ? Math.min(wanted, share * 2) : share
  const { sql, values } = await statementOf(books, sought, stage, chunk)
  const counts = new Map<number, { n: number; last: Spot }>()
  const spots = (await tx.rows(sql, values)).map((cells) => {
    const [key, id, size, fits, range] = cells as [string, string, number, boolean, number]
    const spot = { key: stage.key === 'id' ? fromText(key) : key, id: fromText(id), size, fits }
    counts.set(range, { n: (counts.get(range)?.n ?? 0) + 1, last: spot })
    return spot
  })
  const before = (a: Spot, b: Spot): number => order(a, b, down)
  const ends = [...counts.values()].filter(({ n }) => n === chunk).map(({ last }) => last)
  const [end] = ends.sort(before)
  spots.sort(before)
  if (!end) return { read: spots }
  return {
    read: spots.filter((spot) => before(spot, end) <= 0),
    next: { key: end.key, id: end.id },
  }
}

/** By key, then by id; in a list from the newest the key is the id. */
function order(a: Spot, b: Spot, down: boolean): number {
  const up = a.key < b.key || (a.key === b.key && a.id < b.id) ? -1 : a.id === b.id ? 0 : 1
  return down ? -up : up
}

async function statementOf(
  books: Books,
  sought: Sought,
  stage: Stage,
  chunk: number,
): Promise<{ sql: string; values: unknown[] }> {
  const { lists, after, down } = stage
  const values: unknown[] = []
  const put = (value: unknown): string => `$${values.push(value)}`
  const { text } = sought.filter
  const from =
    lists.length === 0
      ? '(SELECT 1 AS n) AS r'
      : `unnest(${lists.map((list) => `${put(list)}::int[]`).join(', ')}) WITH ORDINALITY
         AS r(${['a', 'b', 'c'].slice(0, lists.length).join(', ')}, n)`
  const by = stage.key === 'mixed' ? mixedKey(sought.order) : keys[stage.key]
  const sign = down ? '<' : '>'
  const where = [stage.where(put)]
  if (after && by.after === '') where.push(`l.id ${sign} ${put(toText(after.id))}::text`)
  else if (after) {
    const key =
      stage.key === 'due' ? `${put(Number(after.key))}::bigint` : `${put(after.key)}::text`
    where.push(`${by.after} > (${key}, ${put(toText(after.id))}::text)`)
  }
  const fits = [conditionOf(sought.filter, sought.codes, values)]
  if (stage.key === 'due') fits.push(`(${isDue})`)
  if (text !== undefined) fits.push(await mentioning(books, text, values))
  const bodies = text === undefined ? '' : 'LEFT JOIN @bodies b ON b.id = l.id'
  const sql = `SELECT s.key, s.id, s.size, s.fits, r.n::int FROM ${from} CROSS JOIN LATERAL (
      SELECT ${by.key} AS key, l.id, l.size, ${fits.join(' AND ')} AS fits FROM @letters l ${bodies}
      WHERE ${where.join(' AND ')} ORDER BY ${by.order} ${down ? 'DESC' : ''} LIMIT ${put(chunk)}) AS s`
  return { sql, values }
}

export interface Found {
  items: (DeadLetter | LetterSummary)[]
  next?: Place
}

/** A page, in as many steps as it takes. One letter more than asked is looked for, to know whether there is a next page. */
export async function find(books: Books, search: Search): Promise<Found> {
  const { filter, limit, whole } = search
  const sought = await soughtBy(books, search)
  const items: Found['items'] = []
  let { after } = search
  let last: Place | undefined
  let bytes = 0
  for (;;) {
    const stride = await searchStride(books, sought, limit + 1 - items.length, after)
    // As much as may be needed is loaded at once, but no more bytes than a page may have.
    for (let start = 0; start < stride.spots.length;) {
      let end = start
      let loading = bytes
      while (
        end < stride.spots.length &&
        end - start <= limit - items.length &&
        loading <= maxPageBytes
      )
        loading += whole ? stride.spots[end++]!.size : (end++, 0)
      const spots = stride.spots.slice(start, end)
      const ids = spots.map(({ id }) => id)
      const letters = await lettersById(books, ids, whole ? 'whole' : 'summary')
      for (const spot of spots) {
        const kept = letters.get(spot.id)
        const item = kept && (whole ? unpack(kept) : unpackSummary(kept))
        if (!item || !isStill(item, filter)) continue
        if (items.length === limit || (bytes > maxPageBytes && last)) return { items, next: last! }
        bytes += whole ? spot.size : 0
        items.push(item)
        last = { key: spot.key, id: spot.id }
      }
      start = end
      if (start < stride.spots.length && bytes > maxPageBytes && last) return { items, next: last }
    }
    if (!stride.next) return { items }
    after = stride.next
  }
}

/** Between finding a letter and reading it, it may have moved on. What cannot be read is shown where it was found. */
function isStill(item: DeadLetter | LetterSummary, filter: Search['filter']): boolean {
  if (item.corrupt === undefined) return matches(item, filter)
  return filter.text === undefined || matches(item, { state: item.state, text: filter.text })
}
