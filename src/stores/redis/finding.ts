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
import { maxLooks, type Desk } from './desk.ts'
import { grow, hasCounts, valuesOf } from '../rows/tally.ts'
import { scripts } from './scripts.ts'
import type { Found } from './search.ts'
import { countsIn, tallyOf } from './tally.ts'
import { maxScriptItems } from './chunks.ts'

/** Past this many payload bytes a page ends early: a page may always be shorter than its limit. */
const maxPageBytes = 32 * 2 ** 20

/** Letters that one step of a walk through all of them gives. */
const maxWalked = 500

export async function findLetters(
  desk: Desk,
  query: LetterQuery,
): Promise<Page<DeadLetter | LetterSummary>> {
  const { filter, order, limit, whole, after: start } = searchOf(query)
  if (limit === 0) return { items: [] }
  const found: Found[] = []
  let after = start
  let bytes = 0
  for (;;) {
    // One letter more than asked is looked for, to know whether there is a next page.
    const left = limit + 1 - found.length
    const extent = whole ? 'whole' : 'summary'
    const stride = await desk.search.stride({ filter, order, extent, limit: left, after })
    for (const one of stride.found) {
      if (found.length === limit || bytes > maxPageBytes) return pageOf(found, order, true)
      found.push(one)
      bytes += 'bytes' in one.letter.payload ? one.letter.payload.bytes.length : 0
    }
    if (!stride.next) return pageOf(found, order, false)
    after = stride.next
  }
}

function pageOf(found: Found[], order: Order, more: boolean): Page<DeadLetter | LetterSummary> {
  const items = found.map(({ letter }) => letter)
  const last = found.at(-1)
  return more && last ? { items, cursor: writeCursor({ order, ...last.place }) } : { items }
}

/** All letters that match, in bounded steps. */
export async function* walk(desk: Desk, filter: LetterFilter): AsyncGenerator<Found> {
  const order = filter.settledBefore === undefined ? 'oldest' : 'settled'
  let after: Place | undefined
  do {
    const ask = { filter, order, extent: 'summary', limit: maxWalked, after } as const
    const stride = await desk.search.stride(ask)
    yield* stride.found
    after = stride.next
  } while (after)
}

/** From the counts where they can answer; otherwise letter by letter. */
export async function tallyLetters(
  desk: Desk,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Map<string, number>> {
  if (hasCounts(by, filter)) {
    const named = by === 'group' || by === 'tag'
    const fields = await desk.connection.send(
      'HGETALL',
      `${desk.tag}:${named ? `${by}s` : 'cells'}`,
    )
    return tallyOf(countsIn(fields as Buffer[], named), by, filter)
  }
  const tally = new Map<string, number>()
  for await (const { letter } of walk(desk, filter))
    for (const value of valuesOf(letter, by)) grow(tally, value, 1)
  return tally
}

export async function removeLetters(desk: Desk, which: LetterFilter): Promise<number> {
  let gone = 0
  let batch: Found[] = []
  for await (const found of walk(desk, which)) {
    if (found.letter.state !== 'retrying') batch.push(found)
    if (batch.length < maxScriptItems) continue
    gone += await removeFound(desk, batch, which)
    batch = []
  }
  return gone + (await removeFound(desk, batch, which))
}

const unarchived = states.filter((state) => state !== 'archived')

/** Removes letters as they were seen. One that has changed since is looked at again: it may no longer be meant. */
async function removeFound(desk: Desk, found: Found[], which: LetterFilter): Promise<number> {
  let gone = 0
  let left = found
  for (let looks = 0; left.length > 0 && looks < maxLooks; looks++) {
    const pairs = left.flatMap(({ letter }) => [letter.id, versionOf(letter)])
    const [count, changed] = (await desk.moving(scripts.remove, pairs)) as [number, Buffer[]]
    gone += count
    left = []
    const again: LetterFilter = { ...which, ids: changed.map(toText) }
    // With ids, archived letters would be in sight.
    if (which.state === undefined && which.ids === undefined) again.state = unarchived
    if (changed.length > 0) for await (const one of walk(desk, again)) left.push(one)
  }
  return gone
}

/** The version that a removal goes by; a row that cannot be read has none. */
function versionOf(letter: DeadLetter | LetterSummary): string {
  return letter.version === 0 && letter.corrupt !== undefined ? '?' : String(letter.version)
}
