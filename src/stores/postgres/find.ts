import { matches } from '../../letter/query.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import type { Place, Search } from '../search.ts'
import { unpack, unpackSummary } from '../rows/unpack.ts'
import { needsReading } from '../rows/source-key.ts'
import type { StoreContext } from './context.ts'
import { readCells } from './counters.ts'
import { isCountable } from '../rows/tally.ts'
import { codesOf, conditionOf, preselectText } from './filter.ts'
import type { Transaction } from '../../backends/postgres/transaction.ts'
import { readLetters } from './read-letters.ts'
import { isDue, keyless, rangeSetsOf, type Key, type FilterQuery, type RangeSet } from './ranges.ts'
import { fromText, toText } from './text.ts'

/** An index entry of a letter, and whether it matches the filter. */
export interface IndexEntry extends Place {
  size: number
  fits: boolean
}

export interface SearchStep {
  /** The entries that match, in order; where `needsReading` is true, those that may match. */
  entries: IndexEntry[]
  /** Where the next step continues. Absent at the end. */
  next?: Place
}

/** Entries that one step reads. Reading whole letters costs more than reading columns. */
const stepEntries = 1000
const readStepEntries = 300
/** The least number of entries read from a range. */
const leastOfRange = 16

/** A page ends early past this number of payload bytes: it may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

/** Resolves the filter once for all steps of a search. */
export async function resolveFilter(
  context: StoreContext,
  { filter, order }: Pick<Search, 'filter' | 'order'>,
): Promise<FilterQuery> {
  return { filter, order, codes: await codesOf(context, filter) }
}

/**
 * One bounded step of a search. Each step starts at a position in the order, so that a letter is
 * seen once, at its position, however long the search takes and whatever moves meanwhile. The
 * counts select the ranges to read. They are read in the same snapshot: otherwise a letter that
 * moves into an empty range would be missed.
 */
export function searchStep(
  context: StoreContext,
  query: FilterQuery,
  wanted: number,
  after: Place | undefined,
): Promise<SearchStep> {
  const search = async (tx: Transaction): Promise<SearchStep> => {
    const cells = query.filter.ids ? [] : await readCells((sql, values) => tx.rows(sql, values))
    const counted = { ...query, cells }
    const entries: IndexEntry[] = []
    for (const rangeSet of await rangeSetsOf(tx, counted, after)) {
      const { read, next } = await readRangeSet(context, tx, counted, rangeSet, wanted)
      entries.push(...read.filter(({ fits }) => fits))
      if (next) return { entries, next }
    }
    return { entries }
  }
  return context.connection.transaction('cold', search, { snapshot: true })
}

const keys: Record<Key, { key: string; order: string; after: string }> = {
  id: { key: 'l.id', order: 'l.id', after: '' },
  none: { key: `'${keyless}'`, order: 'l.id', after: '' },
  due: { key: "lpad(l.due_at::text, 16, '0')", order: 'l.due_at, l.id', after: '(l.due_at, l.id)' },
  settled: { key: 'l.settled_at', order: 'l.settled_at, l.id', after: '(l.settled_at, l.id)' },
  mixed: { key: '', order: '', after: '' },
}

/**
 * The sort key where letters are found by id but ordered by a time; letters without that time come
 * last.
 */
function mixedKey(order: FilterQuery['order']): (typeof keys)[Key] {
  const key =
    order === 'due'
      ? `CASE WHEN ${isDue} THEN lpad(l.due_at::text, 16, '0') ELSE '${keyless}' END`
      : `coalesce(l.settled_at, '${keyless}')`
  return { key, order: `(${key}) COLLATE "C", l.id`, after: `((${key}) COLLATE "C", l.id)` }
}

/**
 * Reads the start of every range, and merges the entries up to the end of the first range that was
 * not read completely.
 */
