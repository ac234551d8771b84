import { RedriveError } from '../../errors.ts'
import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import { matches, type LetterFilter, type Order } from '../../letter/query.ts'
import type { Cells } from '../../backends/postgres/query.ts'
import { decodeLetter, decodeSummary, type LoadedLetter } from '../rows/decode.ts'
import { isLetterId } from '../../letter/letter-id.ts'
import { states } from '../rows/codes.ts'
import {
  keyless,
  narrowRanges,
  planStages,
  readPage,
  timeKey,
  type Found,
  type Stage,
  type Step,
  type StepRequest,
} from '../rows/plan.ts'
import { needsReading, sourceKey } from '../rows/source-key.ts'
import type { Place, Search } from '../search.ts'
import type { StoreContext } from './context.ts'
import { readCells } from './counters.ts'
import { cellTest, codesOf, type Codes } from './filter.ts'
import { loadLetter, queueIn, type Extent } from './rows.ts'
import { firstCell, idCell, keylessMs, stepStatement } from './step.ts'
import { toText } from './text.ts'

/** The maximum number of letters to sort where an index finds them in another order. */
const maxPoints = 1000
/** Up to this number of candidates, reading all of them is faster than a narrower index. */
const maxCandidates = 2000

/** A filter with an order, and the index ranges to read. */
export interface Query {
  filter: LetterFilter
  order: Order
  codes: Codes
  stages: Stage<number>[]
}

export async function planQuery(
  context: StoreContext,
  filter: LetterFilter,
  order: Order,
): Promise<Query> {
  const codes = await codesOf(context, filter)
  const ids = await findIds(context, filter)
  const queues = ids ? [] : await queuesOf(context, codes)
  const preferNarrow = !ids && narrowRanges(filter) !== undefined && (await isWide(context, codes))
  const wanted = codes.states ?? [...states.keys()]
  const stages = planStages({ filter, order, queues, states: wanted, ids, preferNarrow })
  return { filter, order, codes, stages }
}

/**
 * The queues that can have matching letters: the counts tell which ones have none of a category,
 * priority or policy. In which states they are may change during the search.
 */
async function queuesOf({ connection, queues }: StoreContext, codes: Codes): Promise<number[]> {
  if (!codes.categories && !codes.priorities && !codes.policies)
    return codes.queues ?? [...(await queues.all()).values()]
  const passes = cellTest({ ...codes, states: undefined })
  const cells = await readCells((sql, values) => connection.read(sql, values))
  return [...new Set(cells.flatMap(([cell]) => (passes(cell) ? [cell.queue] : [])))]
}

async function isWide({ connection }: StoreContext, codes: Codes): Promise<boolean> {
  const passes = cellTest(codes)
  const cells = await readCells((sql, values) => connection.read(sql, values))
  return cells.reduce((sum, [cell, n]) => (passes(cell) ? sum + n : sum), 0) > maxCandidates
}

/** The ids, if they are given or an index shows that they are few. */
async function findIds(
  { connection }: StoreContext,
  { ids, sourceId, expiresBefore }: LetterFilter,
): Promise<string[] | undefined> {
  if (ids) return ids.filter(isLetterId)
  const few = async (end: string, value: unknown): Promise<string[] | undefined> => {
    const sql = `SELECT id FROM @letters WHERE ${end} LIMIT $2`
    const found = await connection.read(sql, [value, maxPoints + 1])
    return found.length > maxPoints ? undefined : found.map(([id]) => id as string)
  }
  if (sourceId !== undefined) {
    const points = await few('source_id = $1 ORDER BY source_id, id', toText(sourceKey(sourceId)))
    if (points) return points
  }
  if (expiresBefore === undefined) return undefined
  return few('expires_at < $1 ORDER BY expires_at, id', Date.parse(expiresBefore))
}

type Item = DeadLetter | LetterSummary

/** Reads a page. */
export async function find(
  context: StoreContext,
  { filter, order, limit, after, whole, partial = false }: Search,
): Promise<{ items: Item[]; next?: Place }> {
  checkPlace(after, order)
  const query = await planQuery(context, filter, order)
  const extent = whole ? 'whole' : 'summary'
  const read = readerOf<Item>(filter, whole ? decodeLetter : decodeSummary)
  const page = readPage<number, Item>(query.stages, {
    limit,
    partial,
    ...(after ? { after } : {}),
  })
  let step = page.next()
  while (!step.done) step = page.next(await readStep(context, query, step.value, extent, read))
  return step.value
}

