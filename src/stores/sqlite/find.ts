import { matches } from '../../letter/query.ts'
import { toMs } from '../../letter/time.ts'
import { partsOf, states } from '../rows/codes.ts'
import { decodeSummary } from '../rows/decode.ts'
import {
  comparePlaces,
  planStages,
  readPage,
  type Found,
  type Stage,
  type Step,
  type StepRequest,
} from '../rows/plan.ts'
import { needsReading, sourceKey } from '../rows/source-key.ts'
import { cellCodes } from '../rows/tally.ts'
import type { Search } from '../search.ts'
import type { StoreContext } from './context.ts'
import { cellTest } from './filter.ts'
import { loadLetters } from './letters.ts'
import type { Methods } from './protocol.ts'
import { readRange, stageCondition, type IndexEntry } from './ranges.ts'
import { formatId, receiveLetter, sizeOf, type SentLetter } from './transfer.ts'

/** Up to this many letters are scanned; no narrower index would be faster. */
const maxCandidates = 2000

/** Up to this many letters of an index are read by id, whatever the order. */
const maxPoints = 1000

/** Number of index entries that one step reads before other calls run, or of letters to compare. */
const entriesPerStep = 1000
const comparedPerStep = 200

/** Letters are read in chunks, and a step ends early past this number of payload bytes. */
const lettersPerRead = 64
const maxStepBytes = 32 * 2 ** 20

export type Scan = Pick<Search, 'filter' | 'order' | 'after'>

/** The index ranges that contain all matches. */
function planSearch(context: StoreContext, { filter, order }: Scan): Stage<number>[] {
  const passes = cellTest(context, filter)
  // In which states the letters are may change during the search.
  const passesInAnyState = cellTest(context, { ...filter, state: [...states] })
  const queues = new Set<number>()
  let letters = 0
  for (const [cell, n] of context.counters.cells()) {
    const parts = partsOf(cell)
    if (n > 0 && passesInAnyState(parts)) queues.add(parts.queue)
    if (passes(parts)) letters += n
  }
  return planStages({
    filter,
    order,
    queues: [...queues],
    states: cellCodes(filter).states ?? [...states.keys()],
    ids: filter.ids ?? fewIds(context, filter),
    preferNarrow: letters > maxCandidates,
  })
}

/** The ids of all letters with the source id, or that expire, if they are few. */
function fewIds(
  { db }: StoreContext,
  { sourceId, expiresBefore }: Search['filter'],
): string[] | undefined {
  const few = (condition: string, value: string | number): string[] | undefined => {
    const sql = `SELECT hex(id) FROM letters WHERE ${condition} LIMIT ?`
    const found = db.all(sql, value, maxPoints + 1)
    return found.length > maxPoints ? undefined : found.map(([id]) => formatId(id as string))
  }
  return (
    (sourceId === undefined ? undefined : few('source_id = ?', sourceKey(sourceId))) ??
    (expiresBefore === undefined ? undefined : few('expires_at < ?', toMs(expiresBefore)))
  )
}

/**
 * One bounded step: reads the next entries of all ranges and merges them. A range that has more
 * entries ends the step at its last one, since the next of it could come before those of others.
 */
function readStep(
  context: StoreContext,
  search: Scan,
  { stage, after, wanted }: StepRequest<number>,
): Step<number> {
  const { ranges, isDown } = stage
  if (ranges.length === 0) return { found: [] }
  const fits = stageCondition(context, search, stage)
  const compares = needsReading(search.filter)
  const most = Math.ceil((compares ? comparedPerStep : entriesPerStep) / ranges.length) + 8
  const count = fits.sql === '1' && !compares ? Math.min(most, wanted) : most
  const parts = ranges.map((range) =>
    readRange(context, range, { search, stage, fits, after, count }),
  )
  const compare = (a: Pick<IndexEntry, 'place'>, b: Pick<IndexEntry, 'place'>): number =>
    comparePlaces(a.place, b.place, isDown)
  const [end] = parts.flatMap(({ end: place }) => (place ? { place } : [])).sort(compare)
  const entries = parts
    .flatMap((part) => part.entries)
    .filter((entry) => entry.fits && (!end || compare(entry, end) <= 0))
    .sort(compare)
  const fitting = compares ? entries.filter((entry) => agrees(context, entry, search)) : entries
  const found = fitting.slice(0, wanted).map(({ place, seq }) => ({ place, item: seq, bytes: 0 }))
  const next = fitting.length > wanted ? found.at(-1)?.place : end?.place
  return next ? { found, next } : { found }
}

/** Whether a letter matches in fields that have no column. */
function agrees(context: StoreContext, { seq }: IndexEntry, { filter }: Scan): boolean {
  const [letter] = loadLetters(context, 'seq', [seq], 'summary')
  return letter !== undefined && matches(decodeSummary(receiveLetter(letter)), filter)
}

/** The row numbers of all matching letters, in steps that end at `wanted` letters or earlier. */
export function* scan(
  context: StoreContext,
  search: Scan,
  wanted: number,
): Generator<Step<number>, undefined> {
  for (const stage of planSearch(context, search)) {
    let after = search.after
    do {
      const step = readStep(context, search, { stage, after, wanted })
      yield step
      after = step.next
    } while (after)
  }
}

/** Reads a page. Other calls run between its steps. */
export function* find(
  context: StoreContext,
  search: Search,
): Generator<undefined, Methods['find']['response']> {
  const page = readPage<number, SentLetter>(planSearch(context, search), search)
  let turn = page.next({ found: [] })
  while (!turn.done) {
    const step = readStep(context, search, turn.value)
    turn = page.next(loadStep(context, search.whole ? 'whole' : 'summary', step))
    if (!turn.done) yield
  }
  const { items, next } = turn.value
  return next ? { letters: items, next } : { letters: items }
}

function loadStep(
  context: StoreContext,
  extent: 'whole' | 'summary',
  { found, next }: Step<number>,
): Step<SentLetter> {
  const loaded: Found<SentLetter>[] = []
  let bytes = 0
  for (let start = 0; start < found.length; start += lettersPerRead) {
    if (bytes > maxStepBytes) return { found: loaded, next: loaded.at(-1)!.place }
    const some = found.slice(start, start + lettersPerRead)
    const seqs = some.map(({ item }) => item)
    for (const [n, letter] of loadLetters(context, 'seq', seqs, extent).entries()) {
      const size = sizeOf(letter)
      loaded.push({ place: some[n]!.place, item: letter, bytes: size })
      bytes += size
    }
  }
  return next ? { found: loaded, next } : { found: loaded }
}
