import type { ClaimRequest } from '../../store.ts'
import { term } from './fields.ts'
import type { StoreContext, LaneDocument } from './context.ts'
import { viewLanes, type LaneView } from './lanes.ts'
import type { Found } from './document-index.ts'

/** A letter that a claim may take, as a search shows it. */
export interface Candidate {
  id: string
  score: number
  /** The lane that must be taken with it. */
  lane?: { key: string; seen: Found<LaneDocument> | undefined }
}

type Clause = Record<string, unknown>
type Place = (string | number)[]

const pageSize = 200

/**
 * Finds the first due letters, in the order of claims. Blocked ones are skipped, a lane at a time.
 */
export async function dueLetters(
  context: StoreContext,
  request: ClaimRequest,
  wanted: number,
  skip: ReadonlySet<string>,
): Promise<Candidate[]> {
  const now = context.clock.now()
  const found: Candidate[] = []
  const lanes = new Set<string>()
  let after: Place | undefined
  await context.letters.refresh()
  do {
    const page = await pageOf(context, {
      filter: [{ terms: { status: ['pending', 'retrying'] } }, { range: { due_ms: { lte: now } } }],
      request,
      lanes,
      skip,
      sort: 'claim_score',
      after,
    })
    for (const { id, key } of page.free) found.push({ id, score: key })
    for (const [key, { head, seen }] of await viewLanes(context, page.lanes)) {
      lanes.add(key)
      if (!head || head.running || head.waits || head.dueMs > now || skip.has(head.id)) continue
      found.push({ id: head.id, score: head.score, lane: { key, seen } })
    }
    found.sort((a, b) => a.score - b.score || (a.id < b.id ? -1 : 1))
    after = page.next
  } while (after && !isSettled(found, wanted, after))
  return found.slice(0, wanted)
}

/** Whether no later page can have a letter that precedes these. */
function isSettled(found: readonly Candidate[], wanted: number, place: Place): boolean {
  const [score, id] = place as [number, string]
  const last = found[wanted - 1]
  return last !== undefined && (last.score < score || (last.score === score && last.id <= id))
}

/** When the next letter of these queues becomes due that is not blocked. */
export async function nextDueMs(
  context: StoreContext,
  request: ClaimRequest,
): Promise<number | undefined> {
  const now = context.clock.now()
  const lanes = new Set<string>()
  let best: number | undefined
  let after: Place | undefined
  do {
    const page = await pageOf(context, {
      filter: [{ term: { status: 'pending' } }, { range: { due_ms: { gt: now } } }],
      request,
      lanes,
      skip: new Set(),
      sort: 'due_ms',
      after,
    })
    const heads = [...(await viewLanes(context, page.lanes))].flatMap(
      ([key, { head }]: [string, LaneView]) => {
        lanes.add(key)
        return head && !head.running && !head.waits ? [head.dueMs] : []
      },
    )
    const times = [
      ...page.free.map(({ key }) => key),
      ...heads,
      ...(best === undefined ? [] : [best]),
    ]
    best = times.length > 0 ? Math.min(...times) : undefined
    after = page.next
  } while (after && (best === undefined || best > (after[0] as number)))
  return best
}

interface Ask {
  filter: Clause[]
  request: ClaimRequest
  /** Lanes already checked, whose waiting letters no longer matter. */
  lanes: ReadonlySet<string>
  skip: ReadonlySet<string>
  sort: 'claim_score' | 'due_ms'
  after: Place | undefined
}

interface DuePage {
  /** Letters without a lane, or already running in theirs, with their sort key. */
  free: { id: string; key: number }[]
  /** Lanes of the others. */
  lanes: string[]
  /** Absent on the last page. */
  next?: Place | undefined
}

async function pageOf(context: StoreContext, ask: Ask): Promise<DuePage> {
  const { request, lanes, skip, sort, after } = ask
  const filter = [...ask.filter, ...(request.queues ? [queuesClause(request.queues)] : [])]
  const waitingInLane = {
    bool: { filter: [{ term: { status: 'pending' } }, { terms: { lane_key: [...lanes] } }] },
  }
  const mustNot: Clause[] = [{ exists: { field: 'waits_for' } }]
  if (request.except) mustNot.push(queuesClause(request.except))
  if (skip.size > 0) mustNot.push({ terms: { letter_id: [...skip] } })
  if (lanes.size > 0) mustNot.push(waitingInLane)
  const { hits } = await context.letters.search({
    query: { bool: { filter, must_not: mustNot } },
    sort: [{ [sort]: 'asc' }, { letter_id: 'asc' }],
    size: pageSize,
    _source: ['status', 'lane_key'],
    ...(after ? { search_after: after } : {}),
  })
  const page: DuePage = { free: [], lanes: [] }
  const found = new Set<string>()
  for (const { id, source, place } of hits)
    if (source.lane_key !== undefined && source.status === 'pending') found.add(source.lane_key)
    else page.free.push({ id, key: place[0] as number })
  page.lanes = [...found]
  if (hits.length === pageSize) page.next = hits.at(-1)!.place
  return page
}

function queuesClause(queues: readonly string[]): Clause {
  return { terms: { queue: queues.map(term) } }
}
