import type { DeadLetter, LetterSummary } from '../../letter/letter.ts'
import {
  sortKey,
  writeCursor,
  type LetterFilter,
  type Order,
  type Page,
} from '../../letter/query.ts'
import type { Search } from '../search.ts'
import type { TallyKey } from '../../store.ts'
import { toRecord, letterOf, summaryFields, summaryOf, wholeFields } from './document.ts'
import type { StoreContext } from './context.ts'
import { conditionsOf } from './filter.ts'

type Place = (string | number)[]

/** Maximum number of letters per answer with their bytes. */
const wholePage = 50

const sorts: Record<Order, object[]> = {
  newest: [{ letter_id: 'desc' }],
  oldest: [{ letter_id: 'asc' }],
  due: [{ due_key: 'asc' }, { letter_id: 'asc' }],
  settled: [{ settled_key: 'asc' }, { letter_id: 'asc' }],
}

export async function find(
  context: StoreContext,
  { filter, order, limit, after, whole }: Search,
): Promise<Page<DeadLetter | LetterSummary>> {
  await context.letters.refresh()
  const items: (DeadLetter | LetterSummary)[] = []
  let place: Place | undefined = after && placeOf(order, after)
  let more = true
  while (more && items.length <= limit) {
    // One more than requested shows whether there is a next page.
    const size = Math.min(limit + 1 - items.length, whole ? wholePage : limit + 1)
    const { hits } = await context.letters.search({
      query: conditionsOf(filter),
      sort: sorts[order],
      size,
      _source: whole ? wholeFields : summaryFields,
      ...(place ? { search_after: place } : {}),
    })
    for (const { id, source } of hits)
      items.push(whole ? letterOf(toRecord(id, source)) : summaryOf(id, source))
    place = hits.at(-1)?.place
    more = hits.length === size
  }
  if (items.length <= limit) return { items }
  items.length = limit
  const last = items.at(-1)!
  return { items, cursor: writeCursor({ order, key: sortKey(last, order), id: last.id }) }
}

function placeOf(order: Order, { key, id }: { key: string; id: string }): Place {
  return order === 'due' || order === 'settled' ? [key, id] : [id]
}

const fieldOf: Record<TallyKey, string> = {
  state: 'status',
  queue: 'queue',
  category: 'category',
  priority: 'priority',
  policy: 'retry_policy',
  group: 'fingerprint',
  tag: 'tags',
  severity: 'severity',
  source: 'source_kind',
}

/** Counted by the server over all matches, page by page, so that no value is left out. */
export async function tally(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Map<string, number>> {
  await context.letters.refresh()
  const counts = new Map<string, number>()
  let after: Record<string, string> | undefined
  do {
    const sources = [{ value: { terms: { field: fieldOf[by] } } }]
    const composite = { size: 1000, sources, ...(after ? { after } : {}) }
    const page = await context.letters.search({
      query: conditionsOf(filter),
      size: 0,
      aggs: { counts: { composite } },
    })
    for (const [value, count] of page.counts) counts.set(value, count)
    after = page.nextCounts
  } while (after)
  return counts
}