/** A cursor is not trusted. */
function checkPlace(after: Place | undefined, order: Order): void {
  if (!after) return
  const isById = order === 'newest' || order === 'oldest'
  const hasKey = isById || after.key === keyless || /^\d{1,16}$/.test(after.key)
  if (!isLetterId(after.id) || !hasKey)
    throw new RedriveError('INVALID_INPUT', `cursor is not a cursor of order ${order}`)
}

/** Reads all letters that match, in bounded steps, between which other calls run. */
export async function* scanLetters(
  context: StoreContext,
  query: Query,
  wanted: number,
): AsyncGenerator<LetterSummary[]> {
  const read = readerOf(query.filter, decodeSummary)
  yield* scan(query, (stage, after) =>
    readStep(context, query, { stage, after, wanted }, 'summary', read),
  )
}

/** Reads the ids of all letters that match, in bounded steps. */
export async function* scanIds(
  context: StoreContext,
  query: Query,
  wanted: number,
): AsyncGenerator<string[]> {
  const whole = readerOf(query.filter, decodeSummary)
  const isRead = needsReading(query.filter)
  const read: Reader<string> = (cells, nameOf) =>
    isRead ? whole(cells, nameOf)?.id : (cells[idCell] as string)
  yield* scan(query, (stage, after) =>
    readStep(context, query, { stage, after, wanted }, isRead ? 'summary' : 'ids', read),
  )
}

async function* scan<T>(
  { stages }: Query,
  read: (stage: Stage<number>, after: Place | undefined) => Promise<Step<T>>,
): AsyncGenerator<T[]> {
  for (const stage of stages) {
    let after: Place | undefined
    do {
      const { found, next } = await read(stage, after)
      if (found.length > 0) yield found.map(({ item }) => item)
      after = next
    } while (after)
  }
}

/** Reads a letter from the cells of a step. Undefined: it does not match. */
type Reader<T> = (cells: Cells, nameOf: (queue: number) => string) => T | undefined

function readerOf<T extends Item>(
  filter: LetterFilter,
  decode: (loaded: LoadedLetter) => T,
): Reader<T> {
  return (cells, nameOf) => {
    const item = decode(loadLetter(cells, nameOf(queueIn(cells, firstCell)), firstCell))
    return stillMatches(item, filter) ? item : undefined
  }
}

/**
 * One bounded step, in one statement. It returns the letters that match up to the end of the first
 * range that was not read completely.
 */
async function readStep<T>(
  context: StoreContext,
  { filter, order, codes }: Query,
  request: StepRequest<number>,
  extent: Extent | 'ids',
  read: Reader<T>,
): Promise<Step<T>> {
  const { stage } = request
  if (stage.ranges.length === 0) return { found: [] }
  const statement = await stepStatement(context, { filter, order, codes, request, extent })
  const rows = await context.connection.read(statement.sql, statement.values)
  const fitting = extent === 'ids' ? [] : rows.filter(([, fits]) => fits)
  const nameOf = await context.queues.names(fitting.map((cells) => queueIn(cells, firstCell)))
  const found: Found<T>[] = []
  for (const cells of rows) {
    const [isEnd, fits, key, size, id] = cells as [boolean, boolean, unknown, number, string]
    const place = { key: keyOf(stage, key, id), id }
    const item = fits ? read(cells, nameOf) : undefined
    if (item) found.push({ place, item, bytes: extent === 'whole' ? size : 0 })
    if (isEnd || (rows.length === statement.limit && cells === rows.at(-1)))
      return { found, next: place }
  }
  return { found }
}

function keyOf({ key: kind }: Stage<number>, key: unknown, id: string): string {
  if (kind === 'id') return id
  return kind === 'none' || key === keylessMs ? keyless : timeKey(key as number)
}

/**
 * Columns decide, except where the letter must be read. A corrupt letter is listed where it was
 * found.
 */
function stillMatches(item: Item, filter: LetterFilter): boolean {
  if (!needsReading(filter)) return true
  if (item.corrupt === undefined) return matches(item, filter)
  return filter.text === undefined || matches(item, { state: item.state, text: filter.text })
}
