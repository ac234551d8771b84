import { searchOf, type Place, type Search } from '../search.ts'
import { states, type DeadLetter, type LetterSummary } from '../../letter/letter.ts'
import { writeCursor, type LetterFilter, type LetterQuery, type Page } from '../../letter/query.ts'
import { toText } from '../../backends/redis/connection.ts'
import type { TallyKey } from '../../store.ts'
import { readPage } from '../rows/plan.ts'
import { grow, hasCounts, isGroupKey, valuesOf } from '../rows/tally.ts'
import { maxScriptItems } from './chunks.ts'
import { maxReads, type StoreContext } from './context.ts'
import type { Extent } from './fetch-letters.ts'
import { planSearch } from './plan-search.ts'
import { scripts } from './scripts.ts'
import { readStep, type Letter } from './search.ts'
import { countsIn, tallyOf } from './tally.ts'

/** Letters that `walk` reads at once. */
const walkLetters = 500

export async function findLetters(
  context: StoreContext,
  query: LetterQuery,
): Promise<Page<DeadLetter | LetterSummary>> {
  const search = searchOf(query)
  if (search.limit === 0) return { items: [] }
  const { items, next } = await readLetters(context, search, search.whole ? 'whole' : 'summary')
  return next ? { items, cursor: writeCursor({ order: search.order, ...next }) } : { items }
}

type PageRequest = Pick<Search, 'filter' | 'order' | 'limit' | 'after' | 'partial'>

async function readLetters(
  context: StoreContext,
  request: PageRequest,
  extent: Extent,
): Promise<{ items: Letter[]; next?: Place }> {
  const plan = await planSearch(context, request.filter, request.order)
  const page = readPage<string, Letter>(plan.stages, request)
  let step = page.next()
  while (!step.done) step = page.next(await readStep(context, plan, step.value, extent))
  return step.value
}

/** All matching letters, in bounded steps. */
async function* walk(context: StoreContext, filter: LetterFilter): AsyncGenerator<Letter> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  let after: Place | undefined
  do {
    const request = { filter, order, limit: walkLetters, ...(after ? { after } : {}) } as const
    const { items, next } = await readLetters(context, request, 'summary')
    yield* items
    after = next
  } while (after)
}

/** Counts from the counters if possible, otherwise letter by letter. */
export async function tallyLetters(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Map<string, number>> {
  if (hasCounts(by, filter)) {
    const named = isGroupKey(by) || by === 'tag' || filter.group !== undefined
    const name = named ? (by === 'tag' ? 'tags' : 'groups') : 'cells'
    const fields = await context.connection.send('HGETALL', `${context.tag}:${name}`)
    return tallyOf(countsIn(fields as Buffer[], named), by, filter)
  }
  const tally = new Map<string, number>()
  for await (const letter of walk(context, filter))
    for (const value of valuesOf(letter, by)) grow(tally, value, 1)
  return tally
}

export async function removeLetters(context: StoreContext, which: LetterFilter): Promise<number> {
  let gone = 0
  let batch: Letter[] = []
  for await (const letter of walk(context, which)) {
    if (letter.state !== 'retrying') batch.push(letter)
    if (batch.length < maxScriptItems) continue
    gone += await removeFound(context, batch, which)
    batch = []
  }
  return gone + (await removeFound(context, batch, which))
}

const unarchived = states.filter((state) => state !== 'archived')

/**
 * Removes letters at the versions that were read. A letter that changed since is read again: it may
 * no longer match.
 */
async function removeFound(
  context: StoreContext,
  found: Letter[],
  which: LetterFilter,
): Promise<number> {
  let gone = 0
  let left = found
  for (let reads = 0; left.length > 0 && reads < maxReads; reads++) {
    const pairs = left.flatMap(({ id, version }) => [id, String(version)])
    const [count, changed] = (await context.runMove(scripts.remove, pairs)) as [number, Buffer[]]
    gone += count
    left = []
    const again: LetterFilter = { ...which, ids: changed.map(toText) }
    // Excluded explicitly, since a filter with ids also finds archived letters.
    if (which.state === undefined && which.ids === undefined) again.state = unarchived
    if (changed.length > 0) for await (const letter of walk(context, again)) left.push(letter)
  }
  return gone
}
