import { checkFilter } from '../check/filter.ts'
import { RedriveError } from '../errors.ts'
import { checkKeys, keysOf } from '../check/keys.ts'
import { states, type ErrorCategory, type State } from '../letter/letter.ts'
import type { LetterFilter, Page } from '../letter/query.ts'
import type { Timestamp } from '../letter/time.ts'
import type { Store } from '../store.ts'

/** Letters with the same cause. */
export interface Group {
  fingerprint: string
  /** First line of the newest failure. */
  title: string
  queue: string
  category: ErrorCategory
  count: number
  states: Partial<Record<State, number>>
  newestAt: Timestamp
  newestId: string
}

export interface GroupQuery extends Pick<LetterFilter, 'queue' | 'state'> {
  /** Page size, at most 100. Default: 20. */
  limit?: number
  cursor?: string
}

const maxGroups = 100

const groupKeys = keysOf<GroupQuery>({ queue: true, state: true, limit: true, cursor: true })

/** Groups by size, largest first. The cursor is the number of groups before the page. */
export async function findGroups(store: Store, query: GroupQuery): Promise<Page<Group>> {
  checkKeys('group query', query, groupKeys, { renamed: { status: 'state' } })
  const { limit = 20, cursor, ...filter } = query
  checkFilter(filter)
  if (!Number.isInteger(limit) || limit < 0)
    throw new RedriveError('INVALID_INPUT', `limit must be a non-negative integer, got ${limit}`)
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor))
    throw new RedriveError(
      'INVALID_INPUT',
      `cursor must come from an earlier page of groups, got ${String(cursor).slice(0, 80)}`,
    )
  const from = Number(cursor ?? 0)
  const size = Math.min(limit, maxGroups)
  const counts = [...(await store.tally('group', filter))].sort(
    (a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1),
  )
  const pageCounts = counts.slice(from, from + size)
  const groups = await Promise.all(
    pageCounts.map(([fingerprint, count]) => readGroup(store, filter, fingerprint, count)),
  )
  const items = groups.filter((group) => group !== undefined)
  return size > 0 && from + size < counts.length
    ? { items, cursor: String(from + size) }
    : { items }
}

async function readGroup(
  store: Store,
  filter: LetterFilter,
  fingerprint: string,
  count: number,
): Promise<Group | undefined> {
  const [{ items }, byState] = await Promise.all([
    store.find({ ...filter, group: fingerprint, limit: 1 }),
    store.tally('state', { state: [...states], ...filter, group: fingerprint }),
  ])
  const newest = items[0]
  if (!newest) return undefined
  const { name, message } = newest.failure
  const title = `${name}: ${message.split('\n', 1)[0]!.slice(0, 160)}`
  const { queue, category, deadLetteredAt: newestAt, id: newestId } = newest
  return {
    fingerprint,
    title,
    queue,
    category,
    count,
    states: Object.fromEntries(byState),
    newestAt,
    newestId,
  }
}
