import { states, type DeadLetter, type LetterSummary, type State } from '../../letter/letter.ts'
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
import type { SortValues } from './document-index.ts'
import { conditionsOf } from './filter.ts'

/** Maximum number of letters with their bytes per response. */
const maxWholeLetters = 50

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
  let position = after && sortValuesOf(order, after)
  let hasMore = true
  while (hasMore && items.length <= limit) {
    // One more than requested shows whether there is a next page.
    const size = Math.min(limit + 1 - items.length, whole ? maxWholeLetters : limit + 1)
    const hits = await context.letters.search({
      query: conditionsOf(filter),
      sort: sorts[order],
      size,
      _source: whole ? wholeFields : summaryFields,
      ...(position ? { search_after: position } : {}),
    })
    for (const { id, source } of hits)
      items.push(whole ? letterOf(toRecord(id, source)) : summaryOf(id, source))
    position = hits.at(-1)?.sortValues
    hasMore = hits.length === size
  }
  if (items.length <= limit) return { items }
  items.length = limit
  const last = items.at(-1)!
  return { items, cursor: writeCursor({ order, key: sortKey(last, order), id: last.id }) }
}

function sortValuesOf(order: Order, { key, id }: { key: string; id: string }): SortValues {
  return order === 'due' || order === 'settled' ? [key, id] : [id]
}

const tallyFields: Record<Exclude<TallyKey, 'groupState'>, string> = {
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

/** Counts the matching letters by a key. */
export async function tally(
  context: StoreContext,
  by: TallyKey,
  filter: LetterFilter,
): Promise<Map<string, number>> {
  await context.letters.refresh()
  if (by !== 'groupState') return context.letters.countBy(tallyFields[by], conditionsOf(filter))
  const counted = new Map<string, number>()
  for (const [state, matching] of splitByState(filter))
    for (const [group, count] of await context.letters.countBy(tallyFields.group, matching))
      counted.set(`${state} ${group}`, count)
  return counted
}

/** The conditions of a filter for each state. */
function splitByState(filter: LetterFilter): [State, object][] {
  const conditions = conditionsOf(filter)
  return states.map((state) => {
    const filters = [conditions, { term: { [tallyFields.state]: state } }]
    return [state, { bool: { filter: filters } }]
  })
}