async function readRangeSet(
  context: StoreContext,
  tx: Transaction,
  query: FilterQuery,
  rangeSet: RangeSet,
  wanted: number,
): Promise<{ read: IndexEntry[]; next?: Place }> {
  const { lists, down } = rangeSet
  const ranges = lists.length === 0 ? 1 : lists[0]!.length
  if (ranges === 0) return { read: [] }
  const most = needsReading(query.filter) ? readStepEntries : stepEntries
  const share = Math.max(leastOfRange, Math.ceil(most / ranges))
  const chunk = isCountable(query.filter) ? Math.min(wanted, share * 2) : share
  const { sql, values } = await statementOf(context, query, rangeSet, chunk)
  const counts = new Map<number, { n: number; last: IndexEntry }>()
  const entries = (await tx.rows(sql, values)).map((cells) => {
    const [key, id, size, fits, range] = cells as [string, string, number, boolean, number]
    const entry = { key: rangeSet.key === 'id' ? fromText(key) : key, id: fromText(id), size, fits }
    counts.set(range, { n: (counts.get(range)?.n ?? 0) + 1, last: entry })
    return entry
  })
  const before = (a: IndexEntry, b: IndexEntry): number => order(a, b, down)
  const ends = [...counts.values()].filter(({ n }) => n === chunk).map(({ last }) => last)
  const [end] = ends.sort(before)
  entries.sort(before)
  if (!end) return { read: entries }
  return {
    read: entries.filter((entry) => before(entry, end) <= 0),
    next: { key: end.key, id: end.id },
  }
}

/** Compares by key, then by id; in the order `newest` the key is the id. */
function order(a: IndexEntry, b: IndexEntry, down: boolean): number {
  const up = a.key < b.key || (a.key === b.key && a.id < b.id) ? -1 : a.id === b.id ? 0 : 1
  return down ? -up : up
}

async function statementOf(
  context: StoreContext,
  query: FilterQuery,
  rangeSet: RangeSet,
  chunk: number,
): Promise<{ sql: string; values: unknown[] }> {
  const { lists, after, down } = rangeSet
  const values: unknown[] = []
  const put = (value: unknown): string => `$${values.push(value)}`
  const { text } = query.filter
  const from =
    lists.length === 0
      ? '(SELECT 1 AS n) AS r'
      : `unnest(${lists.map((list) => `${put(list)}::int[]`).join(', ')}) WITH ORDINALITY
         AS r(${['a', 'b', 'c'].slice(0, lists.length).join(', ')}, n)`
  const by = rangeSet.key === 'mixed' ? mixedKey(query.order) : keys[rangeSet.key]
  const sign = down ? '<' : '>'
  const where = [rangeSet.where(put)]
  if (after && by.after === '') where.push(`l.id ${sign} ${put(toText(after.id))}::text`)
  else if (after) {
    const key =
      rangeSet.key === 'due' ? `${put(Number(after.key))}::bigint` : `${put(after.key)}::text`
    where.push(`${by.after} > (${key}, ${put(toText(after.id))}::text)`)
  }
  const fits = [conditionOf(query.filter, query.codes, values)]
  if (rangeSet.key === 'due') fits.push(`(${isDue})`)
  if (text !== undefined) fits.push(await preselectText(context, text, values))
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

/**
 * Reads a page, in as many steps as necessary. One letter more than the limit is searched, to know
 * whether there is a next page.
 */
export async function find(context: StoreContext, search: Search): Promise<Found> {
  const { filter, limit, whole } = search
  const query = await resolveFilter(context, search)
  const items: Found['items'] = []
  let { after } = search
  let last: Place | undefined
  let bytes = 0
  for (;;) {
    const step = await searchStep(context, query, limit + 1 - items.length, after)
    // Loads as many letters as may be needed at once, within the byte limit of a page.
    for (let start = 0; start < step.entries.length;) {
      let end = start
      let loading = bytes
      while (
        end < step.entries.length &&
        end - start <= limit - items.length &&
        loading <= maxPageBytes
      )
        loading += whole ? step.entries[end++]!.size : (end++, 0)
      const entries = step.entries.slice(start, end)
      const ids = entries.map(({ id }) => id)
      const letters = await readLetters(context, ids, whole ? 'whole' : 'summary')
      for (const entry of entries) {
        const kept = letters.get(entry.id)
        const item = kept && (whole ? unpack(kept) : unpackSummary(kept))
        if (!item || !stillMatches(item, filter)) continue
        if (items.length === limit || (bytes > maxPageBytes && last)) return { items, next: last! }
        bytes += whole ? entry.size : 0
        items.push(item)
        last = { key: entry.key, id: entry.id }
      }
      start = end
      if (start < step.entries.length && bytes > maxPageBytes && last) return { items, next: last }
    }
    if (!step.next) return { items }
    after = step.next
  }
}

/**
 * Whether a letter that was found still matches when it is read. A corrupt letter is listed where
 * it was found.
 */
function stillMatches(item: DeadLetter | LetterSummary, filter: Search['filter']): boolean {
  if (item.corrupt === undefined) return matches(item, filter)
  return filter.text === undefined || matches(item, { state: item.state, text: filter.text })
}
