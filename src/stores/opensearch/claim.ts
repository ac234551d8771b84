import type { DeadLetter } from '../../letter/letter.ts'
import * as moves from '../../letter/moves.ts'
import { toTimestamp } from '../../letter/time.ts'
import type { Claim, ClaimRequest } from '../../store.ts'
import { isDue } from './add.ts'
import { documentOf, letterOf } from './document.ts'
import { dueLetters, nextDueMs, type Candidate } from './due.ts'
import { lettersNow, type Desk, type Standing } from './desk.ts'
import { takeLanes } from './lanes.ts'

/** One claim gives no more than this, so that the memory does not fill up. */
const maxClaimLetters = 1000

/** How often a claim looks anew because others took what it found. */
const maxRounds = 100

/** Searches only show who might be due. Who is, a read in real time tells, and a write that refuses if anything changed. */
export async function claim(desk: Desk, request: ClaimRequest): Promise<Claim> {
  const limit = Math.min(request.limit, maxClaimLetters)
  const letters: DeadLetter[] = []
  /** Found by a search, and yet not to be claimed when looked at: their search fields are not what they should be. */
  const skip = new Set<string>()
  for (let round = 0; round < maxRounds && letters.length < limit; round++) {
    const wanted = limit - letters.length
    const candidates = await dueLetters(desk, request, wanted, skip)
    const taken = await take(desk, candidates, request, skip)
    letters.push(...taken)
    if (candidates.length < wanted && taken.length === candidates.length) break
  }
  await desk.totals.flush()
  if (letters.length >= request.limit) return { letters }
  if (letters.length > 0) await desk.letters.refresh()
  const nextMs = await nextDueMs(desk, request)
  return nextMs === undefined ? { letters } : { letters, nextDueAt: toTimestamp(nextMs) }
}

async function take(
  desk: Desk,
  candidates: readonly Candidate[],
  { worker, leaseMs }: ClaimRequest,
  skip: Set<string>,
): Promise<DeadLetter[]> {
  const atMs = desk.clock.now()
  const now = await lettersNow(
    desk,
    candidates.map(({ id }) => id),
  )
  const ready = candidates.flatMap((candidate) => {
    const standing = now.get(candidate.id)
    const free = standing && standing.kept.waitsFor.length === 0
    if (free && isDue(standing.kept.letter, atMs)) return [{ candidate, standing }]
    skip.add(candidate.id)
    return []
  })
  const going = await withLanes(desk, ready)
  const claimed = going.map(({ kept }) => ({
    ...kept,
    letter: moves.claim(kept.letter, { worker, atMs, leaseMs }),
  }))
  const written = await desk.letters.write(
    claimed.map((kept, at) => ({
      id: kept.letter.id,
      put: documentOf(kept),
      at: going[at]!.mark,
    })),
  )
  const mine = claimed.filter((_, at) => written[at]!.done)
  for (const { letter } of mine) desk.totals.count('claim', letter)
  return mine.map(letterOf)
}

/** Those that need no lane, or have been given theirs. */
async function withLanes(
  desk: Desk,
  ready: readonly { candidate: Candidate; standing: Standing }[],
): Promise<Standing[]> {
  const needsLane = ({ kept: { letter } }: Standing): boolean =>
    letter.lane !== undefined && letter.state === 'pending'
  const waiting = ready.flatMap(({ candidate: { lane }, standing }) =>
    lane && needsLane(standing) ? [{ lane: lane.key, seen: lane.seen, standing }] : [],
  )
  const given = await takeLanes(desk, waiting)
  const allowed = new Set(waiting.filter((_, at) => given[at]).map(({ standing }) => standing))
  return ready
    .map(({ standing }) => standing)
    .filter((standing) => !needsLane(standing) || allowed.has(standing))
}
