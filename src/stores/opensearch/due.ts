import type { DeadLetter } from '../../letter/letter.ts'
import { dueAt } from '../../letter/order.ts'
import { toMs } from '../../letter/time.ts'
import type { ClaimRequest } from '../../store.ts'
import { toTerm } from './fields.ts'
import type { StoreContext, LaneDocument } from './context.ts'
import { readLanes } from './lanes.ts'
import type { ReadDocument, SortValues } from './document-index.ts'

/** A letter that a claim may take, from a search. */
export interface Candidate {
  id: string
  score: number
  /** The lane that the claim must take as well. */
  lane?: { key: string; document: ReadDocument<LaneDocument> | undefined }
}

type Clause = Record<string, unknown>

const pageSize = 200

export function isDue(letter: DeadLetter, nowMs: number): boolean {
  const due = dueAt(letter)
  return due !== undefined && !(toMs(due) > nowMs)
}

/** Finds the first due letters, in the order of claims, without those that are blocked. */
export async function findDueLetters(
  context: StoreContext,
  request: ClaimRequest,
  limit: number,
  skip: ReadonlySet<string>,
): Promise<Candidate[]> {
  const now = context.clock.now()
  const candidates: Candidate[] = []
  const lanes = new Set<string>()
  let after: SortValues | undefined
  await context.letters.refresh()
  do {
    const page = await searchPage(context, {
      filter: [{ terms: { status: ['pending', 'retrying'] } }, { range: { due_ms: { lte: now } } }],
      request,
      lanes,
      skip,
      sort: 'claim_score',
      after,
    })
    for (const { id, key } of page.free) candidates.push({ id, score: key })
    for (const [key, { head, document }] of await readLanes(context, page.lanes)) {
      lanes.add(key)
      if (!head || head.running || head.waits || head.dueMs > now || skip.has(head.id)) continue
      candidates.push({ id: head.id, score: head.score, lane: { key, document } })
    }
    candidates.sort((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
    after = page.next
  } while (after && !isComplete(candidates, limit, after))
  return candidates.slice(0, limit)
}

/** Whether no letter after these sort values can precede the first `limit` candidates. */
function isComplete(candidates: readonly Candidate[], limit: number, after: SortValues): boolean {
  const [score, id] = after as [number, string]
  const last = candidates[limit - 1]
  return last !== undefined && (last.score < score || (last.score === score && last.id <= id))
}

/** Finds when the next letter of these queues becomes due that is not blocked. */
export async function findNextDueMs(
  context: StoreContext,
  request: ClaimRequest,
): Promise<number | undefined> {
  const now = context.clock.now()
  const lanes = new Set<string>()
  let earliest = Infinity
  let after: SortValues | undefined
  do {
    const page = await searchPage(context, {
      filter: [{ term: { status: 'pending' } }, { range: { due_ms: { gt: now } } }],
      request,
      lanes,
      skip: new Set(),
      sort: 'due_ms',
      after,
    })
    for (const { key } of page.free) earliest = Math.min(earliest, key)
    for (const [key, { head }] of await readLanes(context, page.lanes)) {
      lanes.add(key)
      if (head && !head.running && !head.waits) earliest = Math.min(earliest, head.dueMs)
    }
    after = page.next
  } while (after && earliest > (after[0] as number))
  return earliest === Infinity ? undefined : earliest
}

interface DueSearch {
  filter: Clause[]
  request: ClaimRequest
  /** Lanes already read. Their pending letters are left out. */
  lanes: ReadonlySet<string>
  /** Ids of letters to leave out. */
  skip: ReadonlySet<string>
  sort: 'claim_score' | 'due_ms'
  after: SortValues | undefined
}

interface DuePage {
  /** Letters without a lane, or already running in their lane, with their sort key. */
  free: { id: string; key: number }[]
  /** Lanes of the other letters. */
  lanes: string[]
  /** Where the next page starts. Undefined on the last page. */
  next: SortValues | undefined
}

async function searchPage(context: StoreContext, search: DueSearch): Promise<DuePage> {
  const { request, lanes, skip, sort, after } = search
  const filter = [...search.filter, ...(request.queues ? [queuesClause(request.queues)] : [])]
  const pendingInLane = {
    bool: { filter: [{ term: { status: 'pending' } }, { terms: { lane_key: [...lanes] } }] },
  }
  const mustNot: Clause[] = [{ exists: { field: 'waits_for' } }]
  if (request.except) mustNot.push(queuesClause(request.except))
  if (skip.size > 0) mustNot.push({ terms: { letter_id: [...skip] } })
  if (lanes.size > 0) mustNot.push(pendingInLane)
  const hits = await context.letters.search({
    query: { bool: { filter, must_not: mustNot } },
    sort: [{ [sort]: 'asc' }, { letter_id: 'asc' }],
    size: pageSize,
    _source: ['status', 'lane_key'],
    ...(after ? { search_after: after } : {}),
  })
  const free: DuePage['free'] = []
  const newLanes = new Set<string>()
  for (const { id, source, sortValues } of hits)
    if (source.lane_key !== undefined && source.status === 'pending') newLanes.add(source.lane_key)
    else free.push({ id, key: sortValues[0] as number })
  const next = hits.length === pageSize ? hits.at(-1)!.sortValues : undefined
  return { free, lanes: [...newLanes], next }
}

function queuesClause(queues: readonly string[]): Clause {
  return { terms: { queue: queues.map(toTerm) } }
}
