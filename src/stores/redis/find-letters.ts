import { searchOf, type Place } from '../search.ts'
import { states, type DeadLetter, type LetterSummary } from '../../letter/letter.ts'
import {
  writeCursor,
  type LetterFilter,
  type LetterQuery,
  type Order,
  type Page,
} from '../../letter/query.ts'
import { toText } from '../../backends/redis/connection.ts'
import type { TallyKey } from '../../store.ts'
import { maxReads, type StoreContext } from './context.ts'
import { grow, hasCounts, valuesOf } from '../rows/tally.ts'
import { scripts } from './scripts.ts'
import type { Found } from './search.ts'
import { countsIn, tallyOf } from './tally.ts'
import { maxScriptItems } from './chunks.ts'

/** A page ends early past this number of payload bytes: it may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

/** Letters that one step of `walk` returns. */
const maxWalked = 500

export async function findLetters(
  context: StoreContext,
  query: LetterQuery,
): Promise<Page<DeadLetter | LetterSummary>> {
  const { filter, order, limit, whole, after: start } = searchOf(query)
  if (limit === 0) return { items: [] }
  const found: Found[] = []
  let after = start
  let bytes = 0
  for (;;) {
    // Reads one letter more than the limit, to know whether there is a next page.
    const left = limit + 1 - found.length
    const extent = whole ? 'whole' : 'summary'
    const step = await context.search.step({ filter, order, extent, limit: left, after })
    for (const one of step.found) {
      if (found.length === limit || bytes > maxPageBytes) return pageOf(found, order, true)
      found.push(one)
      bytes += 'bytes' in one.letter.payload ? one.letter.payload.bytes.length : 0
    }
    if (!step.next) return pageOf(found, order, false)
    after = step.next
  }
}

function pageOf(found: Found[], order: Order, more: boolean): Page<DeadLetter | LetterSummary> {
  const items = found.map(({ letter }) => letter)
  const last = found.at(-1)
  return more && last ? { items, cursor: writeCursor({ order, ...last.place }) } : { items }
}

/** All matching letters, in bounded steps. */
export async function* walk(context: StoreContext, filter: LetterFilter): AsyncGenerator<Found> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  let after: Place | undefined
  do {
    const request = { filter, order, extent: 'summary', limit: maxWalked, after } as const
    const step = await context.search.step(request)
    yield* step.found
    after = step.next
  } while (after)
}

/** Counts from the counters if possible, otherwise letter by letter. */
export async function tallyLetters(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Map<string, number>> {
  if (hasCounts(by, filter)) {
    const named = by === 'group' || by === 'tag'
    const fields = await context.connection.send(
      'HGETALL',
      `${context.tag}:${named ? `${by}s` : 'cells'}`,
    )
    return tallyOf(countsIn(fields as Buffer[], named), by, filter)
  }
  const tally = new Map<string, number>()
  for await (const { letter } of walk(context, filter))
    for (const value of valuesOf(letter, by)) grow(tally, value, 1)
  return tally
}

export async function removeLetters(context: StoreContext, which: LetterFilter): Promise<number> {
  let gone = 0
  let batch: Found[] = []
  for await (const found of walk(context, which)) {
    if (found.letter.state !== 'retrying') batch.push(found)
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
  found: Found[],
  which: LetterFilter,
): Promise<number> {
  let gone = 0
  let left = found
  for (let looks = 0; left.length > 0 && looks < maxReads; looks++) {
    const pairs = left.flatMap(({ letter }) => [letter.id, versionOf(letter)])
    const [count, changed] = (await context.runMove(scripts.remove, pairs)) as [number, Buffer[]]
    gone += count
    left = []
    const again: LetterFilter = { ...which, ids: changed.map(toText) }
    // Excluded explicitly, since a filter with ids also finds archived letters.
    if (which.state === undefined && which.ids === undefined) again.state = unarchived
    if (changed.length > 0) for await (const one of walk(context, again)) left.push(one)
  }
  return gone
}

/** The version that a removal expects; an unreadable row has none. */
function versionOf(letter: DeadLetter | LetterSummary): string {
  return letter.version === 0 && letter.corrupt !== undefined ? '?' : String(letter.version)
}
