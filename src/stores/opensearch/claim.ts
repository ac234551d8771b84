import type { DeadLetter } from '../../letter/letter.ts'
import * as moves from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Claim, ClaimRequest } from '../../store.ts'
import { isDue } from './add.ts'
import { documentOf, letterOf } from './document.ts'
import { dueLetters, nextDueMs, type Candidate } from './due.ts'
import { readLetters, type StoreContext, type ReadLetter } from './context.ts'
import { takeLanes } from './lanes.ts'

/** Maximum number of letters per claim, to bound memory. */
const maxClaimLetters = 1000

/** How often a claim searches again because others took what it found. */
const maxRounds = 100

/**
 * Searches only show letters that might be due. A read in real time decides, followed by a write
 * that is rejected if anything changed.
 */
export async function claim(context: StoreContext, request: ClaimRequest): Promise<Claim> {
  const limit = Math.min(request.limit, maxClaimLetters)
  const letters: DeadLetter[] = []
  /** Found by a search, but not claimable when read: their search fields are wrong. */
  const skip = new Set<string>()
  for (let round = 0; round < maxRounds && letters.length < limit; round++) {
    const wanted = limit - letters.length
    const candidates = await dueLetters(context, request, wanted, skip)
    const taken = await take(context, candidates, request, skip)
    letters.push(...taken)
    if (candidates.length < wanted && taken.length === candidates.length) break
  }
  await context.totals.flush()
  if (letters.length >= request.limit) return { letters }
  if (letters.length > 0) await context.letters.refresh()
  const nextMs = await nextDueMs(context, request)
  return nextMs === undefined ? { letters } : { letters, nextDueAt: toTimestamp(nextMs) }
}

async function take(
  context: StoreContext,
  candidates: readonly Candidate[],
  { worker, leaseMs }: ClaimRequest,
  skip: Set<string>,
): Promise<DeadLetter[]> {
  const atMs = context.clock.now()
  const now = await readLetters(
    context,
    candidates.map(({ id }) => id),
  )
  const ready = candidates.flatMap((candidate) => {
    const standing = now.get(candidate.id)
    const free = standing && standing.record.waitsFor.length === 0
    if (free && isDue(standing.record.letter, atMs)) return [{ candidate, standing }]
    skip.add(candidate.id)
    return []
  })
  const going = await withLanes(context, ready)
  const claimed = going.map(({ record }) => ({
    ...record,
    letter: moves.claim(record.letter, { worker, atMs, leaseMs }),
  }))
  const written = await context.letters.write(
    claimed.map((record, at) => ({
      id: record.letter.id,
      put: documentOf(record),
      at: going[at]!.mark,
    })),
  )
  const mine = claimed.filter((_, at) => written[at]!.done)
  for (const { letter } of mine) context.totals.count('claim', letter)
  return mine.map(letterOf)
}

/** Letters that need no lane, or got theirs. */
async function withLanes(
  context: StoreContext,
  ready: readonly { candidate: Candidate; standing: ReadLetter }[],
): Promise<ReadLetter[]> {
  const needsLane = ({ record: { letter } }: ReadLetter): boolean =>
    letter.lane !== undefined && letter.state === 'pending'
  const waiting = ready.flatMap(({ candidate: { lane }, standing }) =>
    lane && needsLane(standing) ? [{ lane: lane.key, seen: lane.seen, standing }] : [],
  )
  const given = await takeLanes(context, waiting)
  const allowed = new Set(waiting.filter((_, at) => given[at]).map(({ standing }) => standing))
  return ready
    .map(({ standing }) => standing)
    .filter((standing) => !needsLane(standing) || allowed.has(standing))
}
